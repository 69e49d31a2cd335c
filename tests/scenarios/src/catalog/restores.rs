//! The object comes back from a backup, alone or with all that was made for it: with other UIDs, and owners that mean
//! nobody any more.

use super::closing::{Held, is_held_by_web};
use crate::environment::Environment;
use crate::kinds::{BOOTSTRAP, CLUSTER, INFRASTRUCTURE, Kind, MACHINE, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject};
use anyhow::ensure;
use five_spot_api::names;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        restored_from_a_backup => 2,
        restored_in_mid_drain => 2,
        restored_with_stale_owners => 96,
        restored_with_everything => 96,
    ]
}

/// The object comes back with another UID beside the Machine that it had: it is taken on, not made twice.
async fn restored_from_a_backup(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    restore(env, &subject).await?;
    env.start_controller().await?;
    belongs(env, &subject).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The node was cordoned in the life before: it is ours to put back to work all the same.
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

/// As in the first, and its Machine still refers to the UID of before. Who is first, the garbage collector that takes it for an
/// orphan or the controller that takes it on, is left open; in the end there is one Machine, with the right owner.
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

/// Everything comes back: the object, its Machine and what belongs to that, each with another UID, each with the owners
/// that it had. It is taken on or made anew, and never doubled.
async fn restored_with_everything(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    env.stop_controller().await?;
    // Nobody else acts while things are taken away and put back either.
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
    let machine = subject.machine_uid().await?;
    env.patch(CLUSTER, CLUSTER_NAME, json!({"spec": {"paused": false}})).await?;
    env.start_controller().await?;
    belongs(env, &subject).await?;
    tokio::time::sleep(env.pace().settled_after).await;
    belongs(env, &subject).await?;
    let others = usize::from(subject.machine_uid().await? != machine);
    Ok(Ending::phase(subject.name(), "Active").machines(2 + others, 1 + others))
}

/// Removes an object whatever holds it. What belonged to it stays.
async fn take_away(env: &dyn Environment, kind: Kind, name: &str) -> anyhow::Result<()> {
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
