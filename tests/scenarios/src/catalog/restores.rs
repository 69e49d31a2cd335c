//! The object is restored from a backup, alone or with everything that was created for it: with other UIDs, and owner
//! references to objects that no longer exist.

use super::closing::{Held, is_held_by_web};
use super::upgrades::address;
use crate::agent_configs::{agent_configs, until_agent_config};
use crate::claims::{claim_on, until_claim};
use crate::environment::Environment;
use crate::kinds::{BOOTSTRAP, CLUSTER, INFRASTRUCTURE, MACHINE, ObjectKind, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject};
use anyhow::{Context as _, ensure};
use five_spot_api::names::{self, SYSTEM_NAMESPACE, annotation};
use five_spot_api::reclaim::config_map;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ObjectMeta, PostParams, PropagationPolicy};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        restored_from_a_backup => 2,
        restored_in_mid_drain => 2,
        restored_with_stale_owners => 96,
        restored_with_everything => 96,
    ]
}

/// The object is restored with another UID next to its Machine: the Machine is adopted, not created twice.
async fn restored_from_a_backup(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    restore(env, &subject).await?;
    env.start_controller().await?;
    belongs(env, &subject).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The node was cordoned before the restore: 5-Spot still uncordons it.
async fn restored_in_mid_drain(env: &dyn Environment) -> anyhow::Result<Ending> {
    let Held { subject, node, .. } = Held::in_mid_drain(env).await?;
    let machine = subject.machine_uid().await?;
    restore(env, &subject).await?;
    env.start_controller().await?;
    subject.until("to name what holds it", is_held_by_web(env)).await?;
    subject.set(json!({"override": null})).await?;
    belongs(env, &subject).await?;
    subject.until_cordoned(&node, false).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// As in the first, and its Machine still refers to the old UID. Either the garbage collector deletes it as an orphan
/// or the controller adopts it first; in the end there is one Machine, with the right owner.
async fn restored_with_stale_owners(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let stale = env.get(MACHINE, &subject.machine()).await?["metadata"]["ownerReferences"].clone();
    restore(env, &subject).await?;
    let patch = json!({"metadata": {"ownerReferences": stale}});
    env.patch(MACHINE, &subject.machine(), patch).await?;
    env.start_controller().await?;
    belongs(env, &subject).await?;
    tokio::time::sleep(env.pace().settled_after).await;
    belongs(env, &subject).await?;
    let others = usize::from(subject.machine_uid().await? != machine);
    Ok(Ending::phase(subject.name(), "Active").machines(1 + others, others))
}

/// Everything is restored: the object, its Machine and what belongs to that, its claim and the configuration of its
/// agent, each with another UID, each with the owners that it had. It is adopted or created again, and never twice.
async fn restored_with_everything(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({"killIfCommands": ["java"]})).await?;
    let (node, address) = (subject.node().await?, address(&subject).await?);
    until_agent_config(env, &node, |config| config.is_some()).await?;
    until_claim(env, &address, |lease| !lease.is_null()).await?;
    env.stop_controller().await?;
    // The other controllers are stopped too while objects are removed and restored.
    env.patch(CLUSTER, CLUSTER_NAME, json!({"spec": {"paused": true}})).await?;
    let things = [
        (SCHEDULED_MACHINE, subject.name().to_owned()),
        (MACHINE, subject.machine()),
        (INFRASTRUCTURE, subject.infrastructure()),
        (BOOTSTRAP, names::bootstrap(subject.name())),
    ];
    let mut backups = Vec::new();
    for (kind, name) in &things {
        backups.push((*kind, env.get(*kind, name).await?));
    }
    for (kind, name) in &things {
        take_away(env, *kind, name).await?;
    }
    for (kind, backup) in backups.iter().rev() {
        let metadata = &backup["metadata"];
        let kept = ["name", "labels", "annotations", "ownerReferences", "finalizers"];
        let kept: Value = kept.iter().map(|field| ((*field).to_owned(), metadata[*field].clone())).collect();
        let restored = env.create(*kind, json!({"metadata": kept, "spec": backup["spec"]})).await?;
        ensure!(restored["metadata"]["uid"] != metadata["uid"], "another life");
    }
    let claim = claim_on(env, &address).await?;
    let claim = claim["metadata"]["name"].as_str().context("a claim has a name")?;
    let leases: Api<Lease> = Api::namespaced(env.management(), SYSTEM_NAMESPACE);
    make_again(&leases, claim).await?;
    make_again(&agent_configs(env), &config_map(&node)).await?;
    let machine = subject.machine_uid().await?;
    env.patch(CLUSTER, CLUSTER_NAME, json!({"spec": {"paused": false}})).await?;
    env.start_controller().await?;
    belongs(env, &subject).await?;
    tokio::time::sleep(env.pace().settled_after).await;
    belongs(env, &subject).await?;
    let object = subject.get().await?;
    let uid = |lease: &Value| lease["metadata"]["annotations"][annotation::HOLDER_UID].clone();
    until_claim(env, &address, |lease| uid(lease) == object["metadata"]["uid"]).await?;
    until_agent_config(env, &subject.node().await?, |config| config.is_some()).await?;
    let others = usize::from(subject.machine_uid().await? != machine);
    Ok(Ending::phase(subject.name(), "Active").machines(2 + others, 1 + others))
}

/// Puts an object with another UID in the place of one that has no owner.
async fn make_again<K>(api: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Serialize,
{
    let backup = api.get(name).await?;
    api.delete(name, &DeleteParams::default()).await?;
    let mut restored = backup.clone();
    let ObjectMeta { name, labels, annotations, .. } = backup.meta().clone();
    *restored.meta_mut() = ObjectMeta { name, labels, annotations, ..ObjectMeta::default() };
    let restored = api.create(&PostParams::default(), &restored).await?;
    ensure!(restored.meta().uid != backup.meta().uid, "another life");
    Ok(())
}

/// Removes an object in spite of its finalizers. Its dependents stay.
async fn take_away(env: &dyn Environment, kind: ObjectKind, name: &str) -> anyhow::Result<()> {
    env.patch(kind, name, json!({"metadata": {"finalizers": null}})).await?;
    env.delete_with(kind, name, PropagationPolicy::Orphan).await?;
    env.until_gone(kind, name).await
}

/// Stops the controller and puts an object with another UID in the place of the one that was there. What belonged to
/// that one stays, and has no owner.
async fn restore(env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<()> {
    let backup = subject.get().await?;
    env.stop_controller().await?;
    take_away(env, SCHEDULED_MACHINE, subject.name()).await?;
    let object = json!({"metadata": {"name": subject.name()}, "spec": backup["spec"]});
    let restored = env.create(SCHEDULED_MACHINE, object).await?;
    ensure!(restored["metadata"]["uid"] != backup["metadata"]["uid"], "another life");
    Ok(())
}

/// Waits until a machine is lent, and everything that was made refers to the object.
async fn belongs(env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<()> {
    subject.until_ready().await?;
    let uid = subject.get().await?["metadata"]["uid"].clone();
    let refers = |object: &Value| {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|owner| owner["uid"] == uid)
    };
    env.until(MACHINE, &subject.machine(), "to belong to the new object", refers).await?;
    env.until(INFRASTRUCTURE, &subject.infrastructure(), "to belong to the new object", refers).await?;
    Ok(())
}
