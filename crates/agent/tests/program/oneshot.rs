//! `--oneshot` and its exit codes.

use crate::agent::{Host, OwnersProgram};
use crate::server::{Server, own_node};
use five_spot_agent::annotate;
use five_spot_api::reclaim::ReclaimRequest;

async fn run(server: &Server, host: &Host, arguments: &[&str]) -> Option<i32> {
    let arguments: Vec<&str> = ["--oneshot"].iter().chain(arguments).copied().collect();
    host.command(server, &[], &arguments).output().await.expect("a process").status.code()
}

#[tokio::test]
async fn the_exit_code_shows_the_outcome() {
    let mut server = Server::start().await;
    let host = Host::new(&server);
    assert_eq!(run(&server, &host, &[]).await, Some(3), "no ConfigMap");
    server.apply_config("match_commands = ['fsp-oneshot']").await;
    assert_eq!(run(&server, &host, &[]).await, Some(3), "nothing matches");

    let _program = OwnersProgram::start("fsp-oneshot");
    host.set_machine_id("ffffffffffffffffffffffffffffffff");
    assert_eq!(run(&server, &host, &[]).await, Some(1), "the API server refuses");
    assert_eq!(server.annotations().await, []);
    assert_eq!(run(&server, &host, &["--skip-host-id-check"]).await, Some(0), "matched and annotated");
    assert_eq!(server.annotations().await.len(), 3);

    server.apply_config("match_commands = [").await;
    assert_eq!(run(&server, &host, &[]).await, Some(1), "malformed");
    server.stop().await;
    assert_eq!(run(&server, &host, &[]).await, Some(1), "the API server is away");
}

#[tokio::test]
async fn a_process_that_cannot_be_read_is_a_failure() {
    let server = Server::start().await;
    let host = Host::new(&server);
    server.apply_config("match_commands = ['fsp-unread']").await;
    let root = tempfile::tempdir().expect("a folder");
    let flag = format!("--proc-root={}", root.path().display());
    std::fs::create_dir(root.path().join("7")).expect("a process");
    assert_eq!(run(&server, &host, &[&flag]).await, Some(3), "it has no name: it is gone");
    std::fs::create_dir(root.path().join("7/comm")).expect("a name, which cannot be read");
    assert_eq!(run(&server, &host, &[&flag]).await, Some(1));
}

/// A folder other than the kernel's describes a process by the files that are there.
#[tokio::test]
async fn a_name_and_a_command_line_make_a_process() {
    let server = Server::start().await;
    let host = Host::new(&server);
    server.apply_config("match_argv_substrings = ['needle 60']").await;
    let root = tempfile::tempdir().expect("a folder");
    let flag = format!("--proc-root={}", root.path().display());
    let process = root.path().join("4711");
    std::fs::create_dir(&process).expect("a process");
    std::fs::write(process.join("comm"), "fsp-two-files\n").expect("a name");
    std::fs::write(process.join("cmdline"), "needle\x0060\0").expect("a command line");
    assert_eq!(run(&server, &host, &[&flag]).await, Some(0), "by its command line");
    server.apply_config("match_commands = ['fsp-two-files']").await;
    assert_eq!(run(&server, &host, &[&flag]).await, Some(0), "by its name");
    server.apply_config("match_commands = ['fsp-two-files']\nmatch_uids = [0]").await;
    assert_eq!(run(&server, &host, &[&flag]).await, Some(3), "its user is not known");
    std::fs::write(process.join("cgroup"), "0::/kubepods/besteffort/x\n").expect("a cgroup");
    server.apply_config("match_commands = ['fsp-two-files']").await;
    assert_eq!(run(&server, &host, &[&flag]).await, Some(3), "it is in a pod");
}

#[tokio::test]
async fn bad_arguments_exit_with_2_and_missing_needs_with_1() {
    let server = Server::start().await;
    let host = Host::new(&server);
    for arguments in [&["--detector=ebpf"][..], &["--node-name=A/B"], &["--no-such-flag"]] {
        let output = host.command(&server, &[], arguments).output().await.expect("a process");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let mut command = host.command(&server, &[], &[]);
    let output = command.env("RUST_LOG", "five_spot=loud").output().await.expect("a process");
    assert_eq!(output.status.code(), Some(2));
    for (variable, value) in [
        ("MACHINE_ID_PATH", "/nonexistent"),
        ("RECLAIM_PROC_ROOT", "/nonexistent"),
        ("KUBERNETES_SERVICE_HOST", ""),
    ] {
        let mut command = host.command(&server, &[], &[]);
        let output = command.env(variable, value).output().await.expect("a process");
        assert_eq!(output.status.code(), Some(1), "{variable}={value}");
        let line: serde_json::Value =
            serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').rev().nth(1).expect("a line"))
                .expect("JSON");
        assert_eq!(line["fields"]["message"], "the agent cannot start");
    }
}

#[tokio::test]
async fn the_patch_is_accepted_with_and_without_annotations() {
    let server = Server::start().await;
    let request = annotate::request_for("java", "2026-11-17T08:30:00Z".parse().expect("a time"));
    let patch = annotate::patch(&own_node(), &request, true).to_string();
    let (code, node) = server
        .request(http::Method::PATCH, "/api/v1/nodes/desk-1", "application/json-patch+json", &patch)
        .await;
    assert!(code.is_success(), "{node}");
    let annotations = serde_json::from_value(node["metadata"]["annotations"].clone()).expect("a map");
    assert_eq!(ReclaimRequest::from_annotations(&annotations), Some(request));
}
