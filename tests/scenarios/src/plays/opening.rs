//! A machine becomes wanted.

use crate::kinds::MACHINE;
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{Subject, is_ready};
use crate::surroundings::{closed, override_until, window};
use crate::world::World;
use anyhow::ensure;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![window_opens, lead_time, override_up, override_down]
}

/// Nothing before the minute at which the window opens, a machine with a Ready node soon after.
async fn window_opens(world: &dyn World) -> anyhow::Result<Ending> {
    let from = world.next_minute(3);
    let to = from + SignedDuration::from_hours(1);
    let subject = Subject::make(world, json!({"schedule": window(from, to)})).await?;
    let waiting = subject.until_phase("Inactive").await?;
    ensure!(waiting["status"]["nextActivation"] == from.to_string(), "{waiting}");
    ensure!(world.get(MACHINE, &subject.machine()).await?.is_null(), "nothing is made before the window");
    subject.until_ready().await?;
    ensure!(made_at(world, &subject).await? >= from, "it was made before {from}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A machine is made ahead of its window.
async fn lead_time(world: &dyn World) -> anyhow::Result<Ending> {
    let lead = world.leisurely(25);
    let from = world.next_minute(lead + 5);
    let mut schedule = window(from, from + SignedDuration::from_hours(1));
    schedule["leadTime"] = format!("{lead}s").into();
    let subject = Subject::make(world, json!({"schedule": schedule})).await?;
    let begin = from - SignedDuration::from_secs(lead);
    subject.until_condition("Scheduled", "True", "LeadTime").await?;
    subject.until_ready().await?;
    let made = made_at(world, &subject).await?;
    ensure!(made >= begin && made < from, "it was made at {made}");
    let open = subject.until_condition("Scheduled", "True", "InWindow").await?;
    ensure!(open["status"]["inSchedule"] == true, "{open}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// An override lends a machine outside the schedule, to the second.
async fn override_up(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::make(world, json!({"schedule": closed(world.now())})).await?;
    subject.until_phase("Inactive").await?;
    let until = world.in_seconds(world.leisurely(30));
    subject.set(override_until("up", until)).await?;
    subject.until_condition("Scheduled", "True", "Override").await?;
    subject.until_ready().await?;
    subject.until_phase("Inactive").await?;
    ensure!(world.now() >= until, "it was taken back too early");
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// An override takes a machine back inside the schedule, and lends it again when it is over.
async fn override_down(world: &dyn World) -> anyhow::Result<Ending> {
    let subject = Subject::lent(world, json!({})).await?;
    let until = world.in_seconds(world.leisurely(15));
    subject.set(override_until("down", until)).await?;
    subject.until_condition("Scheduled", "False", "OverrideDown").await?;
    subject.until_phase("Inactive").await?;
    let back = |object: &Value| is_ready(object);
    subject.until("to be lent again", back).await?;
    ensure!(world.now() >= until, "it was lent too early");
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// When its Machine was made.
async fn made_at(world: &dyn World, subject: &Subject<'_>) -> anyhow::Result<Timestamp> {
    let machine = world.get(MACHINE, &subject.machine()).await?;
    Ok(machine["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse()?)
}
