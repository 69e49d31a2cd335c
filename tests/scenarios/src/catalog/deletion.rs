//! The object itself is deleted.

use super::closing::{hold, is_held_by_web, never_deletes_pods, slowly};
use crate::environment::Environment;
use crate::kinds::{
    BOOTSTRAP, BUDGET, DEFINITION, INFRASTRUCTURE, MACHINE, NAMESPACE, NODE, POD, SCHEDULED_MACHINE,
};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::ensure;
use five_spot_api::names::{self, FINALIZER};
use five_spot_standins::{ProviderBehaviour, StepBehaviour};
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        deleted_while_active => 3,
        deleted_while_creating => 2,
        deleted_while_inactive => 2,
        foreground_deletion_under_a_budget => 5,
        provider_objects_lose_their_owner => 5,
        orphan_deletion => 6,
        foreign_finalizer_stays => 2,
        namespace_deleted: RealClusterApi => 10,
        deletion_is_bounded: VirtualTime => 622,
        deleted_while_nobody_was_there: VirtualTime => 22,
        definition_deleted: ExclusiveEnvironment => 3,
    ]
}

/// The machine is removed gracefully first.
async fn deleted_while_active(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    env.until_gone(POD, "solo").await?;
    never_deletes_pods(env)?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}

/// Objects whose creation has only begun are removed as well.
async fn deleted_while_creating(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.provider(ProviderBehaviour { provision: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
    let subject = Subject::make(env, json!({})).await?;
    subject.until_phase("Active").await?;
    subject.until_condition("MachineReady", "False", "NoNodeYet").await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}

/// An object without a Machine is removed at once.
async fn deleted_while_inactive(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::make(env, json!({"schedule": {"enabled": false}})).await?;
    let is_ours = |object: &Value| object["metadata"]["finalizers"] == json!([FINALIZER]);
    subject.until("to carry the finalizer", is_ours).await?;
    subject.until_phase("Disabled").await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    Ok(Ending::gone(subject.name()))
}

/// The garbage collector must not bypass a budget.
async fn foreground_deletion_under_a_budget(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.delete_with(SCHEDULED_MACHINE, subject.name(), PropagationPolicy::Foreground).await?;
    // It is not checked who deletes the Machine first, and therefore whether Cluster API or 5-Spot drains.
    subject.until_phase("ShuttingDown").await?;
    subject.until_cordoned(&node, true).await?;
    env.lasts(NODE, &node, "existing", Duration::from_secs(8), |node| !node.is_null()).await?;
    ensure!(!env.get(POD, "web").await?.is_null(), "the budget holds the pod");
    env.delete(BUDGET, "web").await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    never_deletes_pods(env)?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}

/// A foreground deletion first removes our object from the owners of the provider's objects. This is not a request to
/// orphan the machine.
async fn provider_objects_lose_their_owner(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until("to name what holds it", is_held_by_web(env)).await?;
    for (kind, name) in
        [(INFRASTRUCTURE, subject.infrastructure()), (BOOTSTRAP, names::bootstrap(subject.name()))]
    {
        let mut owners = env.get(kind, &name).await?["metadata"]["ownerReferences"].clone();
        owners.as_array_mut().into_iter().for_each(|owners| {
            owners.retain(|owner| owner["kind"] != SCHEDULED_MACHINE.kind);
        });
        env.patch(kind, &name, json!({"metadata": {"ownerReferences": owners}})).await?;
    }
    let stays = |object: &Value| !object.is_null();
    env.lasts(SCHEDULED_MACHINE, subject.name(), "existing", Duration::from_secs(8), stays).await?;
    env.delete(BUDGET, "web").await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}

/// Orphan deletion leaves the machine in place.
async fn orphan_deletion(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    env.delete_with(SCHEDULED_MACHINE, subject.name(), PropagationPolicy::Orphan).await?;
    subject.until_gone().await?;
    let stays = |object: &Value| {
        object["metadata"]["uid"] == machine.as_str() && object["metadata"]["deletionTimestamp"].is_null()
    };
    env.lasts(MACHINE, &subject.machine(), "existing", Duration::from_secs(5), stays).await?;
    Ok(Ending::gone(subject.name()).machines(1, 0).orphaned())
}

/// Our finalizer is added and removed next to a foreign one.
async fn foreign_finalizer_stays(env: &dyn Environment) -> anyhow::Result<Ending> {
    const FOREIGN: &str = "example.org/keep";
    let subject = Subject::lent(env, json!({})).await?;
    // Someone replaces our finalizer, which is then added again.
    env.patch(SCHEDULED_MACHINE, subject.name(), json!({"metadata": {"finalizers": [FOREIGN]}})).await?;
    let has_both = |object: &Value| object["metadata"]["finalizers"] == json!([FOREIGN, FINALIZER]);
    env.until(SCHEDULED_MACHINE, subject.name(), "to carry both finalizers", has_both).await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    let is_left = |object: &Value| object["metadata"]["finalizers"] == json!([FOREIGN]);
    env.until(SCHEDULED_MACHINE, subject.name(), "to carry the foreign finalizer alone", is_left).await?;
    subject.until_nothing_left().await?;
    env.patch(SCHEDULED_MACHINE, subject.name(), json!({"metadata": {"finalizers": null}})).await?;
    subject.until_gone().await?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}

/// A budget that is never lifted delays a deletion for ten minutes and no longer.
async fn deletion_is_bounded(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    let begin = env.now();
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    let took = env.now().duration_since(begin).as_secs();
    ensure!((590..700).contains(&took), "it took {took} s");
    subject.until_nothing_left().await?;
    never_deletes_pods(env)?;
    Ok(Ending::gone(subject.name()).machines(1, 1).leaves_claim())
}

/// Everything in a namespace is deleted at once: the object, its Machine, the Cluster, and the kubeconfig for the
/// Nodes.
async fn namespace_deleted(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    env.delete(NAMESPACE, env.namespace()).await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    env.until_gone(NAMESPACE, env.namespace()).await?;
    Ok(Ending::gone(subject.name()).machines(1, 1).without_cluster())
}

/// A controller that starts when the time limit of a deletion is long over releases the object at once, and leaves
/// nothing behind.
async fn deleted_while_nobody_was_there(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.stop_controller().await?;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    tokio::time::sleep(Duration::from_mins(30)).await;
    ensure!(!subject.get().await?.is_null(), "its finalizer holds it");
    let begin = env.now();
    env.start_controller().await?;
    subject.until_gone().await?;
    let took = env.now().duration_since(begin).as_secs();
    ensure!(took < 120, "it took {took} s more");
    subject.until_nothing_left().await?;
    never_deletes_pods(env)?;
    Ok(Ending::gone(subject.name()).machines(1, 1).leaves_claim())
}

/// If its CRD is deleted, the object is removed as gracefully as if it had been deleted itself.
async fn definition_deleted(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    let definition = format!("{}.{}", SCHEDULED_MACHINE.plural, SCHEDULED_MACHINE.group);
    env.delete(DEFINITION, &definition).await?;
    env.until_gone(DEFINITION, &definition).await?;
    subject.until_nothing_left().await?;
    env.until_gone(POD, "solo").await?;
    never_deletes_pods(env)?;
    Ok(Ending::gone(subject.name()).machines(1, 1))
}
