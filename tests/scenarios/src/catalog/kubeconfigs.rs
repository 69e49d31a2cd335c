//! The kubeconfig of the workload cluster: missing, broken, rotated.

use crate::environment::{Environment, ServerState};
use crate::kinds::{MACHINE, NODE, POD, SECRET};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        kubeconfig_appears_later: TwoClusters => 5,
        kubeconfig_deleted_for_a_while: TwoClusters => 5,
        kubeconfig_broken_and_mended: TwoClusters => 2,
        kubeconfig_rotated: TwoClusters => 2,
        one_cluster_hangs: TwoClusters => 2,
    ]
}

/// If a named Secret is missing, Nodes are not looked for elsewhere.
async fn kubeconfig_appears_later(env: &dyn Environment) -> anyhow::Result<Ending> {
    let named = json!({"kubeconfigSecretRef": {"name": "late", "key": "value"}});
    let subject = Subject::make(env, named).await?;
    subject.until_condition("Ready", "False", "NotFound").await?;
    subject.until_condition("ReferencesValid", "False", "NotFound").await?;
    subject.until_phase("Error").await?;
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "nothing is made");
    let text = env.new_kubeconfig().await?;
    env.create(SECRET, json!({"metadata": {"name": "late"}, "stringData": {"value": text}})).await?;
    let ready = subject.until_ready().await?;
    ensure!(ready["status"]["workloadCluster"]["secretName"] == "late", "{ready}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Without its Secret a machine stays as it is, and no Node of the management cluster is taken for its own: not even one
/// with the same name and provider ID.
async fn kubeconfig_deleted_for_a_while(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject =
        Subject::lent(env, json!({"nodeTaints": [{"key": "example.org/desk", "effect": "NoSchedule"}]}))
            .await?;
    let (node, machine) = (subject.node().await?, subject.machine_uid().await?);
    let secret = env.kubeconfig_secret().context("there is a Secret")?;
    let good = env.get(SECRET, &secret).await?;
    let provider_id = env.get(NODE, &node).await?["spec"]["providerID"].clone();
    let decoy = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {"providerID": provider_id},
    });
    let decoys: Api<Node> = Api::all(env.management());
    decoys.create(&PostParams::default(), &serde_json::from_value(decoy)?).await?;
    env.delete(SECRET, &secret).await?;
    subject.until_condition("ReferencesValid", "False", "NotFound").await?;
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    let missing = subject.until_phase("Error").await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays: {missing}");
    let kind = json!({"name": secret, "labels": good["metadata"]["labels"]});
    env.create(SECRET, json!({"metadata": kind, "type": good["type"], "data": good["data"]})).await?;
    subject.until_phase("Disabled").await?;
    let untouched = decoys.get(&node).await?;
    let spec = untouched.spec.unwrap_or_default();
    let is_tainted = spec.taints.iter().flatten().any(|taint| taint.key == "example.org/desk");
    ensure!(spec.unschedulable.is_none() && !is_tainted, "the decoy was touched: {spec:?}");
    decoys.delete(&node, &DeleteParams::default()).await?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// A Secret that becomes invalid while a machine is lent is reported; the machine stays.
async fn kubeconfig_broken_and_mended(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let secret = env.kubeconfig_secret().context("there is a Secret")?;
    let good = env.get(SECRET, &secret).await?["data"]["value"].clone();
    // "broken: [", which is no YAML.
    env.patch(SECRET, &secret, json!({"data": {"value": "YnJva2VuOiBb"}})).await?;
    let broken = subject.until_condition("Ready", "False", "KubeconfigInvalid").await?;
    ensure!(broken["status"]["phase"] == "Error", "{broken}");
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    env.patch(SECRET, &secret, json!({"data": {"value": good}})).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// New credentials are used as soon as they are stored, and the old ones are no longer needed.
async fn kubeconfig_rotated(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let node = subject.node().await?;
    let secret = env.kubeconfig_secret().context("there is a Secret")?;
    let text = env.new_kubeconfig().await?;
    env.patch(SECRET, &secret, json!({"stringData": {"value": text}})).await?;
    let taint = json!({"key": "example.org/desk", "effect": "NoSchedule"});
    subject.set(json!({"nodeTaints": [taint]})).await?;
    subject.until_condition("NodeTainted", "True", "Applied").await?;
    let tainted = |node: &Value| {
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.any(|taint| taint["key"] == "example.org/desk")
    };
    env.until(NODE, &node, "to be tainted", tainted).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Objects of a cluster that accepts connections and never answers wait; objects of others are not affected.
async fn one_cluster_hangs(env: &dyn Environment) -> anyhow::Result<Ending> {
    // More than there are workers, where that costs nothing.
    let others = if env.pace().is_virtual { 24 } else { 4 };
    let subject = Subject::lent(env, json!({})).await?;
    let undisturbed = there_and_back(env, &subject).await?;
    let text = env.kubeconfig_by_another_line().await?;
    env.create(SECRET, json!({"metadata": {"name": "other-line"}, "stringData": {"value": text}})).await?;
    let other_line = json!({"kubeconfigSecretRef": {"name": "other-line", "key": "value"}});
    let mut hanging = Vec::new();
    for number in 0..others {
        let mut spec = other_line.clone();
        spec["infrastructureSpec"] = json!({"spec": {"address": env.address()}});
        hanging.push(Subject::make_another(env, &format!("hanging-{number:02}"), spec).await?);
    }
    for other in &hanging {
        other.until_ready().await?;
    }
    env.set_other_line(ServerState::Silent);
    for other in &hanging {
        other.set(json!({"schedule": {"enabled": false}})).await?;
    }
    let meanwhile = there_and_back(env, &subject).await?;
    ensure!(
        meanwhile < undisturbed * 3 + SignedDuration::from_secs(5),
        "it took {meanwhile} instead of {undisturbed}"
    );
    for other in &hanging {
        let machine = env.get(MACHINE, &other.machine()).await?;
        ensure!(machine["metadata"]["deletionTimestamp"].is_null(), "nobody could drain it: {machine}");
    }
    env.set_other_line(ServerState::Up);
    for other in &hanging {
        other.until_phase("Disabled").await?;
    }
    Ok(Ending::phase(subject.name(), "Active").machines(3, 2))
}

/// Removes a machine with a pod on it and lends it again. Returns the time that this took.
async fn there_and_back(env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<SignedDuration> {
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    let begin = env.now();
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    subject.until_phase("Disabled").await?;
    subject.set(json!({"schedule": {"enabled": true}})).await?;
    subject.until_ready().await?;
    env.until_gone(POD, "solo").await?;
    Ok(env.now().duration_since(begin))
}
