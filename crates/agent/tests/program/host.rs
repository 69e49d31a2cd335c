//! Hosts that lack something: the agent says what, and works where it can.
//!
//! `unshare` makes the namespaces of a pod without `hostNetwork` or `hostPID`, which needs root.

use crate::agent::{Agent, Host, OwnersProgram};
use crate::server::Server;

const POD_NETWORK: [&str; 3] = ["/usr/bin/unshare", "--net", "--"];
const POD_PROCESSES: [&str; 6] =
    ["/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
const WITHOUT_CAPABILITIES: [&str; 6] =
    ["/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--"];

#[tokio::test]
async fn a_pod_network_is_named_as_the_cause() {
    let server = Server::start().await;
    let host = Host::new(&server);
    let mut agent = Agent::new(host.command(&server, &POD_NETWORK, &["--detector=netlink"]));
    let line = agent.logs("the agent cannot start").await;
    let error = line["fields"]["error"].as_str().expect("an error");
    for part in
        ["Subscriber::new() failed", "netlink i/o: ECONNREFUSED", "hostNetwork: true", "--detector=poll"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(agent.wait().await, Some(1));

    let mut agent = Agent::new(host.command(&server, &POD_NETWORK, &["--detector=auto"]));
    let warning = agent.logs("falling back to --detector=poll").await;
    assert_eq!(warning["level"], "WARN");
    assert_eq!(agent.logs("agent started").await["fields"]["detector"], "poll");
}

#[tokio::test]
async fn a_missing_host_pid_is_reported() {
    let server = Server::start().await;
    let host = Host::new(&server);
    server.apply_config("match_commands = ['fsp-outside']").await;
    let _program = OwnersProgram::start("fsp-outside");
    let mut agent = Agent::new(host.command(&server, &POD_PROCESSES, &[]));
    let warning = agent.logs("set hostPID: true").await;
    assert_eq!(warning["level"], "WARN");
    agent.logs("falling back to --detector=poll").await;
    agent.logs("configmap applied — rearming scanner").await;
    assert!(server.patches().is_empty());
}

#[tokio::test]
async fn new_kernels_need_no_capability() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-nocap']").await;
    let host = Host::new(&server);
    host.open_to_everybody();
    let mut agent = Agent::new(host.command(&server, &WITHOUT_CAPABILITIES, &["--detector=auto"]));
    let detector = agent.logs("agent started").await["fields"]["detector"].clone();
    agent.logs("configmap applied — rearming scanner").await;
    let _program = OwnersProgram::start("fsp-nocap");
    agent.logs("node annotated").await;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0_u32));
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    assert_eq!(detector, if version >= (6, 6) { "netlink" } else { "poll" }, "kernel {release}");
}
