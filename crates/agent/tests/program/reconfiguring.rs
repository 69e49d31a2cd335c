//! The ConfigMap: missing, empty, malformed, deleted, made again.

use crate::agent::{Host, OwnersProgram, SOON};
use crate::server::Server;

#[tokio::test]
async fn without_a_configuration_the_agent_idles() {
    let server = Server::start().await;
    let host = Host::new(&server);
    let _program = OwnersProgram::start("fsp-idle");
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap not found — idle until it appears").await;
    assert_eq!(host.probe(&server).await.1["activity"], "idle");

    server.apply_config("").await;
    agent.logs("configmap applied — rearming scanner").await;
    agent.logs("armed but inert").await;
    assert_eq!(host.probe(&server).await.1["activity"], "inert");

    server.apply_config("match_commands = ['fsp-idle']").await;
    agent.logs("node annotated").await;
}

#[tokio::test]
async fn a_malformed_configuration_keeps_the_last_good_one() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-good']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;

    server.apply_config("match_commands = 'fsp-good'").await;
    let malformed = agent.logs("configmap is malformed — keeping the last good one").await;
    let error = malformed["fields"]["error"].as_str().expect("an error");
    assert_eq!(error, "line 1: match_commands: expected a list, found string");
    assert_eq!(host.probe(&server).await.1["activity"], "armed");
    let _program = OwnersProgram::start("fsp-good");
    agent.logs("node annotated").await;
}

#[tokio::test]
async fn a_deleted_configuration_disarms_until_it_is_made_again() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-gone']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    server.delete_config().await;
    agent.logs("configmap not found — idle until it appears").await;
    let _program = OwnersProgram::start("fsp-gone");
    assert_eq!(host.probe(&server).await.1["activity"], "idle");
    assert!(server.patches().is_empty());
    server.apply_config("match_commands = ['fsp-gone']").await;
    agent.logs("configmap applied — rearming scanner").await;
    agent.logs("node annotated").await;
}

#[tokio::test]
async fn an_agent_whose_detector_cannot_start_is_not_ready() {
    let server = Server::start().await;
    let host = Host::new(&server);
    let processes = tempfile::tempdir().expect("a folder");
    let root = processes.path().join("proc");
    std::fs::create_dir(&root).expect("a folder");
    server.apply_config("match_commands = ['fsp-root']").await;
    let proc_root = format!("--proc-root={}", root.display());
    let mut agent = host.start(&server, &["--detector=poll", &proc_root]);
    agent.logs("configmap applied — rearming scanner").await;
    assert_eq!(host.probe(&server).await.1["activity"], "armed");

    std::fs::remove_dir(&root).expect("the folder");
    server.apply_config("match_commands = ['fsp-root']\n# again").await;
    agent.logs("the detector cannot start — retrying in a second").await;
    let (code, state) = host.probe(&server).await;
    assert_eq!((code, &state["ready"], &state["activity"]), (Some(1), &false.into(), &"starting".into()));

    std::fs::create_dir(&root).expect("the folder again");
    let armed = async {
        while host.probe(&server).await.1["activity"] != "armed" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, armed).await.expect("it is armed soon");
    assert_eq!(host.probe(&server).await.0, Some(0));
}

#[tokio::test]
async fn unknown_keys_are_reported() {
    let server = Server::start().await;
    server.apply_config("match_command = ['java']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    let warning = agent.logs("unknown keys in reclaim.toml have no effect").await;
    assert_eq!(warning["fields"]["keys"], r#"["match_command"]"#);
    agent.logs("armed but inert").await;
}
