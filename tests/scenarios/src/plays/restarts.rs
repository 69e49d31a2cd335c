//! The controller ends and begins again, or the object does.

use super::closing::{hold, is_held_by_web, never_deletes_pods};
use crate::kinds::{BUDGET, INFRASTRUCTURE, MACHINE, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use crate::surroundings::override_until;
use crate::world::World;
use anyhow::ensure;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        restarted_while_idle,
        down_when_the_window_closes,
        killed_in_mid_drain,
        restored_from_a_backup,
        restored_with_stale_owners,
    ]
}

/// A restart writes nothing.
async fn restarted_while_idle(world: &dyn World) -> anyhow::Result<Ending> {
    let subject =
        Subject::lent(world, json!({"machineTemplate": {"labels": {"example.org/row": "3"}}})).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.stop_controller().await?;
    let before = world.writes()?.len();
    world.start_controller().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = world.writes()?;
    let since = writes.get(before..).unwrap_or_default();
    ensure!(since.is_empty(), "it wrote after its restart:\n{}", crate::oracles::told(since));
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// What became due while nobody was there is done by whoever comes next.
async fn down_when_the_window_closes(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    world.stop_controller().await?;
    subject.set(override_until("down", world.in_seconds(36_000))).await?;
    let stays = |object: &Value| !object.is_null() && object["metadata"]["deletionTimestamp"].is_null();
    world.lasts(MACHINE, &subject.machine(), "existing", Duration::from_secs(3), stays).await?;
    world.start_controller().await?;
    subject.until_phase("Inactive").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A drain goes on where it was, by the clock that was started before.
async fn killed_in_mid_drain(world: &dyn World) -> anyhow::Result<Ending> {
    let long = json!({"gracefulShutdownTimeout": "10m", "nodeDrainTimeout": "10m"});
    let subject = Subject::lent(world, long).await?;
    let node = subject.node().await?;
    hold(world, &node).await?;
    subject.set(override_until("down", world.in_seconds(36_000))).await?;
    let held = subject.until("to name what holds it", is_held_by_web(world)).await?;
    world.crash_controller().await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.start_controller().await?;
    let since = |object: &Value| object["status"]["shutdownStartedAt"].clone();
    let after = subject.get().await?;
    ensure!(since(&after) == since(&held), "the clock was started again: {after}");
    world.delete(BUDGET, "web").await?;
    subject.until_phase("Inactive").await?;
    never_deletes_pods(world)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// The object comes back with another UID beside the Machine that it had: it is taken on, not made twice.
async fn restored_from_a_backup(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let machine = subject.machine_uid().await?;
    restore(world, &subject).await?;
    world.start_controller().await?;
    belongs(world, &subject).await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// The same, and its Machine still refers to the UID of before. Who is first, the garbage collector that takes it for an
/// orphan or the controller that takes it on, is left open; in the end there is one Machine, with the right owner.
async fn restored_with_stale_owners(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let stale = world.get(MACHINE, &subject.machine()).await?["metadata"]["ownerReferences"].clone();
    restore(world, &subject).await?;
    let patch = json!({"metadata": {"ownerReferences": stale}});
    world.patch(MACHINE, &subject.machine(), patch).await?;
    world.start_controller().await?;
    belongs(world, &subject).await?;
    tokio::time::sleep(world.pace().settled_after).await;
    belongs(world, &subject).await?;
    let others = usize::from(subject.machine_uid().await? != machine);
    Ok(Ending::phase(subject.name(), "Active").machines(1 + others, others))
}

/// Stops the controller and puts an object with another UID in the place of the one that was there. What belonged to
/// that one stays, and has no owner.
async fn restore(world: &dyn World, subject: &Subject<'_>) -> anyhow::Result<()> {
    let backup = subject.get().await?;
    world.stop_controller().await?;
    world.patch(SCHEDULED_MACHINE, subject.name(), json!({"metadata": {"finalizers": null}})).await?;
    world.delete_with(SCHEDULED_MACHINE, subject.name(), PropagationPolicy::Orphan).await?;
    subject.until_gone().await?;
    let object = json!({"metadata": {"name": subject.name()}, "spec": backup["spec"]});
    let restored = world.create(SCHEDULED_MACHINE, object).await?;
    ensure!(restored["metadata"]["uid"] != backup["metadata"]["uid"], "another life");
    Ok(())
}

/// Waits until a machine is lent, and everything that was made refers to the object.
async fn belongs(world: &dyn World, subject: &Subject<'_>) -> anyhow::Result<()> {
    subject.until_ready().await?;
    let uid = subject.get().await?["metadata"]["uid"].clone();
    let refers = |object: &Value| {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|owner| owner["uid"] == uid)
    };
    world.until(MACHINE, &subject.machine(), "to belong to the new object", refers).await?;
    world.until(INFRASTRUCTURE, &subject.infrastructure(), "to belong to the new object", refers).await?;
    Ok(())
}
