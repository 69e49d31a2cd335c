//! The Node of a lent machine: its taints, and its owner who wants it back.

use super::closing::{hold, is_held_by_web};
use crate::kinds::{NODE, POD};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{Subject, condition};
use crate::surroundings::override_until;
use crate::world::World;
use anyhow::ensure;
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT, REQUESTED_TRUE};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![taints_applied_and_changed, taint_in_conflict, emergency_reclaim, reclaim_during_a_drain]
}

/// Ours come, change and go; somebody else's stays.
async fn taints_applied_and_changed(world: &dyn World) -> anyhow::Result<Ending> {
    let taint = |value: &str| json!({"nodeTaints": [{"key": "example.org/desk", "value": value, "effect": "NoSchedule"}]});
    let subject = Subject::lent(world, taint("a")).await?;
    let node = subject.node().await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    world.until(NODE, &node, "to be tainted", |node| value_of(node, "example.org/desk") == "a").await?;
    add_taint(world, &node, json!({"key": "example.org/other", "effect": "NoSchedule"})).await?;
    subject.set(taint("b")).await?;
    let changed = |node: &Value| {
        value_of(node, "example.org/desk") == "b" && !taint_of(node, "example.org/other").is_null()
    };
    world.until(NODE, &node, "to have the new value and the foreign taint", changed).await?;
    subject.set(json!({"nodeTaints": null})).await?;
    let removed = |node: &Value| {
        taint_of(node, "example.org/desk").is_null() && !taint_of(node, "example.org/other").is_null()
    };
    world.until(NODE, &node, "to have the foreign taint alone", removed).await?;
    let owns_none = |object: &Value| object["status"]["appliedNodeTaints"].is_null();
    subject.until("to own no taint", owns_none).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Somebody else's taint of the same key and effect is never overwritten.
async fn taint_in_conflict(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let node = subject.node().await?;
    let theirs = json!({"key": "example.org/desk", "value": "theirs", "effect": "NoSchedule"});
    add_taint(world, &node, theirs).await?;
    let ours = json!({"key": "example.org/desk", "value": "ours", "effect": "NoSchedule"});
    subject.set(json!({"nodeTaints": [ours]})).await?;
    subject.until_condition("NodeTainted", "False", "TaintOwnershipConflict").await?;
    ensure!(value_of(&world.get(NODE, &node).await?, "example.org/desk") == "theirs", "it is left alone");
    remove_taint(world, &node, "example.org/desk").await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    ensure!(value_of(&world.get(NODE, &node).await?, "example.org/desk") == "ours", "now it is ours");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// No budget holds up an owner, and the machine does not come back by itself.
async fn emergency_reclaim(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let node = subject.node().await?;
    hold(world, &node).await?;
    reclaim(world, &node).await?;
    reclaimed(world, &subject).await
}

/// An emergency goes before a drain that a budget holds up.
async fn reclaim_during_a_drain(world: &dyn World) -> anyhow::Result<Ending> {
    let long = json!({"gracefulShutdownTimeout": "10m", "nodeDrainTimeout": "10m"});
    let subject = Subject::lent(world, long).await?;
    let node = subject.node().await?;
    hold(world, &node).await?;
    subject.set(override_until("down", world.in_seconds(36_000))).await?;
    subject.until("to name what holds it", is_held_by_web(world)).await?;
    reclaim(world, &node).await?;
    subject.until("to be switched off", |object| object["spec"]["schedule"]["enabled"] == false).await?;
    let finished = |object: &Value| !object["status"]["reclaims"][0]["finishedAt"].is_null();
    subject.until("to have finished the reclaim", finished).await?;
    world.until_gone(POD, "web").await?;
    let phase = subject.get().await?;
    // The override, which says down, stands above the schedule that was switched off.
    ensure!(phase["status"]["phase"] == "Inactive", "{phase}");
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// What an agent writes when the owner is back.
async fn reclaim(world: &dyn World, node: &str) -> anyhow::Result<()> {
    let annotations = json!({
        REASON: "process-match: java", REQUESTED_AT: world.now().to_string(),
        REQUESTED: REQUESTED_TRUE,
    });
    world.patch(NODE, node, json!({"metadata": {"annotations": annotations}})).await.map(drop)
}

async fn reclaimed(world: &dyn World, subject: &Subject<'_>) -> anyhow::Result<Ending> {
    let object = subject.until_phase("Disabled").await?;
    ensure!(object["spec"]["schedule"]["enabled"] == false, "{object}");
    let scheduled = condition(&object, "Scheduled");
    ensure!(scheduled["reason"] == "EmergencyReclaimDisabledSchedule", "{object}");
    let records = object["status"]["reclaims"].as_array().cloned().unwrap_or_default();
    ensure!(records.len() == 1 && !records[0]["finishedAt"].is_null(), "{object}");
    ensure!(records[0]["reason"] == "process-match: java", "{object}");
    world.until_gone(POD, "web").await?;
    let evicted = world.writes()?.into_iter().find(|write| write.resource == "pods/eviction");
    ensure!(evicted.is_none(), "an owner does not ask budgets: {evicted:?}");
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

fn taint_of<'a>(node: &'a Value, key: &str) -> &'a Value {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.find(|taint| taint["key"] == key).unwrap_or(&Value::Null)
}

fn value_of<'a>(node: &'a Value, key: &str) -> &'a Value {
    &taint_of(node, key)["value"]
}

/// Adds a taint as a person would: read, change, write with the version that was read.
async fn add_taint(world: &dyn World, node: &str, taint: Value) -> anyhow::Result<()> {
    change_taints(world, node, |taints| taints.push(taint.clone())).await
}

async fn remove_taint(world: &dyn World, node: &str, key: &str) -> anyhow::Result<()> {
    change_taints(world, node, |taints| taints.retain(|taint| taint["key"] != key)).await
}

async fn change_taints(
    world: &dyn World,
    node: &str,
    change: impl Fn(&mut Vec<Value>),
) -> anyhow::Result<()> {
    loop {
        let found = world.get(NODE, node).await?;
        let mut taints = found["spec"]["taints"].as_array().cloned().unwrap_or_default();
        change(&mut taints);
        let version = &found["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        match world.patch(NODE, node, patch).await {
            Ok(_) => return Ok(()),
            // Someone else was faster.
            Err(error) if format!("{error:#}").contains("modified") => {}
            Err(error) => return Err(error),
        }
    }
}
