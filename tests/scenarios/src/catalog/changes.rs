//! Changes while a machine is lent.

use super::closing::never_deletes_pods;
use crate::environment::Environment;
use crate::fixtures::closed;
use crate::kinds::{INFRASTRUCTURE, MACHINE, NODE, POD};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{Subject, is_ready};
use anyhow::ensure;
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        schedule_edited_mid_window => 5,
        label_changed_in_place => 2,
        infrastructure_changed_by_replacement => 6,
        machine_deleted_by_hand => 6,
        field_of_ours_edited_by_hand => 2,
        node_lost_and_found => 2,
        node_deleted_by_hand => 2,
    ]
}

/// Another schedule that is open changes nothing; one that is closed removes the machine, and so on.
async fn schedule_edited_mid_window(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    subject.set(json!({"schedule": {"hoursOfDay": ["0-23"]}})).await?;
    subject.until("to tell of the new schedule", is_ready).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    let mut none = closed(env.now());
    none["hoursOfDay"] = Value::Null;
    subject.set(json!({"schedule": none})).await?;
    subject.until_phase("Inactive").await?;
    subject.set(json!({"schedule": {"daysOfWeek": ["mon-sun"], "windows": null}})).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// A change of a label in the template is applied to the existing Machine.
async fn label_changed_in_place(env: &dyn Environment) -> anyhow::Result<Ending> {
    let labels = |row: &str| json!({"machineTemplate": {"labels": {"example.org/row": row}}});
    let subject = Subject::lent(env, labels("3")).await?;
    let machine = subject.machine_uid().await?;
    subject.set(labels("4")).await?;
    let changed = |object: &Value| object["metadata"]["labels"]["example.org/row"] == "4";
    env.until(MACHINE, &subject.machine(), "to have the new label", changed).await?;
    subject.set(json!({"machineTemplate": {"labels": null}})).await?;
    let removed = |object: &Value| object["metadata"]["labels"]["example.org/row"].is_null();
    env.until(MACHINE, &subject.machine(), "to have no such label", removed).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Another machine means another Machine: the old one is removed gracefully first.
async fn infrastructure_changed_by_replacement(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    let address = env.address();
    subject.set(json!({"infrastructureSpec": {"spec": {"address": address}}})).await?;
    let ready = subject.until_other_machine(&machine).await?;
    let provider_id = ready["status"]["providerID"].as_str().unwrap_or_default();
    ensure!(provider_id.contains(&address), "{ready}");
    ensure!(env.get(POD, "solo").await?.is_null(), "the pod was evicted");
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// A Machine that someone deletes while it is wanted is created again.
async fn machine_deleted_by_hand(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    env.delete(MACHINE, &subject.machine()).await?;
    subject.until_other_machine(&machine).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// Edited fields of ours are reset; fields that the provider wrote stay.
async fn field_of_ours_edited_by_hand(env: &dyn Environment) -> anyhow::Result<Ending> {
    let infrastructure = json!({"infrastructureSpec": {"spec": {"user": "root"}}});
    let subject = Subject::lent(env, infrastructure).await?;
    let machine = subject.machine_uid().await?;
    let infrastructure = env.get(INFRASTRUCTURE, &subject.infrastructure()).await?;
    let edit = json!({"spec": {"user": "nobody"}});
    env.patch(INFRASTRUCTURE, &subject.infrastructure(), edit).await?;
    let edit = json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "nowhere"}}});
    env.patch(MACHINE, &subject.machine(), edit).await?;
    let mended = |object: &Value| object["spec"]["user"] == "root";
    let after = env.until(INFRASTRUCTURE, &subject.infrastructure(), "to be mended", mended).await?;
    ensure!(after["spec"]["providerID"] == infrastructure["spec"]["providerID"], "{after}");
    let mended = |object: &Value| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "edge";
    env.until(MACHINE, &subject.machine(), "to be mended", mended).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A node that stops reporting is shown in the status, and nothing else is done: its machine may return.
async fn node_lost_and_found(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let node = subject.node().await?;
    env.silence(&node, true).await?;
    subject.until_condition("MachineReady", "False", "NodeNotReady").await?;
    subject.until_phase("Active").await?;
    env.silence(&node, false).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A machine whose Node someone deletes has nothing to drain when it is removed.
async fn node_deleted_by_hand(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    env.delete(NODE, &node).await?;
    let gone = subject.until_condition("MachineReady", "False", "NodeLost").await?;
    ensure!(gone["status"]["phase"] == "Active", "{gone}");
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    subject.until_phase("Disabled").await?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}
