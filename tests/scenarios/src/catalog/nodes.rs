//! The Node of a lent machine: its owner wants it back, or it is another than before.

use super::closing::{Held, hold};
use super::taints::{tainted, value_of};
use crate::environment::Environment;
use crate::kinds::{MACHINE, NODE, POD, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{Subject, condition, is_ready};
use anyhow::ensure;
use five_spot_api::names::annotation;
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT, REQUESTED_TRUE};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        emergency_reclaim => 2,
        reclaim_during_a_drain => 2,
        reclaim_waits_for_the_annotation => 5,
        node_replaced_under_its_name => 2,
        node_of_another_machine_under_its_name => 2,
        node_renamed => 25,
    ]
}

/// Pods beside the one with a budget: the controller deletes all of them at once, and their events and the responses come
/// in any order.
const PODS_TO_RECLAIM: usize = 2;

/// No budget delays a reclaim, and the machine is not lent again by itself.
async fn emergency_reclaim(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.pods_on(&node, PODS_TO_RECLAIM, 1).await?;
    reclaim(env, &node).await?;
    reclaimed(env, &subject).await
}

/// An emergency takes precedence over a drain that a budget blocks.
async fn reclaim_during_a_drain(env: &dyn Environment) -> anyhow::Result<Ending> {
    let Held { subject, node, .. } = Held::in_mid_drain(env).await?;
    reclaim(env, &node).await?;
    subject.until("to be switched off", |object| object["spec"]["schedule"]["enabled"] == false).await?;
    let finished = |object: &Value| !object["status"]["reclaims"][0]["finishedAt"].is_null();
    subject.until("to have finished the reclaim", finished).await?;
    env.until_gone(POD, "web").await?;
    let phase = subject.get().await?;
    // The override, which closes the schedule, takes precedence over the disabled schedule.
    ensure!(phase["status"]["phase"] == "Inactive", "{phase}");
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// With `OnAnnotation` only the annotation ends a reclaim, whatever a GitOps tool writes.
async fn reclaim_waits_for_the_annotation(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({"reclaim": {"resume": "OnAnnotation"}})).await?;
    let machine = subject.machine_uid().await?;
    reclaim(env, &subject.node().await?).await?;
    subject.until_phase("Disabled").await?;
    subject.set(json!({"schedule": {"enabled": true}})).await?;
    subject.until_condition("Scheduled", "False", "AwaitingResume").await?;
    let stays_away = |object: &Value| object["status"]["phase"] == "Disabled";
    let for_a_while = Duration::from_secs(5);
    env.lasts(SCHEDULED_MACHINE, subject.name(), "staying away", for_a_while, stays_away).await?;
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "no machine is made");
    // A time before the reclaim belongs to an earlier one.
    subject.annotate(annotation::RESUME, json!("2020-01-01T00:00:00Z")).await?;
    env.lasts(SCHEDULED_MACHINE, subject.name(), "staying away", for_a_while, stays_away).await?;
    subject.annotate(annotation::RESUME, json!(env.now().to_string())).await?;
    subject.until_other_machine(&machine).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// Writes the reclaim request of an agent.
pub(crate) async fn reclaim(env: &dyn Environment, node: &str) -> anyhow::Result<()> {
    let annotations = json!({
        REASON: "process-match: java", REQUESTED_AT: env.now().to_string(),
        REQUESTED: REQUESTED_TRUE,
    });
    env.patch(NODE, node, json!({"metadata": {"annotations": annotations}})).await.map(drop)
}

async fn reclaimed(env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<Ending> {
    let object = subject.until_phase("Disabled").await?;
    ensure!(object["spec"]["schedule"]["enabled"] == false, "{object}");
    let scheduled = condition(&object, "Scheduled");
    ensure!(scheduled["reason"] == "EmergencyReclaimDisabledSchedule", "{object}");
    let records = object["status"]["reclaims"].as_array().cloned().unwrap_or_default();
    ensure!(records.len() == 1 && !records[0]["finishedAt"].is_null(), "{object}");
    ensure!(records[0]["reason"] == "process-match: java", "{object}");
    ensure!(!records[0]["stages"]["machineDeletedAt"].is_null(), "{object}");
    env.until_gone(POD, "web").await?;
    let evicted = env.writes()?.into_iter().find(|write| write.resource == "pods/eviction");
    ensure!(evicted.is_none(), "an owner does not ask budgets: {evicted:?}");
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// The same machine, reinstalled: it is adopted, with everything that belongs to it.
async fn node_replaced_under_its_name(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, tainted("a")).await?;
    let (node, machine) = (subject.node().await?, subject.machine_uid().await?);
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let before = env.get(NODE, &node).await?;
    replace(env, &before, &before["spec"]["providerID"]).await?;
    let other = |object: &Value| {
        let uid = &object["status"]["nodeRef"]["uid"];
        is_ready(object) && !uid.is_null() && *uid != before["metadata"]["uid"]
    };
    subject.until("to have the other Node", other).await?;
    env.until(NODE, &node, "to be tainted", |node| value_of(node, "example.org/desk") == "a").await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Another machine that has joined under the name of ours is never changed, not even when ours is removed.
async fn node_of_another_machine_under_its_name(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, tainted("a")).await?;
    let node = subject.node().await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let before = env.get(NODE, &node).await?;
    replace(env, &before, &json!("remote-machine://192.0.2.99:22")).await?;
    let reported = |object: &Value| {
        let message = condition(object, "MachineReady")["message"].as_str().unwrap_or_default();
        message.contains("their provider IDs differ")
    };
    let reported = subject.until("to tell that the Node is another's", reported).await?;
    ensure!(reported["status"]["phase"] == "Active", "{reported}");
    let before = count_of_node_writes(env)?;
    subject.set(tainted("b")).await?;
    let untouched = |node: &Value| {
        value_of(node, "example.org/desk").is_null() && node["spec"]["unschedulable"].is_null()
    };
    env.lasts(NODE, &node, "being left alone", Duration::from_secs(5), untouched).await?;
    ensure!(count_of_node_writes(env)? == before, "it was written");
    // Cluster API uses only the name: the other Node has to be removed first.
    env.delete(NODE, &node).await?;
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    subject.until_phase("Disabled").await?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// The same machine under another name: Cluster API keeps naming the Node that is gone. It counts as lost, and the other one is
/// left alone, and not forgotten when the Machine is gone.
async fn node_renamed(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    let before = env.get(NODE, &node).await?;
    let renamed = format!("{node}-renamed");
    env.delete(NODE, &node).await?;
    env.until_gone(NODE, &node).await?;
    join(env, &before, &renamed, &before["spec"]["providerID"]).await?;
    let names_it = |object: &Value| {
        let ready = condition(object, "MachineReady");
        let message = ready["message"].as_str().unwrap_or_default();
        ready["status"] == "False"
            && ready["reason"] == "NodeLost"
            && message.contains(&renamed)
            && object["status"]["nodeRef"]["name"] == renamed.as_str()
    };
    let lost = subject.until("to report the lost Node by its new name", names_it).await?;
    ensure!(lost["status"]["phase"] == "Active", "{lost}");
    ensure!(!lost["status"]["join"]["waitingSince"].is_null(), "joinTimeout runs: {lost}");
    let untouched = |node: &Value| node["spec"]["unschedulable"].is_null();
    env.lasts(NODE, &renamed, "being left alone", Duration::from_secs(5), untouched).await?;
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_condition("MachineReady", "False", "NodeLeftBehind").await?;
    env.delete(NODE, &renamed).await?;
    let forgotten = |object: &Value| object["status"]["nodeRef"].is_null();
    subject.until("to forget the Node that is gone", forgotten).await?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}

fn count_of_node_writes(env: &dyn Environment) -> anyhow::Result<usize> {
    Ok(env.writes()?.iter().filter(|write| write.resource == "nodes").count())
}

/// Puts another Node in the place of one, for the machine with this id.
pub(crate) async fn replace(
    env: &dyn Environment,
    before: &Value,
    provider_id: &Value,
) -> anyhow::Result<()> {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    env.delete(NODE, name).await?;
    env.until_gone(NODE, name).await?;
    join(env, before, name, provider_id).await
}

/// Registers a Node under this name, for the machine with this id.
async fn join(env: &dyn Environment, before: &Value, name: &str, provider_id: &Value) -> anyhow::Result<()> {
    // This marks the Node for the kubelets of the real control plane.
    let annotations = json!({"kwok.x-k8s.io/node": "fake"});
    let labels = &before["metadata"]["labels"];
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
    env.create(NODE, json!({"metadata": metadata, "spec": {"providerID": provider_id}})).await?;
    let ready = |node: &Value| condition(node, "Ready")["status"] == "True";
    env.until(NODE, name, "to be Ready", ready).await.map(drop)
}
