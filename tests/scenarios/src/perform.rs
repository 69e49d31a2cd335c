//! Plays a scenario, and asks the oracles.

use crate::chronicle::{Chronicle, Count};
use crate::matrix::Cell;
use crate::oracles;
use crate::scenario::{Ending, Scenario};
use crate::snapshot::Snapshot;
use crate::world::{World, Write};
use anyhow::{Context as _, ensure};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Performance {
    /// When it began.
    pub began: Timestamp,
    /// When it had been played, and only the oracles were left.
    pub played: Timestamp,
    /// How long it took from its last deliberate step until then.
    pub took: Duration,
    /// How it ended.
    pub ending: Ending,
    /// What was there in the end.
    pub snapshot: Snapshot,
    /// How often each object came and went.
    pub counts: BTreeMap<String, Count>,
    /// What the controller wrote.
    pub writes: Vec<Write>,
}

/// How long after a scenario has failed everything has to be in order again: a watch that has lost an event begins afresh
/// within the hour.
const IN_ORDER_AFTER: Duration = Duration::from_mins(75);

/// Scenarios in which somebody asks for orphans.
const ORPHANS_ON_PURPOSE: [&str; 1] = ["orphan_deletion"];

/// How long a controller that begins anew is watched.
const NEW_BEGINNING: Duration = Duration::from_mins(10);

/// What has to be true although a scenario could not be played to its end, because its time had passed: nothing is left
/// over, status tells the truth, and a controller that begins anew, and so sees everything, changes nothing.
pub async fn in_order(world: &dyn World, scenario: &Scenario) -> anyhow::Result<()> {
    tokio::time::sleep(IN_ORDER_AFTER).await;
    if !ORPHANS_ON_PURPOSE.contains(&scenario.name) {
        oracles::orphans(world).await.context("no orphans")?;
    }
    oracles::status(world).await.context("status tells the truth")?;
    let before = Snapshot::take(world).await?;
    world.stop_controller().await?;
    world.start_controller().await?;
    tokio::time::sleep(NEW_BEGINNING).await;
    let differences = before.differences(&Snapshot::take(world).await?);
    ensure!(differences.is_empty(), "a controller that began anew saw more:\n{}", differences.join("\n"));
    Ok(())
}

impl Performance {
    /// Checks that the scenario ended in time, with some more time where something was slowed down on purpose.
    pub fn in_time(&self, world_factor: u32, scenario: &Scenario, more: Duration) -> anyhow::Result<()> {
        let within = scenario.within * world_factor + more;
        ensure!(
            self.took <= within,
            "it took {:?} from the last step to the end instead of {within:?}",
            self.took
        );
        Ok(())
    }
}

/// Plays a scenario in a world with a running controller, and asks the oracles. It has to end in time.
pub async fn perform(world: &dyn World, scenario: &Scenario) -> anyhow::Result<Performance> {
    let performance = perform_with(world, scenario, &Chronicle::begin(world)).await?;
    performance.in_time(world.pace().time_factor, scenario, Duration::ZERO)?;
    Ok(performance)
}

/// Runs a cell of the emergency matrix in a world with a running controller, and asks the oracles.
pub async fn perform_cell(world: &dyn World, cell: &Cell) -> anyhow::Result<Performance> {
    perform_play(world, cell.run(world), &Chronicle::begin(world)).await
}

/// The same while somebody else wants to read the chronicle too.
pub(crate) async fn perform_with(
    world: &dyn World,
    scenario: &Scenario,
    chronicle: &Chronicle,
) -> anyhow::Result<Performance> {
    perform_play(world, (scenario.play)(world), chronicle).await
}

/// Runs whatever ends with one object somewhere, and asks the oracles.
pub(crate) async fn perform_play(
    world: &dyn World,
    play: BoxFuture<'_, anyhow::Result<Ending>>,
    chronicle: &Chronicle,
) -> anyhow::Result<Performance> {
    let began = world.now();
    let ending = play.await?;
    let played = world.now();
    let step = world.steps().latest().unwrap_or(began);
    let took = Duration::try_from(played.duration_since(step)).unwrap_or_default();
    oracles::silence(world).await.context("silence after the end")?;
    oracles::ending(world, &ending, chronicle).await.context("the end")?;
    oracles::leftovers(world, &ending).await.context("nothing left over")?;
    oracles::status(world).await.context("status tells the truth")?;
    let snapshot = Snapshot::take(world).await?;
    Ok(Performance {
        began,
        played,
        took,
        ending,
        snapshot,
        counts: chronicle.counts(),
        writes: world.writes()?,
    })
}
