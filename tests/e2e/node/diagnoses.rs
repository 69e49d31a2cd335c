//! The troubleshooting guide for an agent that does not fire: each cause is created, and found by the command
//! that the guide names.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::reclaim::{ReclaimRequest, config_map};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::agent_pod::{AgentPod, LABEL, WITHIN};
use super::desk::Desk;
use super::owner::OwnersProgram;
use crate::permissions::deploy;

pub(crate) fn tests() -> Vec<Test> {
    // Every change of the DaemonSet is another pod.
    let tests = tests![an_agent_that_does_not_fire_is_explained, pod_security_that_refuses_the_agent_says_so];
    tests.into_iter().map(|test| test.within(Duration::from_mins(8))).collect()
}

/// The time without an event after which none is expected: ten times the agent's interval of polling.
const NOTHING_FOR: Duration = Duration::from_millis(2500);

async fn an_agent_that_does_not_fire_is_explained(context: Arc<TestContext>) -> TestResult {
    let desk = Desk::take(&context).await?;
    desk.join("remote-machine://diagnoses:22").await?;
    let agent = AgentPod::install(&context, &desk.name).await?;
    let explained = explain(&context, &desk, &agent).await;
    let removed = agent.uninstall().await;
    desk.leave().await?;
    explained.and(removed).with_context(|| desk.logs())
}

async fn explain(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    label_missing(context, desk, agent).await?;
    config_map_missing(context, desk, agent).await?;
    nothing_matches(context, desk, agent).await?;
    events_refused(agent, desk).await?;
    no_host_network(agent).await?;
    no_host_pid(agent).await?;
    command_line_only(context, desk, agent).await
}

/// No pod lands on the node: its label is missing (`agent-label-missing`).
async fn label_missing(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    let labels = kubectl(context, &["get", "node", &desk.name, "--show-labels"]).await?;
    ensure!(!labels.contains(LABEL), "{labels}");
    ensure!(agent.pods().await?.is_empty(), "a node that was not opted in has an agent");
    agent.label(true).await?;
    agent.until_ready().await
}

/// Without a ConfigMap the agent idles (`agent-config-missing`).
async fn config_map_missing(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    let name = config_map(&desk.name);
    let command = ["get", "configmap", "-n", SYSTEM_NAMESPACE, &name];
    let output = context.kubectl(Side::Workload, &command).await?;
    let refused = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && refused.contains("NotFound"), "{refused}");
    agent.until_logged(&["configmap not found — idle until it appears", &name]).await?;
    ensure!(agent.probe().await?["activity"] == "idle");
    Ok(())
}

/// Empty lists (`agent-config-empty`) and the wrong case (`agent-case-mismatch`): nothing matches. The log shows what the
/// agent looks for.
async fn nothing_matches(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    let _java = OwnersProgram::start(context, "java")?;
    for (toml, logged, activity) in [
        ("match_commands = []\nmatch_argv_substrings = []\n", r#""match_commands":"[]"#, "inert"),
        ("match_commands = [\"Java\"]\n", r#""match_commands":"[\"Java\"]"#, "armed"),
    ] {
        agent.configure(toml).await?;
        agent.until_logged(&["configmap applied — rearming scanner", logged]).await?;
        nothing_happens(context, desk).await?;
        let state = agent.probe().await?;
        ensure!(state["activity"] == activity, "{state}");
    }
    Ok(())
}

/// A kernel that refuses events (`agent-netlink-eperm`): the agent exits if it is configured to use them, and works by
/// polling as the guide says. Kernels from 6.6 on always permit events, so a seccomp profile refuses them here.
async fn events_refused(agent: &AgentPod<'_>, desk: &Desk<'_>) -> TestResult {
    let profile = desk.seccomp_profile(
        "no-netlink.json",
        &json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [{
                "names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
                // AF_NETLINK.
                "args": [{"index": 0, "value": 16, "op": "SCMP_CMP_EQ"}],
            }],
        }),
    )?;
    let refused =
        json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": profile}}});
    agent.change_both(refused.clone(), json!({}), &[("RECLAIM_DETECTOR", "netlink")]).await?;
    agent
        .until_logged(&["Subscriber::new() failed: netlink i/o: EPERM", "CAP_NET_ADMIN", "--detector=poll"])
        .await?;
    // The guide's remedy, on the DaemonSet itself.
    agent.change_both(refused, json!({}), &[("RECLAIM_DETECTOR", "poll")]).await?;
    agent.until_ready().await?;
    ensure!(agent.probe().await?["detector"] == "poll");
    Ok(())
}

/// Without the network of the host the kernel cannot be reached (`agent-netlink-unreachable`).
async fn no_host_network(agent: &AgentPod<'_>) -> TestResult {
    let pod_network = json!({"hostNetwork": false});
    agent.change_both(pod_network, json!({}), &[("RECLAIM_DETECTOR", "netlink")]).await?;
    agent.until_logged(&["netlink i/o: ECONNREFUSED", "hostNetwork: true"]).await.map(drop)
}

/// Without the processes of the host there is nothing to match, and no events (`agent-hostpid-missing`).
async fn no_host_pid(agent: &AgentPod<'_>) -> TestResult {
    agent.change(json!({"hostPID": false})).await?;
    agent.until_logged(&["only the processes of this pod are visible: set hostPID: true"]).await?;
    agent
        .until_logged(&["process events are not available — falling back to --detector=poll"])
        .await
        .map(drop)
}

/// A wrapper whose command line names the program is matched by its command line alone.
async fn command_line_only(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    agent.change(json!({})).await?;
    agent.until_ready().await?;
    let _wrapper = OwnersProgram::start_as(context, "java-wrapper", "/opt/jdk/bin/java")?;
    agent.configure("match_commands = [\"java\"]\n").await?;
    agent.until_logged(&["configmap applied — rearming scanner", r#""match_commands":"[\"java\"]"#]).await?;
    nothing_happens(context, desk).await?;
    agent.configure("match_argv_substrings = [\"/opt/jdk/bin/java\"]\n").await?;
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let requested = |node: &Node| ReclaimRequest::from_annotations(node.annotations()).is_some();
    let node = wait::until_present(&nodes, &desk.name, "to be annotated", WITHIN, requested).await?;
    let request = ReclaimRequest::from_annotations(node.annotations()).context("a request")?;
    ensure!(request.reason == "process-match: /opt/jdk/bin/java", "{request:?}");
    agent
        .until_logged(&[r#""matched_pattern":"/opt/jdk/bin/java""#, r#""comm":"java-wrapper""#])
        .await
        .map(drop)
}

async fn nothing_happens(context: &TestContext, desk: &Desk<'_>) -> TestResult {
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let untouched = |node: Option<&Node>| {
        node.is_some_and(|node| ReclaimRequest::from_annotations(node.annotations()).is_none())
    };
    Ok(wait::while_lasting(&nodes, &desk.name, "being left alone", NOTHING_FOR, untouched).await?)
}

/// A namespace at the level `restricted`, or at `baseline`, admits no pod of the agent; the DaemonSet's events say why
/// (`agent-blocked-by-pod-security`).
async fn pod_security_that_refuses_the_agent_says_so(context: Arc<TestContext>) -> TestResult {
    let admin = context.workload().admin();
    crate::kubernetes::ready_node(&context).await?;
    let mut applier = Applier::new(admin.clone());
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": context.namespace(), "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    });
    applier.apply(&namespace, "").await?;
    let mut daemon_set = manifests::read(&deploy("node-agent/daemonset.yaml"))?.remove(0);
    daemon_set["metadata"]["namespace"] = context.namespace().into();
    let spec = &mut daemon_set["spec"]["template"]["spec"];
    spec["serviceAccountName"] = "default".into();
    // Any node will do, because no pod is ever created.
    spec["nodeSelector"] = json!({});
    applier.apply(&daemon_set, context.namespace()).await?;
    let events: Api<Event> = Api::namespaced(admin, context.namespace());
    let refused = async {
        loop {
            let found = events.list(&ListParams::default().fields("reason=FailedCreate")).await?;
            let said = found.items.into_iter().filter_map(|event| event.message);
            if let Some(message) = said.into_iter().find(|message| message.contains("violates PodSecurity")) {
                return anyhow::Ok(message);
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    let message = tokio::time::timeout(WITHIN, refused).await??;
    for part in ["restricted", "host namespaces", "NET_ADMIN", "hostPath"] {
        ensure!(message.contains(part), "no {part} in {message}");
    }
    Ok(())
}

async fn kubectl(context: &TestContext, arguments: &[&str]) -> anyhow::Result<String> {
    let output = context.kubectl(Side::Workload, arguments).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
