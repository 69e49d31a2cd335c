//! The taints of a Node, ours and those of others.

use crate::environment::Environment;
use crate::kinds::NODE;
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use five_spot_api::names::annotation::FORCE_RECONCILE;
use five_spot_standins::{ProviderBehaviour, StepBehaviour};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        taints_applied_and_changed => 2,
        taint_in_conflict => 2,
        taints_while_others_change_theirs => 2,
        taints_wait_and_fail_with_a_reason: TwoClusters => 2,
    ]
}

/// The number of changes of our taints while others change theirs.
const CHANGES: u32 = 20;

/// The number of changes by others without a pause.
const BURST: u32 = 40;

/// The spec with one taint of this value.
pub(super) fn tainted(value: &str) -> Value {
    json!({"nodeTaints": [{"key": "example.org/desk", "value": value, "effect": "NoSchedule"}]})
}

/// Ours are added, changed and removed; a foreign taint stays.
async fn taints_applied_and_changed(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, tainted("a")).await?;
    let node = subject.node().await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    env.until(NODE, &node, "to be tainted", |node| value_of(node, "example.org/desk") == "a").await?;
    add_taint(env, &node, json!({"key": "example.org/other", "effect": "NoSchedule"})).await?;
    subject.set(tainted("b")).await?;
    let changed = |node: &Value| {
        value_of(node, "example.org/desk") == "b" && !taint_of(node, "example.org/other").is_null()
    };
    env.until(NODE, &node, "to have the new value and the foreign taint", changed).await?;
    subject.set(json!({"nodeTaints": null})).await?;
    let removed = |node: &Value| {
        taint_of(node, "example.org/desk").is_null() && !taint_of(node, "example.org/other").is_null()
    };
    env.until(NODE, &node, "to have the foreign taint alone", removed).await?;
    let owns_none = |object: &Value| object["status"]["appliedNodeTaints"].is_null();
    subject.until("to own no taint", owns_none).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Someone else's taint of the same key and effect is never overwritten.
async fn taint_in_conflict(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    let theirs = json!({"key": "example.org/desk", "value": "theirs", "effect": "NoSchedule"});
    add_taint(env, &node, theirs).await?;
    let ours = json!({"key": "example.org/desk", "value": "ours", "effect": "NoSchedule"});
    subject.set(json!({"nodeTaints": [ours]})).await?;
    subject.until_condition("NodeTainted", "False", "TaintOwnershipConflict").await?;
    ensure!(value_of(&env.get(NODE, &node).await?, "example.org/desk") == "theirs", "it is left alone");
    remove_taint(env, &node, "example.org/desk").await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    ensure!(value_of(&env.get(NODE, &node).await?, "example.org/desk") == "ours", "now it is ours");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Others change their taints as fast as they can, as the node lifecycle controller does, and ours change meanwhile: no
/// change is lost.
async fn taints_while_others_change_theirs(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, tainted("0")).await?;
    let node = subject.node().await?;
    let count = watch::Sender::new(0);
    let ours = async {
        for change in 1..=CHANGES {
            let value = change.to_string();
            subject.set(tainted(&value)).await?;
            let changed = |node: &Value| value_of(node, "example.org/desk") == value.as_str();
            env.until(NODE, &node, "to have the new value", changed).await?;
            // There are always more of theirs.
            count.subscribe().wait_for(|count| *count >= 10 * change).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ours = ours => ours?,
        theirs = patch_repeatedly(env, &node, &count) => theirs?,
    }
    let count = *count.borrow();
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let found = env.get(NODE, &node).await?;
    // The last of their changes may have been in flight when counting ended.
    let theirs: u32 = value_of(&found, "example.org/count").as_str().unwrap_or_default().parse()?;
    ensure!(theirs == count || theirs == count + 1, "theirs, after {count}: {found}");
    ensure!(value_of(&found, "example.org/desk") == CHANGES.to_string().as_str(), "ours: {found}");
    // How many there were differs from run to run.
    change_taints(env, &node, |taints| {
        taints.retain(|taint| taint["key"] != "example.org/count" && taint["key"] != "example.org/flip");
    })
    .await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Counts up in one taint, and adds and removes another one, endlessly. Any overwritten change is detected.
async fn patch_repeatedly(
    env: &dyn Environment,
    node: &str,
    counted: &watch::Sender<u32>,
) -> anyhow::Result<()> {
    // In virtual time, the clock would not advance without a pause, and timers would not fire.
    let pause = if env.pace().is_virtual { Duration::from_secs(1) } else { Duration::from_millis(1) };
    for count in 0_u32.. {
        let (before, now) = (count.to_string(), (count + 1).to_string());
        let lost = AtomicBool::new(false);
        change_taints(env, node, |taints| {
            let value =
                |key: &str| taints.iter().find(|taint| taint["key"] == key).map(|taint| &taint["value"]);
            let kept = value("example.org/count").is_none_or(|value| *value == before.as_str());
            let flipped = value("example.org/flip").is_some() == (count % 2 == 1);
            lost.store(
                !kept || !flipped || (count > 0 && value("example.org/count").is_none()),
                Ordering::SeqCst,
            );
            taints.retain(|taint| taint["key"] != "example.org/count" && taint["key"] != "example.org/flip");
            taints.push(json!({"key": "example.org/count", "value": now, "effect": "PreferNoSchedule"}));
            if count % 2 == 0 {
                taints.push(json!({"key": "example.org/flip", "effect": "NoSchedule"}));
            }
        })
        .await
        .with_context(|| format!("change {now}"))?;
        ensure!(!lost.load(Ordering::SeqCst), "change {before} of others was lost");
        counted.send_replace(count + 1);
        if count % BURST == 0 {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(())
}

/// Every reason why taints are not applied yet, one after the other; the fifth is the conflict.
async fn taints_wait_and_fail_with_a_reason(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.provider(ProviderBehaviour { provision: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
    let subject = Subject::make(env, tainted("a")).await?;
    subject.until_condition("NodeTainted", "Unknown", "NoNodeYet").await?;
    env.provider(ProviderBehaviour::default());
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let node = subject.node().await?;
    env.silence(&node, true).await?;
    subject.until_condition("NodeTainted", "False", "NodeNotReady").await?;
    subject.set(tainted("b")).await?;
    subject.until_condition("NodeTainted", "False", "NodeNotReady").await?;
    ensure!(value_of(&env.get(NODE, &node).await?, "example.org/desk") == "a", "what is there stays");
    env.silence(&node, false).await?;
    env.until(NODE, &node, "to have the new value", |node| value_of(node, "example.org/desk") == "b").await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    env.allow_node_writes(false).await?;
    subject.set(tainted("c")).await?;
    subject.until_condition("NodeTainted", "False", "PatchFailed").await?;
    env.allow_node_writes(true).await?;
    // It would be retried after half a minute.
    subject.annotate(FORCE_RECONCILE, json!("now")).await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    env.until(NODE, &node, "to have the new value", |node| value_of(node, "example.org/desk") == "c").await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

fn taint_of<'a>(node: &'a Value, key: &str) -> &'a Value {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.find(|taint| taint["key"] == key).unwrap_or(&Value::Null)
}

pub(super) fn value_of<'a>(node: &'a Value, key: &str) -> &'a Value {
    &taint_of(node, key)["value"]
}

/// Adds a taint as a person would: read, change, write with the version that was read.
async fn add_taint(env: &dyn Environment, node: &str, taint: Value) -> anyhow::Result<()> {
    change_taints(env, node, |taints| taints.push(taint.clone())).await
}

async fn remove_taint(env: &dyn Environment, node: &str, key: &str) -> anyhow::Result<()> {
    change_taints(env, node, |taints| taints.retain(|taint| taint["key"] != key)).await
}

async fn change_taints(
    env: &dyn Environment,
    node: &str,
    change: impl Fn(&mut Vec<Value>),
) -> anyhow::Result<()> {
    loop {
        let found = env.get(NODE, node).await?;
        let mut taints = found["spec"]["taints"].as_array().cloned().unwrap_or_default();
        change(&mut taints);
        let version = &found["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        match env.patch(NODE, node, patch).await {
            Ok(_) => return Ok(()),
            // Someone else was faster.
            Err(error) if format!("{error:#}").contains("modified") => {}
            Err(error) => return Err(error),
        }
    }
}
