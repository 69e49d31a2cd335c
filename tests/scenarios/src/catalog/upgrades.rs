//! Lent machines and two versions of 5-Spot: the controller of the version before has lent them, or the CRD is still the one of that
//! version.

use super::nodes::reclaim;
use crate::agent_configs::{agent_configs, until_agent_config};
use crate::claims::{claim_on, until_claim};
use crate::environment::Environment;
use crate::kinds::{DEFINITION, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use five_spot_api::names::{SYSTEM_NAMESPACE, annotation};
use five_spot_api::reclaim::{CONFIG_KEY, config_map};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        upgraded_while_lent => 40,
        upgraded_during_a_reclaim => 60,
        reclaimed_under_the_previous_crd: VirtualTime => 60,
    ]
}

/// The version before made no claims, and did not note the Node of an agent's configuration. Both are added; the machine and what the
/// agent looks for stay.
async fn upgraded_while_lent(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({"killIfCommands": ["java"]})).await?;
    let (node, machine, address) =
        (subject.node().await?, subject.machine_uid().await?, address(&subject).await?);
    until_agent_config(env, &node, |config| config.is_some()).await?;
    until_claim(env, &address, |lease| !lease.is_null()).await?;
    env.stop_controller().await?;

    let leases: Api<Lease> = Api::namespaced(env.management(), SYSTEM_NAMESPACE);
    let claim = claim_on(env, &address).await?;
    let claim = claim["metadata"]["name"].as_str().context("a claim has a name")?;
    leases.delete(claim, &DeleteParams::default()).await?;
    let unnoted = Patch::Merge(json!({"metadata": {"annotations": {annotation::AGENT_NODE_UID: null}}}));
    let before = agent_configs(env).patch(&config_map(&node), &PatchParams::default(), &unnoted).await?;

    env.start_controller().await?;
    until_claim(env, &address, |lease| {
        lease["spec"]["holderIdentity"] == format!("{}/desk", env.namespace())
    })
    .await?;
    let text = |config: &ConfigMap| config.data.as_ref().and_then(|data| data.get(CONFIG_KEY)).cloned();
    until_agent_config(env, &node, |config| {
        config.is_some_and(|config| {
            config.annotations().contains_key(annotation::AGENT_NODE_UID) && text(config) == text(&before)
        })
    })
    .await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The version before recorded a reclaim without its stages. This one finishes it.
async fn upgraded_during_a_reclaim(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({"reclaim": {"podGracePeriod": "30s"}})).await?;
    let node = subject.node().await?;
    env.pods_on(&node, 1, 20).await?;
    reclaim(env, &node).await?;
    let recorded = |object: &Value| !object["status"]["reclaims"][0].is_null();
    let object = subject.until("to record the reclaim", recorded).await?;
    env.stop_controller().await?;
    let mut record = object["status"]["reclaims"][0].clone();
    ensure!(record["finishedAt"].is_null(), "the reclaim is finished already: {record}");
    ensure!(record.as_object_mut().is_some_and(|record| record.remove("stages").is_some()), "{object}");
    env.patch_status(SCHEDULED_MACHINE, subject.name(), json!({"reclaims": [record]})).await?;
    env.start_controller().await?;
    finished(&subject).await
}

/// After a rollback of the CRD the API server drops parts of the status. The reclaim is still finished, and nothing is
/// written repeatedly.
async fn reclaimed_under_the_previous_crd(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let previous: Value = serde_saphyr::from_str(include_str!("../../../crd/previous.yaml"))?;
    let name = previous["metadata"]["name"].as_str().context("a CRD has a name")?;
    env.patch(DEFINITION, name, json!({"spec": {"versions": previous["spec"]["versions"]}})).await?;
    let node = subject.node().await?;
    env.pods_on(&node, 1, 1).await?;
    reclaim(env, &node).await?;
    let ending = finished(&subject).await?;
    let record = subject.get().await?["status"]["reclaims"][0].clone();
    ensure!(record["stages"].is_null(), "the CRD of the version before has no place for it: {record}");
    Ok(ending)
}

/// Waits until the reclaim has been carried out.
async fn finished(subject: &Subject<'_>) -> anyhow::Result<Ending> {
    let object = subject.until_phase("Disabled").await?;
    ensure!(!object["status"]["reclaims"][0]["finishedAt"].is_null(), "{object}");
    ensure!(object["spec"]["schedule"]["enabled"] == false, "{object}");
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// The address of its physical machine.
pub(super) async fn address(subject: &Subject<'_>) -> anyhow::Result<String> {
    let object = subject.get().await?;
    let address = object["spec"]["infrastructureSpec"]["spec"]["address"].as_str();
    address.map(str::to_owned).with_context(|| format!("no address in {object}"))
}
