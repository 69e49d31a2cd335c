//! A machine is not wanted any more.

use crate::environment::Environment;
use crate::fixtures::{closed, override_until, window};
use crate::kinds::{BUDGET, MACHINE, POD};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject, condition};
use anyhow::ensure;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        window_closes_and_drains => 3,
        grace_runs_out_with_error => 33,
        grace_runs_out_with_force => 82,
        budget_is_lifted_in_time => 8,
        window_reopens_during_shutdown => 121,
        cordon_before => 3,
        disabled_and_enabled => 5,
        kill_switch_on_and_off => 5,
    ]
}

/// All pods that a node can have leave by eviction before the Machine is deleted.
async fn window_closes_and_drains(env: &dyn Environment) -> anyhow::Result<Ending> {
    // The Cluster may take a while; the window must not be over by then.
    env.make_cluster(CLUSTER_NAME).await?;
    let to = env.next_minute(env.leisurely(25));
    let from = to - SignedDuration::from_hours(1);
    let subject = Subject::make_without_cluster(env, json!({"schedule": window(from, to)})).await?;
    subject.until_ready().await?;
    let node = subject.node().await?;
    env.deployment_on(&node, "web", 2).await?;
    env.pod_on(&node, "solo").await?;
    ensure!(env.now() < to, "the window closed before its node was in use");
    env.step_at(to);
    let inactive = subject.until_phase("Inactive").await?;
    ensure!(env.now() >= to, "it was taken back too early");
    ensure!(inactive["status"]["drain"]["total"] == 3, "{inactive}");
    ensure!(inactive["status"]["drain"]["evicted"] == 3, "{inactive}");
    ensure!(condition(&inactive, "Drained")["status"] == "True", "{inactive}");
    env.until_gone(POD, "solo").await?;
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// At the deadline the status names what blocks the node; the drain continues by itself when the budget is
/// lifted.
async fn grace_runs_out_with_error(env: &dyn Environment) -> anyhow::Result<Ending> {
    let timeout = format!("{}s", env.leisurely(8));
    let spec = json!({"gracefulShutdownTimeout": timeout, "nodeDrainTimeout": timeout});
    let subject = Subject::lent(env, spec).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    subject.until("to name what holds it", is_held_by_web(env)).await?;
    subject.until_condition("Ready", "False", "DrainTimedOut").await?;
    subject.until_phase("Error").await?;
    subject.until_cordoned(&node, true).await?;
    ensure!(!env.get(MACHINE, &subject.machine()).await?.is_null(), "the Machine stays");
    ensure!(!env.get(POD, "web").await?.is_null(), "the pod stays");
    env.delete(BUDGET, "web").await?;
    subject.until_phase("Inactive").await?;
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// At the deadline the Machine is deleted, whatever blocks its node.
async fn grace_runs_out_with_force(env: &dyn Environment) -> anyhow::Result<Ending> {
    let grace = env.leisurely(8);
    let timeout = format!("{grace}s");
    let spec = json!({
        "gracefulShutdownTimeout": timeout, "nodeDrainTimeout": timeout, "drain": {"onTimeout": "Force"},
    });
    let subject = Subject::lent(env, spec).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    let begin = env.now();
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    subject.until_phase("Inactive").await?;
    ensure!(
        env.now().duration_since(begin) >= SignedDuration::from_secs(grace - 1),
        "it went before its time"
    );
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A blocked eviction is shown and retried, and is no error before the deadline.
async fn budget_is_lifted_in_time(env: &dyn Environment) -> anyhow::Result<Ending> {
    let held = Held::in_mid_drain(env).await?;
    let object = &held.object;
    ensure!(object["status"]["phase"] == "ShuttingDown", "{object}");
    ensure!(condition(object, "Drained")["reason"] == "Blocked", "{object}");
    held.release(env).await
}

/// A machine that is wanted again before it is deleted stays, and its node is uncordoned.
async fn window_reopens_during_shutdown(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let (node, machine) = (subject.node().await?, subject.machine_uid().await?);
    let Held { subject, .. } = Held::that(env, subject, env.leisurely(12)).await?;
    subject.until_cordoned(&node, true).await?;
    subject.until_ready().await?;
    subject.until_cordoned(&node, false).await?;
    ensure!(subject.machine_uid().await? == machine, "it is another Machine");
    ensure!(!env.get(POD, "web").await?.is_null(), "the pod stays");
    let object =
        subject.until("to forget the shutdown", |object| object["status"]["drain"].is_null()).await?;
    ensure!(object["status"]["shutdownStartedAt"].is_null(), "{object}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The node takes no more pods some time before the end, and keeps those that it has.
async fn cordon_before(env: &dyn Environment) -> anyhow::Result<Ending> {
    let mut spec = override_until("up", env.in_seconds(36_000));
    spec["schedule"] = closed(env.now());
    let ahead = env.leisurely(15);
    spec["drain"] = json!({"cordonBefore": format!("{ahead}s")});
    let subject = Subject::lent(env, spec).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    subject.until_cordoned(&node, false).await?;
    let until = env.in_seconds(ahead + env.leisurely(10));
    subject.set(override_until("up", until)).await?;
    env.step_at(until);
    subject.until_cordoned(&node, true).await?;
    let early = until - SignedDuration::from_secs(ahead);
    ensure!(env.now() >= early && env.now() < until, "cordoned at {}", env.now());
    let object = subject.get().await?;
    ensure!(object["status"]["phase"] == "Active", "{object}");
    ensure!(!env.get(POD, "solo").await?.is_null(), "the pod stays");
    subject.until_phase("Inactive").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// Disabling removes the machine as gracefully as the end of a window does.
async fn disabled_and_enabled(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    let disabled = subject.until_phase("Disabled").await?;
    ensure!(disabled["status"]["drain"]["evicted"] == 1, "{disabled}");
    env.until_gone(POD, "solo").await?;
    never_deletes_pods(env)?;
    subject.set(json!({"schedule": {"enabled": true}})).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// The kill switch removes the machine at once, in spite of a budget; the machine is lent again when it is
/// off.
async fn kill_switch_on_and_off(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    let before = env.writes()?.len();
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_phase("Terminated").await?;
    // A loop would write hundreds of times a second here. A fault may cost retries, which in an emergency begin
    // after one second: five of them until the Machine is gone, each with a status.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = env.writes()?;
    let since = writes.get(before..).unwrap_or_default();
    ensure!(since.len() <= 18, "{} writes:\n{}", since.len(), crate::oracles::list_writes(since));
    ensure!(!since.iter().any(|write| write.resource.starts_with("pods")), "no pod is asked to go");
    subject.set(json!({"killSwitch": false})).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// Ten minutes to drain.
pub(super) fn slowly() -> Value {
    json!({"gracefulShutdownTimeout": "10m", "nodeDrainTimeout": "10m"})
}

/// A machine that has to be removed, and whose drain a budget blocks.
pub(super) struct Held<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) node: String,
    /// The object when its status named the blocking pod.
    pub(super) object: Value,
}

impl<'a> Held<'a> {
    /// One that has ten minutes to drain, and is unwanted for ten hours.
    pub(super) async fn in_mid_drain(env: &'a dyn Environment) -> anyhow::Result<Self> {
        Self::that(env, Subject::lent(env, slowly()).await?, 36_000).await
    }

    /// A lent machine that is unwanted for this many seconds.
    pub(super) async fn that(
        env: &'a dyn Environment,
        subject: Subject<'a>,
        seconds: i64,
    ) -> anyhow::Result<Self> {
        let node = subject.node().await?;
        hold(env, &node).await?;
        subject.set(override_until("down", env.in_seconds(seconds))).await?;
        let object = subject.until("to name what holds it", is_held_by_web(env)).await?;
        Ok(Self { subject, node, object })
    }

    /// Lifts the budget; the drain completes by eviction alone.
    pub(super) async fn release(self, env: &dyn Environment) -> anyhow::Result<Ending> {
        env.delete(BUDGET, "web").await?;
        self.subject.until_phase("Inactive").await?;
        never_deletes_pods(env)?;
        Ok(Ending::phase(self.subject.name(), "Inactive").machines(1, 1))
    }
}

/// A pod on a node whose eviction a budget blocks.
pub(crate) async fn hold(env: &dyn Environment, node: &str) -> anyhow::Result<()> {
    env.pod_on(node, "web").await?;
    env.budget_for("web").await
}

/// Returns true if status names the pod of [`hold`].
pub(super) fn is_held_by_web(env: &dyn Environment) -> impl Fn(&Value) -> bool + Send + use<> {
    let pod = format!("{}/web", env.namespace());
    move |object| object["status"]["drain"]["blocked"][0]["pod"] == pod.as_str()
}

/// Pods are evicted, never deleted.
pub(super) fn never_deletes_pods(env: &dyn Environment) -> anyhow::Result<()> {
    let writes = env.writes()?;
    let deleted = writes.iter().find(|write| write.verb == "delete" && write.resource == "pods");
    ensure!(deleted.is_none(), "a pod was deleted: {deleted:?}");
    Ok(())
}
