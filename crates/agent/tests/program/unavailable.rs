//! An API server that is away, and a token that is replaced.

use crate::agent::{Host, OwnersProgram};
use crate::server::Server;
use http::StatusCode;

#[tokio::test]
async fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    let mut server = Server::start().await;
    server.apply_config("match_commands = ['fsp-late']").await;
    server.stop().await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    let failure = agent.logs("watching the configuration failed — retrying").await;
    assert_eq!(failure["level"], "WARN");
    let (code, state) = host.probe(&server).await;
    assert_eq!((code, &state["activity"]), (Some(1), &"starting".into()), "not ready before the first read");
    server.restart().await;
    agent.logs("configmap applied — rearming scanner").await;
    assert_eq!(host.probe(&server).await.0, Some(0));
}

#[tokio::test]
async fn a_match_while_the_api_server_is_away_is_reported_later() {
    let mut server = Server::start().await;
    server.apply_config("match_commands = ['fsp-away']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    server.stop().await;
    let program = OwnersProgram::start("fsp-away");
    agent.logs("annotating the node failed — retrying").await;
    assert_eq!(host.probe(&server).await.0, Some(0), "an API server that is away is no fault of the agent");
    // The program ending takes nothing back.
    drop(program);
    server.restart().await;
    agent.logs("node annotated").await;
    assert_eq!(server.patches(), [StatusCode::OK]);
}

#[tokio::test]
async fn a_restarted_api_server_does_not_arm_the_agent_again() {
    let mut server = Server::start().await;
    let _program = OwnersProgram::start("fsp-restart");
    server.apply_config("match_commands = ['fsp-restart']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("node annotated").await;
    server.restart().await;
    agent.logs("watching the configuration again").await;
    assert_eq!(host.probe(&server).await.1["activity"], "fired");
    assert_eq!(server.patches(), [StatusCode::OK]);
}

#[tokio::test]
async fn watches_that_fail_at_once_are_retried_ever_later() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-watch']").await;
    server.fail_watches(StatusCode::INTERNAL_SERVER_ERROR);
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    for longest in [1000, 2000, 4000] {
        let failure = agent.logs("watching the configuration failed — retrying").await;
        assert!(failure["fields"]["error"].as_str().is_some_and(|error| error.contains("etcd is away")));
        let delay = failure["fields"]["retry_in_ms"].as_u64().expect("a number");
        assert!((longest * 3 / 4..=longest).contains(&delay), "{failure}");
    }
    // The configuration that was read is in force.
    let _program = OwnersProgram::start("fsp-watch");
    agent.logs("node annotated").await;
}

/// An API server that has compacted its history tells every watch to begin with a list.
#[tokio::test]
async fn a_watch_that_has_expired_begins_with_a_list_again() {
    let server = Server::start().await;
    server.fail_watches(StatusCode::GONE);
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap not found — idle until it appears").await;
    server.apply_config("match_commands = ['fsp-expired']").await;
    agent.logs("configmap applied — rearming scanner").await;
    let _program = OwnersProgram::start("fsp-expired");
    agent.logs("node annotated").await;
    assert_eq!(server.patches(), [StatusCode::OK]);
}

#[tokio::test]
async fn an_agent_killed_before_its_annotation_writes_it_later() {
    let mut server = Server::start().await;
    server.apply_config("match_commands = ['fsp-killed']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    server.stop().await;
    let mut program = OwnersProgram::start("fsp-killed");
    agent.logs("annotating the node failed — retrying").await;
    agent.kill().await;
    server.restart().await;
    let mut agent = host.start(&server, &[]);
    agent.logs("node annotated").await;
    assert!(program.is_running());
    assert_eq!(server.patches(), [StatusCode::OK]);
    assert_eq!(host.probe(&server).await.0, Some(0), "the socket of the one before is replaced");
}

/// An agent does not remember what it has requested: the owner's program that still runs is a reason to request it again.
#[tokio::test]
async fn an_agent_that_is_killed_after_it_annotated_does_so_again() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-killed-2']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    let mut program = OwnersProgram::start("fsp-killed-2");
    agent.logs("node annotated").await;
    agent.kill().await;
    let before = server.annotations().await;
    let mut agent = host.start(&server, &[]);
    agent.logs("node annotated").await;
    assert_eq!(server.patches(), [StatusCode::OK, StatusCode::OK]);
    let after = server.annotations().await;
    assert_eq!((&after[..2], after.len()), (&before[..2], 3));
    assert!(after[2].1 > before[2].1, "a later time: {after:?}");
    assert!(program.is_running());
}

#[tokio::test]
async fn a_token_that_was_rotated_is_used() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-token']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    server.set_token("second-token");
    let _program = OwnersProgram::start("fsp-token");
    let refused = agent.logs("annotating the node was refused").await;
    assert!(refused["fields"]["error"].as_str().is_some_and(|error| error.contains("401")), "{refused}");
    host.renew_token(&server);
    agent.logs("node annotated").await;
}

#[tokio::test]
async fn an_api_server_with_another_certificate_is_not_trusted() {
    let server = Server::start().await;
    let impostor = Server::start().await;
    let host = Host::new(&server);
    let mut agent = crate::agent::Agent::new(host.command(&impostor, &[], &[]));
    let failure = agent.logs("watching the configuration failed").await;
    assert!(
        failure["fields"]["error"].as_str().is_some_and(|error| error.contains("certificate")),
        "{failure}"
    );
    assert!(impostor.requests().is_empty(), "no token was sent");
}
