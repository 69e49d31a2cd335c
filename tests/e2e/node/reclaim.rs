//! From the start of a program to the disabled schedule, and the case in which the owner enables it again too early.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::reclaim::{ReclaimRequest, config_map};
use five_spot_api::{ReclaimStage, ReclaimStages, ScheduledMachine};
use five_spot_scenarios::kinds::{MACHINE, NODE, POD};
use five_spot_scenarios::{Environment, Subject, condition};
use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::provider::{ProviderBehaviour, StepBehaviour};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use futures::StreamExt as _;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::runtime::watcher::watch_object;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::agent_pod::{AgentPod, LABEL, WITHIN};
use super::desk::Desk;
use super::owner::{OwnersProgram, processes_called};
use crate::scenarios::{RealControlPlane, View};

pub(crate) fn tests() -> Vec<Test> {
    // Three reclaims, each with a node that joins again.
    tests![the_owner_comes_back].into_iter().map(|test| test.within(Duration::from_mins(8))).collect()
}

/// The time for which a tenant's program runs without effect.
const HARMLESS_FOR: Duration = Duration::from_secs(5);
/// The pods on the node when the owner returns.
const TENANTS: [&str; 3] = ["web", "worker", "java"];

async fn the_owner_comes_back(context: Arc<TestContext>) -> TestResult {
    let desk = Desk::take(&context).await?;
    let real = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
    let result = run_steps(&context, &desk, &real).await;
    desk.leave().await?;
    result.with_context(|| format!("{}\n{}", real.failure_report(), desk.logs()))
}

async fn run_steps(context: &TestContext, desk: &Desk<'_>, clusters: &dyn Environment) -> TestResult {
    clusters.provider(ProviderBehaviour { join: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
    let subject = Subject::make(clusters, json!({"killIfCommands": ["java"]})).await?;
    let phases = Phases::follow(context, subject.name());
    let provider_id = provider_id(&subject.get().await?)?;
    let agent = AgentPod::install(context, &desk.name).await?;
    lend(context, desk, &agent, &subject, &provider_id).await?;
    expect_contract(context, desk, &agent).await?;

    tenants_do_no_harm(context, desk, &agent).await?;
    let program = OwnersProgram::start(context, "java")?;
    let object = subject.until_phase("Disabled").await?;
    reclaimed(context, desk, &subject, &object, 1).await?;
    ensure!(phases.seen().ends_with(&["EmergencyRemove".into(), "Disabled".into()]), "{:?}", phases.seen());
    for pod in TENANTS {
        clusters.until_gone(POD, pod).await?;
    }
    annotated_by_the_agent(context, desk)?;
    described(context, &subject).await?;

    // The program still runs: the agent of the node that joins again finds it at once. The second time that is the agent of
    // the Node before, which has requested its reclaim already: its pod was not collected yet.
    for reclaims in 2..=3 {
        if reclaims == 2 {
            agent.forget_pods().await?;
        }
        subject.set(json!({"schedule": {"enabled": true}})).await?;
        clusters.until(MACHINE, &subject.machine(), "to exist", |machine| !machine.is_null()).await?;
        desk.join(&provider_id).await?;
        let again = |object: &Value| {
            object["status"]["phase"] == "Disabled" && finished_reclaims(object).len() == reclaims
        };
        let object = subject.until("to be Disabled again", again).await?;
        reclaimed(context, desk, &subject, &object, reclaims).await?;
    }
    let rapid = events(context, "RapidReReclaim").await?;
    ensure!(rapid.len() == 1 && rapid[0]["type"] == "Warning", "{rapid:?}");

    // The owner's program has ended: the machine stays.
    drop(program);
    agent.forget_pods().await?;
    subject.set(json!({"schedule": {"enabled": true}})).await?;
    clusters.until(MACHINE, &subject.machine(), "to exist", |machine| !machine.is_null()).await?;
    lend(context, desk, &agent, &subject, &provider_id).await?;
    subject.set(json!({"killSwitch": true})).await?;
    clusters.until_gone(MACHINE, &subject.machine()).await?;
    agent.uninstall().await
}

/// The node joins, the machine is lent and its agent is armed.
async fn lend(
    context: &TestContext,
    desk: &Desk<'_>,
    agent: &AgentPod<'_>,
    subject: &Subject<'_>,
    provider_id: &str,
) -> TestResult {
    desk.join(provider_id).await?;
    subject.until_ready().await?;
    agent.until_ready().await?;
    agent.until_logged(&["configmap applied — rearming scanner", r#""match_commands":"[\"java\"]"#]).await?;
    let state = agent.probe().await?;
    ensure!(state["ready"] == true && state["activity"] == "armed", "{state}");
    // Where no detector was asked for, the pod of the DaemonSet gets events from the kernel.
    ensure!(state["detector"] == "netlink", "{state}; the log:\n{}", agent.log().await?);
    context.note("the agent is armed");
    Ok(())
}

/// The label and the configuration are the controller's work, the machine id the kubelet's.
async fn expect_contract(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let node = nodes.get(&desk.name).await?;
    ensure!(node.labels().get(LABEL).map(String::as_str) == Some("enabled"), "{:?}", node.labels());
    let machine_id = node.status.and_then(|status| status.node_info).map(|info| info.machine_id);
    ensure!(machine_id.as_deref() == Some(desk.machine_id()?), "{machine_id:?}");
    let maps: Api<ConfigMap> = Api::namespaced(context.workload().admin(), SYSTEM_NAMESPACE);
    let map = maps.get(&config_map(&desk.name)).await?;
    let text = map.data.unwrap_or_default().remove("reclaim.toml").unwrap_or_default();
    ensure!(text.contains(r#"match_commands = ["java"]"#), "{text}");
    ensure!(agent.pods().await?.len() == 1);
    // The capability of the manifest, and nothing besides it.
    let (agent_process, _) = processes_called("5spot-reclaim-a")
        .into_iter()
        .find(|(_, cgroup)| cgroup.contains("pod"))
        .context("no agent")?;
    let status = std::fs::read_to_string(format!("/proc/{agent_process}/status"))?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    ensure!(effective == Some("0000000000001000"), "CAP_NET_ADMIN alone, but {effective:?}");
    Ok(())
}

/// The same program in a pod of a tenant does nothing.
async fn tenants_do_no_harm(context: &TestContext, desk: &Desk<'_>, agent: &AgentPod<'_>) -> TestResult {
    desk.tenant("web", &["/bin/busybox", "sleep", "3600"]).await?;
    // Ignores SIGTERM: an emergency gives it no grace period.
    desk.tenant("worker", &["/bin/sh", "-c", "trap '' TERM; while true; do /bin/busybox sleep 1; done"])
        .await?;
    desk.tenant("java", &["/bin/java", "3600"]).await?;
    let pods: Api<Pod> = Api::namespaced(context.workload().admin(), context.namespace());
    for name in TENANTS {
        let running =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        wait::until_present(&pods, name, "to run", WITHIN, running).await?;
    }
    let theirs = processes_called("java");
    ensure!(theirs.len() == 1 && theirs[0].1.contains("/kubepods/"), "{theirs:?}");
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let untouched = |node: Option<&Node>| {
        node.is_some_and(|node| ReclaimRequest::from_annotations(node.annotations()).is_none())
    };
    wait::while_lasting(&nodes, &desk.name, "being left alone", HARMLESS_FOR, untouched).await?;
    ensure!(agent.probe().await?["activity"] == "armed");
    Ok(())
}

/// Everything that a reclaim leaves behind.
async fn reclaimed(
    context: &TestContext,
    desk: &Desk<'_>,
    subject: &Subject<'_>,
    object: &Value,
    reclaims: usize,
) -> TestResult {
    ensure!(object["spec"]["schedule"]["enabled"] == false, "{object}");
    let scheduled = condition(object, "Scheduled");
    ensure!(scheduled["status"] == "False", "{object}");
    ensure!(scheduled["reason"] == "EmergencyReclaimDisabledSchedule", "{object}");
    let records = finished_reclaims(object);
    ensure!(records.len() == reclaims, "{object}");
    ensure!(records[0]["reason"] == "process-match: java" && records[0]["node"] == desk.name, "{object}");
    expect_stages(&records[0])?;
    for reason in ["EmergencyReclaim", "EmergencyReclaimDisabledSchedule"] {
        let found = events(context, reason).await?;
        ensure!(found.len() == reclaims, "{reclaims} events {reason} expected: {found:?}");
        ensure!(found.iter().all(|event| event["type"] == "Warning"), "{found:?}");
    }
    let machines = context.management().admin();
    let machines: Api<kube::api::DynamicObject> =
        Api::namespaced_with(machines, context.namespace(), &MACHINE.resource());
    wait::until_gone(&machines, &subject.machine(), WITHIN).await?;
    let nodes: Api<kube::api::DynamicObject> = Api::all_with(context.workload().admin(), &NODE.resource());
    wait::until_gone(&nodes, &desk.name, WITHIN).await?;
    Ok(())
}

/// The stages of a reclaim follow each other, from the time that the agent has written.
fn expect_stages(record: &Value) -> TestResult {
    let stages: ReclaimStages = serde_json::from_value(record["stages"].clone())?;
    let mut last = SignedDuration::ZERO;
    for stage in [ReclaimStage::Annotated, ReclaimStage::PodsGone, ReclaimStage::MachineDeleted] {
        let after = stages.duration(stage).with_context(|| format!("no {} in {record}", stage.as_str()))?;
        ensure!(after >= last, "{} is not after the stage before: {record}", stage.as_str());
        last = after;
    }
    Ok(())
}

/// The finished entries of the history, newest first.
fn finished_reclaims(object: &Value) -> Vec<Value> {
    let records = object["status"]["reclaims"].as_array().into_iter().flatten();
    records.filter(|record| !record["finishedAt"].is_null()).cloned().collect()
}

/// The one write of the agent: a patch of its own Node, allowed by the shipped role and the shipped policy.
fn annotated_by_the_agent(context: &TestContext, desk: &Desk<'_>) -> TestResult {
    let records = context.workload().audit_log().read(&AuditQuery::all().since(context.begun()))?;
    let user = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:5spot-reclaim-agent");
    let writes: Vec<_> = records
        .iter()
        .filter(|record| record.user == user && record.object.name == desk.name && record.verb == "patch")
        .collect();
    ensure!(writes.len() == 1 && writes[0].code == Some(200), "{writes:?}");
    Ok(())
}

/// The output that a person sees.
async fn described(context: &TestContext, subject: &Subject<'_>) -> TestResult {
    let output = context.kubectl(Side::Management, &["describe", "scheduledmachine", subject.name()]).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["Disabled", "process-match: java", "EmergencyReclaim", "EmergencyReclaimDisabledSchedule"] {
        ensure!(text.contains(part), "no {part} in\n{text}");
    }
    context.note(text);
    Ok(())
}

/// The events of a reason, by the command of the troubleshooting guide.
async fn events(context: &TestContext, reason: &str) -> anyhow::Result<Vec<Value>> {
    let selector = format!("reason={reason}");
    let command = ["get", "events", "--field-selector", &selector, "-o", "json"];
    let output = context.kubectl(Side::Management, &command).await?;
    let list: Value = serde_json::from_slice(&output.stdout)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The id that the provider gives to this machine.
fn provider_id(object: &Value) -> anyhow::Result<String> {
    let spec = &object["spec"]["infrastructureSpec"]["spec"];
    let address = spec["address"].as_str().context("no address")?;
    Ok(format!("remote-machine://{address}:{}", spec["port"]))
}

/// Every phase that an object goes through.
struct Phases {
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Phases {
    fn follow(context: &TestContext, name: &str) -> Self {
        let machines: Api<ScheduledMachine> =
            Api::namespaced(context.management().admin(), context.namespace());
        let seen = Arc::new(Mutex::new(Vec::<String>::new()));
        let (sink, name) = (Arc::clone(&seen), name.to_owned());
        let task = tokio::spawn(async move {
            let mut states = watch_object(machines, &name).boxed();
            while let Some(state) = states.next().await {
                let Ok(Some(object)) = state else { continue };
                let Some(phase) = object.status.and_then(|status| status.phase) else { continue };
                let mut phases = sink.lock().unwrap_or_else(PoisonError::into_inner);
                let phase = phase.to_string();
                if phases.last() != Some(&phase) {
                    phases.push(phase);
                }
            }
        });
        Self { seen, task }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        self.task.abort();
    }
}
