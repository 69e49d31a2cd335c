//! Shell completion as a person meets it: the script of the program in a real bash, with names from the sandbox.

#[path = "../running/mod.rs"]
mod running;
mod sandbox;

use running::{command, five_spot_of};
use sandbox::Sandbox;
use std::process::Command;
use std::time::{Duration, Instant};

/// The candidates that bash shows for a line with the cursor at its end.
fn bash(line: &str, kubeconfig: &str) -> Vec<String> {
    let script = r#"source <("$1" completion bash)
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
        _5spot "$1"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash", env!("CARGO_BIN_EXE_5spot"), line])
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", "/nowhere")
        .output()
        .expect("bash starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8 on stdout");
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_names_from_the_cluster() {
    let sandbox = Sandbox::start();
    for (line, expected) in [
        ("5spot explain ", &["bench-1", "desk-17", "desk-18"][..]),
        ("5spot explain desk", &["desk-17", "desk-18"]),
        ("5spot explain -n elsewhere ", &[]),
        ("5spot doctor -n lab b", &["bench-1"]),
        ("5spot preview desk-17 desk-1", &["desk-17", "desk-18"]),
        ("5spot explain desk-17 -n l", &["lab"]),
        ("5spot explain --namespace=l", &["lab"]),
        ("5spot why sm/desk-18", &["sm/desk-18"]),
        ("5spot why scheduledm", &["scheduledmachine/"]),
        ("5spot why namespace/la", &["namespace/lab"]),
        ("5spot doctor --context ", &["5spot-sandbox"]),
        ("kubectl-5spot explain b", &["bench-1"]),
    ] {
        let found = bash(line, sandbox.kubeconfig());
        assert_eq!(found, expected, "{line:?}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_gives_no_names_and_no_words() {
    // Nobody answers at a listener that never accepts.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let directory = tempfile::TempDir::new().expect("a directory");
    let hangs = directory.path().join("hangs");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}]\n\
         users: [{{name: a, user: {{}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    std::fs::write(&hangs, text).expect("a file");
    let started = Instant::now();
    for kubeconfig in [hangs.as_path(), directory.path().join("missing").as_path()] {
        let words = ["__complete", "explain", "--kubeconfig", kubeconfig.to_str().expect("UTF-8"), ""];
        let answer = five_spot_of("", &words);
        assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (0, ":4\n", ""));
    }
    assert!(started.elapsed() < Duration::from_secs(30), "a person waits for it");
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    for shell in ["bash", "zsh", "fish", "kubectl"] {
        let answer = five_spot_of("", &["completion", shell]);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(answer.stdout.contains("__complete"), "{shell}: {}", answer.stdout);
    }
    let refused = five_spot_of("", &["completion", "tcsh"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("possible values: bash, zsh, fish, kubectl"), "{refused:?}");
}

#[test]
fn manual_pages_name_every_flag() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let pages = directory.path().join("man1");
    let output = command(&["man", pages.to_str().expect("UTF-8")]).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).expect(name);
    for (name, expected) in [
        ("5spot.1", "5spot\\-explain(1)"),
        ("5spot-doctor.1", "\\-\\-fail\\-on"),
        ("5spot-kubeconfig-create.1", "\\-\\-workload\\-kubeconfig"),
        ("5spot-controller.1", "\\-\\-watch\\-namespace"),
        ("5spot-reclaim-agent.1", "\\-\\-detector"),
    ] {
        let text = page(name);
        assert!(text.contains(expected), "{name} has no {expected}: {text}");
        assert!(text.starts_with(".ie \\n(.g .ds Aq") && text.contains(".TH "), "{name}: {text}");
    }
    assert!(!page("5spot.1").contains("__complete"));
    let examples =
        ".SH NOTES\n.nf\nExamples:\n  5spot explain desk\\-17\n  5spot explain desk\\-17 \\-n desks";
    assert!(page("5spot-explain.1").contains(examples), "{}", page("5spot-explain.1"));
    let refused = command(&["man", "/proc/nowhere"]).output().expect("the program starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.starts_with("error: failed to create /proc/nowhere"), "{said}");
}
