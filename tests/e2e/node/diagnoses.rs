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
use serde_json::{Value, json};

use super::agent_pod::{AgentPod, LABEL, WITHIN};
use super::desk::Desk;
use super::doctor::Doctor;
use super::owner::OwnersProgram;
use crate::permissions::deploy;

pub(crate) fn tests() -> Vec<Test> {
    // Every change of the DaemonSet is another pod, and the doctor expects none on a node that has just joined.
    let tests = tests![an_agent_that_does_not_fire_is_explained, pod_security_that_refuses_the_agent_says_so];
    tests.into_iter().map(|test| test.within(Duration::from_mins(20))).collect()
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
    let doctor = Doctor::of(context, &desk.name).await?;
    label_missing(context, desk, agent).await?;
    config_map_missing(context, desk, agent).await?;
    nothing_matches(context, desk, agent).await?;
    events_refused(context, agent, desk, &doctor).await?;
    events_swallowed(agent, desk, &doctor).await?;
    no_host_network(agent, &doctor).await?;
    no_host_pid(agent, &doctor).await?;
    command_line_only(context, desk, agent).await?;
    label_lost(agent, &doctor).await
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
async fn events_refused(
    context: &TestContext,
    agent: &AgentPod<'_>,
    desk: &Desk<'_>,
    doctor: &Doctor<'_>,
) -> TestResult {
    // The first argument is AF_NETLINK.
    let refused = with_fault(desk, "no-netlink.json", &fault("socket", 1, (0, 16)))?;
    agent.change_both(refused, json!({}), &[("RECLAIM_DETECTOR", "netlink")]).await?;
    agent
        .until_logged(&["Subscriber::new() failed: netlink i/o: EPERM", "CAP_NET_ADMIN", "--detector=poll"])
        .await?;
    let finding = doctor.finds("agent-netlink-eperm").await?;
    // The guide's remedy, literally.
    let target = "ds/5spot-reclaim-agent";
    kubectl(context, &["set", "env", "-n", SYSTEM_NAMESPACE, target, "RECLAIM_DETECTOR=poll"]).await?;
    agent.until_ready().await?;
    ensure!(agent.probe().await?["detector"] == "poll");
    doctor.until_gone(&finding).await
}

/// A kernel that accepts the subscription and sends nothing (`agent-no-events`). A seccomp profile answers for the kernel: the
/// last argument of `sendto` is the length of a netlink address, which no other socket of the agent has.
async fn events_swallowed(agent: &AgentPod<'_>, desk: &Desk<'_>, doctor: &Doctor<'_>) -> TestResult {
    let swallowed = with_fault(desk, "no-events.json", &fault("sendto", 0, (5, 12)))?;
    let unconfirmed = "did not confirm the subscription";
    agent.change_both(swallowed.clone(), json!({}), &[("RECLAIM_DETECTOR", "auto")]).await?;
    agent.until_logged(&[unconfirmed, "falling back to --detector=poll"]).await?;
    agent.until_ready().await?;
    ensure!(agent.probe().await?["detector"] == "poll");

    agent.change_both(swallowed, json!({}), &[("RECLAIM_DETECTOR", "netlink")]).await?;
    agent.until_logged(&["the agent cannot start", unconfirmed]).await?;
    agent.until_exited(1).await?;
    let finding = doctor.finds("agent-no-events").await?;
    doctor.fix(&finding, "kubectl set env").await?;
    agent.until_ready().await?;
    ensure!(agent.probe().await?["detector"] == "poll");
    Ok(())
}

/// A seccomp profile in which a system call with this value of one argument is not made, and has this result instead.
fn fault(call: &str, result: u32, (argument, value): (u32, u64)) -> Value {
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{
            "names": [call], "action": "SCMP_ACT_ERRNO", "errnoRet": result,
            "args": [{"index": argument, "value": value, "op": "SCMP_CMP_EQ"}],
        }],
    })
}

/// The patch of a pod's spec for this profile.
fn with_fault(desk: &Desk<'_>, name: &str, profile: &Value) -> anyhow::Result<Value> {
    let profile = desk.seccomp_profile(name, profile)?;
    Ok(json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": profile}}}))
}

/// The command of the doctor that restores the DaemonSet.
const RESTORE: &str = "kubectl apply -k deploy/node-agent/";

/// Without the network of the host the kernel cannot be reached (`agent-netlink-unreachable`).
async fn no_host_network(agent: &AgentPod<'_>, doctor: &Doctor<'_>) -> TestResult {
    let pod_network = json!({"hostNetwork": false});
    agent.change_both(pod_network, json!({}), &[("RECLAIM_DETECTOR", "netlink")]).await?;
    agent.until_logged(&["netlink i/o: ECONNREFUSED", "hostNetwork: true"]).await?;
    let finding = doctor.finds("agent-netlink-unreachable").await?;
    doctor.fix(&finding, RESTORE).await
}

/// Without the processes of the host there is nothing to match, and no events (`agent-hostpid-missing`).
async fn no_host_pid(agent: &AgentPod<'_>, doctor: &Doctor<'_>) -> TestResult {
    agent.change(json!({"hostPID": false})).await?;
    agent.until_logged(&["only the processes of this pod are visible: set hostPID: true"]).await?;
    agent.until_logged(&["process events are not available — falling back to --detector=poll"]).await?;
    let finding = doctor.finds("agent-hostpid-missing").await?;
    doctor.fix(&finding, RESTORE).await
}

/// The label of a node that was opted in is removed (`agent-label-missing`).
async fn label_lost(agent: &AgentPod<'_>, doctor: &Doctor<'_>) -> TestResult {
    agent.label(false).await?;
    let finding = doctor.finds("agent-label-missing").await?;
    doctor.fix(&finding, "kubectl label node").await?;
    agent.until_ready().await
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
