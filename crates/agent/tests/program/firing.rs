//! From the start of a program to the annotations.

use crate::agent::{Host, OwnersProgram};
use crate::server::Server;

#[tokio::test]
async fn a_program_that_starts_annotates_the_node_once() {
    for (detector, name) in [("netlink", "fsp-once-n"), ("poll", "fsp-once-p"), ("auto", "fsp-once-a")] {
        let server = Server::start().await;
        server.apply_config(&format!("match_commands = ['{name}']")).await;
        let host = Host::new(&server);
        let mut agent = host.start(&server, &[&format!("--detector={detector}")]);
        let armed = agent.logs("configmap applied — rearming scanner").await;
        assert_eq!(armed["level"], "INFO");
        assert_eq!(host.probe(&server).await.0, Some(0));

        let mut program = OwnersProgram::start(name);
        let matched = agent.logs("process matched").await;
        assert_eq!(matched["fields"]["matched_pattern"], name);
        assert_eq!(matched["fields"]["pid"], program.pid());
        agent.logs("node annotated — reclaim requested").await;

        let annotations = server.annotations().await;
        let keys: Vec<&str> = annotations.iter().map(|(key, _)| key.as_str()).collect();
        let expected = ["reclaim-reason", "reclaim-requested", "reclaim-requested-at"];
        assert_eq!(keys, expected.map(|key| format!("5spot.finos.org/{key}")));
        assert_eq!(annotations[0].1, format!("process-match: {name}"));
        assert_eq!(annotations[1].1, "true");
        let _: jiff::Timestamp = annotations[2].1.parse().expect("RFC 3339");

        // A second program changes nothing: the agent is silent, and has touched neither of them.
        let mut second = OwnersProgram::start(name);
        assert_eq!(host.probe(&server).await.1["activity"], "fired");
        assert!(program.is_running() && second.is_running());
        assert_eq!(agent.terminate().await, Some(0));
        assert_eq!(server.patches().len(), 1, "{detector}: {:?}", server.requests());
    }
}

#[tokio::test]
async fn a_program_that_runs_already_annotates_the_node() {
    let server = Server::start().await;
    let program = OwnersProgram::start("fsp-already");
    server.apply_config("match_commands = ['fsp-already']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    let matched = agent.logs("process matched").await;
    assert_eq!(matched["fields"]["pid"], program.pid());
    agent.logs("node annotated").await;
}

/// A command line lies in the memory of its process. A pipe that nobody writes to stands for one that never answers.
#[tokio::test]
async fn a_process_whose_command_line_hangs_hides_no_other() {
    let server = Server::start().await;
    server.apply_config("match_argv_substrings = ['needle']").await;
    let host = Host::new(&server);
    let root = tempfile::tempdir().expect("a folder");
    for pid in ["7", "8"] {
        let process = root.path().join(pid);
        std::fs::create_dir(&process).expect("a process");
        let write = |file: &str, text: &str| std::fs::write(process.join(file), text).expect("a file");
        write("comm", "x\n");
        write("cgroup", "0::/user.slice\n");
        write("stat", "7 (x) S 1 1 1 0 -1 64 0\n");
    }
    std::fs::write(root.path().join("8/cmdline"), "x\0needle\0").expect("a file");
    let pipe = std::process::Command::new("mkfifo").arg(root.path().join("7/cmdline")).status();
    assert!(pipe.expect("mkfifo").success());

    let proc_root = format!("--proc-root={}", root.path().display());
    let mut agent = host.start(&server, &["--detector=poll", &proc_root]);
    let stalled = agent.logs("the command line of a process cannot be read").await;
    assert_eq!(stalled["level"], "WARN");
    assert_eq!(stalled["fields"]["pid"], 7);
    assert_eq!(agent.logs("process matched").await["fields"]["pid"], 8);
    agent.logs("node annotated").await;
}

/// Process events are about other processes than those of the folder, so that `auto` polls it.
#[tokio::test]
async fn a_process_in_another_process_list_is_found_later() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-elsewhere']").await;
    let host = Host::new(&server);
    let root = tempfile::tempdir().expect("a folder");
    let mut agent = host.start(&server, &[&format!("--proc-root={}", root.path().display())]);
    let warning = agent.logs("falling back to --detector=poll").await;
    assert_eq!(warning["level"], "WARN");
    agent.logs("configmap applied — rearming scanner").await;
    let process = root.path().join("4711");
    std::fs::create_dir(&process).expect("a process");
    std::fs::write(process.join("comm"), "fsp-elsewhere\n").expect("a name");
    std::fs::write(process.join("cmdline"), "fsp-elsewhere\0").expect("a command line");
    assert_eq!(agent.logs("process matched").await["fields"]["pid"], 4711);
    agent.logs("node annotated").await;
}

#[tokio::test]
async fn applying_the_configuration_again_fires_again() {
    let server = Server::start().await;
    let _program = OwnersProgram::start("fsp-again");
    server.apply_config("match_commands = ['fsp-again']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("node annotated").await;
    server.apply_config("match_commands = ['fsp-again']\n# again").await;
    agent.logs("configmap applied — rearming scanner").await;
    agent.logs("node annotated").await;
    assert_eq!(server.patches().len(), 2);
}

#[tokio::test]
async fn a_node_of_another_machine_is_never_annotated() {
    let server = Server::start().await;
    let _program = OwnersProgram::start("fsp-foreign");
    server.apply_config("match_commands = ['fsp-foreign']").await;
    let host = Host::new(&server);
    host.set_machine_id("ffffffffffffffffffffffffffffffff");
    let mut agent = host.start(&server, &[]);
    let refused = agent.logs("annotating the node was refused — retrying").await;
    assert_eq!(refused["level"], "ERROR");
    assert!(
        refused["fields"]["cause"].as_str().is_some_and(|cause| cause.contains("machine id")),
        "{refused}"
    );
    assert_eq!(server.annotations().await, []);
    assert_eq!(host.probe(&server).await.1["activity"], "annotating", "it keeps trying");
}

#[tokio::test]
async fn a_node_that_was_deleted_is_annotated_when_it_is_back() {
    let server = Server::start().await;
    server.delete("/api/v1/nodes/desk-1").await;
    let _program = OwnersProgram::start("fsp-deleted");
    server.apply_config("match_commands = ['fsp-deleted']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("annotating the node was refused").await;
    // The kubelet reports its machine id after the Node was made; both are tolerated.
    server.create_node(None);
    agent.logs("annotating the node failed").await;
    server.delete("/api/v1/nodes/desk-1").await;
    server.create_node(Some(crate::server::MACHINE_ID));
    agent.logs("node annotated").await;
    assert_eq!(server.annotations().await.len(), 3);
}
