//! From the start to the end: without a cluster, with a broken kubeconfig, and on a signal.

use crate::process::{GUARD, ProgramOutput, line_of, program, run};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock, serve};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::test]
async fn without_a_cluster_it_says_where_to_find_one() {
    for variables in [vec![], vec![("KUBECONFIG", "/nonexistent/kubeconfig")]] {
        let said = run(&[], &variables).await;
        assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""), "{said:?}");
        let line = line_of(said.stdout.lines().last().expect("a line"));
        assert_eq!(line["level"], "ERROR");
        let message = line["fields"]["message"].as_str().expect("a message");
        for part in ["No cluster", "KUBECONFIG", "5spot sandbox"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        let cause = line["fields"]["error"].as_str().expect("a cause");
        assert!(cause.contains("kubeconfig") && cause.contains("incluster"), "{cause}");
    }
}

#[tokio::test]
async fn a_broken_kubeconfig_is_named_and_not_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kubeconfig");
    for broken in ["users: [{token: canary\n", "apiVersion: v1\nusers: {token: canary}\n"] {
        std::fs::write(&path, broken).expect("it is written");
        let mut command = program(directory.path());
        // As in a pod: a kubeconfig that cannot be used must not make it work for the pod's own cluster instead.
        command.envs([("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "1")]);
        let said: ProgramOutput = command.env("KUBECONFIG", &path).output().await.expect("it starts").into();
        assert_eq!(said.code, Some(1));
        assert!(said.stdout.contains("The kubeconfig cannot be used"), "{said:?}");
        assert!(!said.stdout.contains("canary") && !said.stderr.contains("canary"), "{said:?}");
    }
}

/// A kubeconfig that leads to an API server on this machine.
pub fn kubeconfig(directory: &Path, server: &str) -> PathBuf {
    let path = directory.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": server}}],
        "users": [{"name": "sandbox", "user": {"token": "canary"}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
        "current-context": "sandbox",
    });
    std::fs::write(&path, config.to_string()).expect("it is written");
    path
}

#[tokio::test]
async fn a_signal_stops_it_cleanly() {
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let server = serve(api.service(), ([127, 0, 0, 1], 0).into()).await.expect("a port");
    let address = format!("http://{}", server.address());
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = program(home.path());
        command.env("KUBECONFIG", kubeconfig(home.path(), &address)).stdout(Stdio::piped());
        command.args(["--metrics-port=0", "--health-port=0"]);
        let mut child = command.spawn().expect("it starts");
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut said = Vec::new();
        let watched = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                assert!(!line.contains("canary"), "{line}");
                let line = line_of(&line);
                if line["fields"]["message"] == "Found the management cluster" {
                    assert_eq!(line["fields"]["cluster"], address);
                    kill_process(id, signal).expect("it runs");
                }
                said.push(line);
            }
            child.wait().await.expect("it ends")
        };
        let status = tokio::time::timeout(GUARD, watched).await.expect("it stops");
        assert_eq!(status.code(), Some(0), "{said:?}");
        let stopping = said.iter().find(|line| line["fields"]["message"] == "Stopping").expect("it says so");
        assert_eq!(stopping["fields"]["signal"], name);
        // It says something else if work had to be cut off, which it is well within two seconds.
        assert_eq!(said.last().expect("a line")["fields"]["message"], "Stopped", "{said:?}");
    }
}
