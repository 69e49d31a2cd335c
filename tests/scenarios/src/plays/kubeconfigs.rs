//! The way into the workload cluster: missing, broken, rotated.

use crate::kinds::{MACHINE, NODE, SECRET};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use crate::world::World;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        kubeconfig_appears_later: TwoClusters,
        kubeconfig_broken_and_mended: TwoClusters,
        kubeconfig_rotated: TwoClusters,
    ]
}

/// A named Secret that is not there is no reason to look for Nodes elsewhere.
async fn kubeconfig_appears_later(world: &dyn World) -> anyhow::Result<Ending> {
    let named = json!({"kubeconfigSecretRef": {"name": "late", "key": "value"}});
    let subject = Subject::make(world, named).await?;
    subject.until_condition("Ready", "False", "KubeconfigInvalid").await?;
    subject.until_phase("Error").await?;
    ensure!(world.get(MACHINE, &subject.machine()).await?.is_null(), "nothing is made");
    let text = world.new_kubeconfig().await?;
    world.create(SECRET, json!({"metadata": {"name": "late"}, "stringData": {"value": text}})).await?;
    let ready = subject.until_ready().await?;
    ensure!(ready["status"]["workloadCluster"]["secretName"] == "late", "{ready}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A Secret that is spoilt while a machine is lent is told of; the machine stays.
async fn kubeconfig_broken_and_mended(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let secret = world.kubeconfig_secret().context("there is a Secret")?;
    let good = world.get(SECRET, &secret).await?["data"]["value"].clone();
    // "broken: [", which is no YAML.
    world.patch(SECRET, &secret, json!({"data": {"value": "YnJva2VuOiBb"}})).await?;
    let broken = subject.until_condition("Ready", "False", "KubeconfigInvalid").await?;
    ensure!(broken["status"]["phase"] == "Error", "{broken}");
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    world.patch(SECRET, &secret, json!({"data": {"value": good}})).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// New credentials are used as soon as they are there, and the old ones are not needed any more.
async fn kubeconfig_rotated(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let node = subject.node().await?;
    let secret = world.kubeconfig_secret().context("there is a Secret")?;
    let text = world.new_kubeconfig().await?;
    world.patch(SECRET, &secret, json!({"stringData": {"value": text}})).await?;
    let taint = json!({"key": "example.org/desk", "effect": "NoSchedule"});
    subject.set(json!({"nodeTaints": [taint]})).await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let tainted = |node: &Value| {
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.any(|taint| taint["key"] == "example.org/desk")
    };
    world.until(NODE, &node, "to be tainted", tainted).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}
