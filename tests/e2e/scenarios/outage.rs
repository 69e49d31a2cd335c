//! A machine that is returned while its workload cluster does not respond, neither to the controller nor to
//! Cluster API.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_scenarios::kinds::{ClusterRole, MACHINE, NODE};
use five_spot_scenarios::{Environment, ServerState, Subject, condition};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::environment::{RealControlPlane, View};
use super::{LONG, another_control_plane};

/// The length of the outage, unless `FIVE_SPOT_OUTAGE_SECS` is set: longer than the ten seconds after which
/// Cluster API by default gives up a Node that it cannot delete.
const OUTAGE: Duration = Duration::from_secs(25);

/// The time that a Machine waits for the deletion of its Node, as the controller sets it.
const NODE_DELETION_TIMEOUT: Duration = Duration::from_hours(1);

/// Twice the guaranteed latency of the kill switch: other tests use the same processors.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

/// The time limit for events, which are sent after the status.
const REPORTED_WITHIN: Duration = Duration::from_secs(30);

/// The interval between two reads of the events.
const ASK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn tests() -> Vec<Test> {
    let returns = concat!(module_path!(), "::own_control_plane::no_node_is_left_behind_after_an_outage");
    let never_returns = concat!(module_path!(), "::own_control_plane::a_node_that_was_given_up_is_reported");
    vec![
        Test::new(returns, |_| no_node_is_left_behind_after_an_outage()).within(LONG + outage()),
        Test::new(never_returns, |_| a_node_that_was_given_up_is_reported()).within(LONG + outage()),
    ]
}

fn outage() -> Duration {
    let chosen = std::env::var("FIVE_SPOT_OUTAGE_SECS").ok().and_then(|seconds| seconds.parse().ok());
    chosen.map_or(OUTAGE, Duration::from_secs)
}

async fn no_node_is_left_behind_after_an_outage() -> TestResult {
    let of_its_own = ControlPlaneOfItsOwn::start("outage").await?;
    let result = returns_in_time(&of_its_own.real, &of_its_own.context).await;
    of_its_own.stop(result).await
}

async fn a_node_that_was_given_up_is_reported() -> TestResult {
    let of_its_own = ControlPlaneOfItsOwn::start("given-up").await?;
    let result = is_given_up(&of_its_own.real, &of_its_own.context).await;
    of_its_own.stop(result).await
}

/// A control plane whose workload cluster no other test needs.
struct ControlPlaneOfItsOwn {
    context: Arc<TestContext>,
    real: RealControlPlane,
}

impl ControlPlaneOfItsOwn {
    async fn start(name: &str) -> anyhow::Result<Self> {
        let context = Arc::new(another_control_plane(name).await?.test_context(name).await?);
        let real = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
        Ok(Self { context, real })
    }

    /// Stops the control plane. A failure is shown with the controller's writes and log.
    async fn stop(&self, result: TestResult) -> TestResult {
        let result =
            result.with_context(|| self.real.failure_report()).with_context(|| self.context.timeline());
        self.context.clusters().stop().await?;
        result
    }
}

/// Lends a machine, disconnects the workload cluster and sets the kill switch. Returns the object and its
/// Node.
async fn killed_in_silence<'e>(
    real: &RealControlPlane,
    env: &'e dyn Environment,
) -> anyhow::Result<(Subject<'e>, String)> {
    let subject = Subject::lent(env, json!({})).await?;
    let (node, machine) = (subject.node().await?, subject.machine());
    real.set_api_server(ClusterRole::Workload, ServerState::Silent).await?;
    subject.set(json!({"killSwitch": true})).await?;
    let is_deleted =
        |machine: &Value| machine.is_null() || !machine["metadata"]["deletionTimestamp"].is_null();
    let deleted =
        tokio::time::timeout(DELETED_WITHIN, env.until(MACHINE, &machine, "deleted", is_deleted)).await;
    deleted.context("the Machine was not deleted in time")??;
    Ok((subject, node))
}

/// The workload cluster returns while Cluster API still waits for it.
async fn returns_in_time(real: &RealControlPlane, context: &TestContext) -> TestResult {
    let env: &dyn Environment = real;
    let (subject, node) = killed_in_silence(real, env).await?;
    tokio::time::sleep(outage()).await;
    // Cluster API still tries to delete the Node: the Machine reports that, and the object does not report
    // completion.
    let (object, left) = (subject.get().await?, env.get(MACHINE, &subject.machine()).await?);
    context.note(format!("at the end of the outage: {}\n{}", object["status"], left["status"]["conditions"]));
    ensure!(!left.is_null(), "the Machine went without its Node");
    ensure!(condition(&object, "Ready")["status"] == "False", "{object}");
    real.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    subject.until_phase("Terminated").await?;
    env.until_gone(NODE, &node).await?;
    subject.until_nothing_left().await?;
    eprintln!("{}", context.timeline());
    Ok(())
}

/// The workload cluster is away for longer than the hour for which a Machine waits for the deletion of its
/// Node. Unless `FIVE_SPOT_OUTAGE_SECS` is longer, the hour is shortened on the Machine.
async fn is_given_up(real: &RealControlPlane, context: &TestContext) -> TestResult {
    let env: &dyn Environment = real;
    let (subject, node) = killed_in_silence(real, env).await?;
    let machine = subject.machine();
    let lent = subject.get().await?;
    let stored = env.get(MACHINE, &machine).await?;
    let waits = stored["spec"]["deletion"]["nodeDeletionTimeoutSeconds"].as_u64();
    ensure!(waits == Some(NODE_DELETION_TIMEOUT.as_secs()), "{stored}");
    if outage() > NODE_DELETION_TIMEOUT {
        tokio::time::sleep(outage()).await;
    } else {
        let at_once = json!({"spec": {"deletion": {"nodeDeletionTimeoutSeconds": 1}}});
        env.patch(MACHINE, &machine, at_once).await?;
    }
    // The machine is returned. The state of its Node is still unknown.
    env.until_gone(MACHINE, &machine).await?;
    let object = subject.until_condition("Ready", "True", "Terminated").await?;
    context.note(format!("given up: {}", object["status"]));
    let (cluster, unknown) = (&lent["status"]["workloadCluster"], condition(&object, "MachineReady"));
    ensure!(object["status"]["phase"] == "Terminated", "{object}");
    remembers(&object, &node, cluster)?;
    ensure!(unknown["reason"] == "NoMachine", "{unknown}");
    let message = unknown["message"].as_str().unwrap_or_default();
    ensure!(message.contains("unreachable") && message.contains(&node), "{message}");
    ensure!(left_behind(env).await?.is_empty(), "reported although the cluster could not be read");

    real.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    let object = subject.until_condition("MachineReady", "False", "NodeLeftBehind").await?;
    context.note(format!("after the outage: {}", object["status"]));
    remembers(&object, &node, cluster)?;
    ensure!(condition(&object, "Ready")["status"] == "True", "{object}");
    ensure!(!env.get(NODE, &node).await?.is_null(), "Cluster API has given it up, so it is still there");
    until_reported(env, &subject, &node).await?;

    env.delete(NODE, &node).await?;
    let object = subject.until("without its Node", |object| object["status"]["nodeRef"].is_null()).await?;
    ensure!(object["status"]["workloadCluster"].is_null(), "{object}");
    ensure!(condition(&object, "MachineReady")["reason"] == "NoMachine", "{object}");
    ensure!(left_behind(env).await?.len() == 1, "reported more than once");
    eprintln!("{}", context.timeline());
    Ok(())
}

/// Fails unless the status still names the Node and its cluster.
fn remembers(object: &Value, node: &str, cluster: &Value) -> TestResult {
    let status = &object["status"];
    ensure!(status["nodeRef"]["name"] == node, "the Node is forgotten: {object}");
    ensure!(
        !cluster.is_null() && status["workloadCluster"] == *cluster,
        "its cluster is forgotten: {object}"
    );
    Ok(())
}

/// The events about Nodes that were left behind.
async fn left_behind(env: &dyn Environment) -> anyhow::Result<Vec<Event>> {
    let events: Api<Event> = Api::namespaced(env.management(), env.namespace());
    Ok(events.list(&ListParams::default().fields("reason=NodeLeftBehind")).await?.items)
}

/// Waits for the event about a Node that was left behind: one warning on the object, with the name of the
/// Node.
async fn until_reported(env: &dyn Environment, subject: &Subject<'_>, node: &str) -> TestResult {
    let found = async {
        loop {
            if let Some(event) = left_behind(env).await?.pop() {
                return anyhow::Ok(event);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    let event = tokio::time::timeout(REPORTED_WITHIN, found).await.context("no event NodeLeftBehind")??;
    let about = event.regarding.as_ref().and_then(|object| object.name.as_deref());
    ensure!(event.type_.as_deref() == Some("Warning") && about == Some(subject.name()), "{event:?}");
    ensure!(event.note.as_deref().is_some_and(|note| note.contains(node)), "{event:?}");
    Ok(())
}
