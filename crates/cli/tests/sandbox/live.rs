//! The sandbox while it runs: lines as things happen, a way in for others, and an end on request.

use crate::program::{command, machine};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

fn start(line: &str) -> Child {
    let mut command = command(line);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn interrupt(child: &Child) {
    let done =
        Command::new("/bin/sh").args(["-c", &format!("kill -INT {}", child.id())]).status().expect("a shell");
    assert!(done.success());
}

/// A request to the API that a kubeconfig leads to, and its answer.
fn ask(kubeconfig: &str, method: &str, path: &str, body: &str) -> String {
    let kubeconfig: Value = serde_json::from_str(kubeconfig).expect("a kubeconfig");
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().expect("a server");
    let mut stream = TcpStream::connect(server.trim_start_matches("http://")).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/yaml\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn applied_machines_get_a_row_and_ctrl_c_prints_a_summary() {
    let mut child = start("sandbox --speed 20000 --start 2026-11-09T08:00:00Z");
    let mut lines =
        BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    let first = lines.next().expect("the way in");
    let path = first.strip_prefix("export KUBECONFIG=").expect("a line to paste").to_owned();
    let kubeconfig = fs::read_to_string(&path).expect("the kubeconfig");

    let namespace = ask(&kubeconfig, "POST", "/api/v1/namespaces", "{metadata: {name: lab}}");
    assert!(namespace.starts_with("HTTP/1.1 201"), "{namespace}");
    let machines = "/apis/5spot.finos.org/v1alpha1/namespaces/lab/scheduledmachines";
    let applied = ask(&kubeconfig, "POST", machines, &machine("mine", "{daysOfWeek: [mon-sun]}", ""));
    assert!(applied.starts_with("HTTP/1.1 201"), "{applied}");

    let seen = lines.find(|line| line.contains("lab/mine: Pending to Active"));
    assert!(seen.is_some(), "the controller lends it");
    interrupt(&child);
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("lab/mine: wanted ")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("by the controller")), "{rest:?}");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{rest:?}");
    assert!(!fs::exists(&path).expect("an answer"), "the temporary kubeconfig is gone");
}

#[test]
fn json_lines_are_printed_as_events_happen() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let mut child =
        start(&format!("sandbox --speed 20000 -o json --kubeconfig-out {}", kubeconfig.display()));
    let mut lines =
        BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    let parse = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    assert!(parse(&lines.next().expect("a line"))["time"].is_string());
    interrupt(&child);
    let last = lines.last().expect("a summary");
    assert_eq!(parse(&last)["type"], "summary");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.trim(), format!("export KUBECONFIG={}", kubeconfig.display()));
    assert!(kubeconfig.exists(), "what was asked for stays");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for line in ["sandbox --once --for 12h -o json", "sandbox --speed 20000", "sandbox --speed 20000 -o json"]
    {
        let mut child = start(line);
        let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
        reader.read_line(&mut String::new()).expect("a line");
        drop(reader);
        let output = child.wait_with_output().expect("the program ends");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!said.contains("panicked") && !said.contains("error"), "{line}: {said}");
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    }
}
