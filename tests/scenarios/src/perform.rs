//! Plays a scenario, and asks the oracles.

use crate::chronicle::{Chronicle, Count};
use crate::oracles;
use crate::scenario::{Ending, Scenario};
use crate::snapshot::Snapshot;
use crate::world::{World, Write};
use anyhow::Context as _;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Performance {
    /// When it began.
    pub began: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// What was there in the end.
    pub snapshot: Snapshot,
    /// How often each object came and went.
    pub counts: BTreeMap<String, Count>,
    /// What the controller wrote.
    pub writes: Vec<Write>,
}

/// Plays a scenario in a world with a running controller, and asks the oracles.
pub async fn perform(world: &dyn World, scenario: &Scenario) -> anyhow::Result<Performance> {
    let began = world.now();
    let chronicle = Chronicle::begin(world);
    let ending = (scenario.play)(world).await?;
    oracles::silence(world).await.context("silence after the end")?;
    oracles::ending(world, &ending, &chronicle).await.context("the end")?;
    oracles::orphans(world, &ending).await.context("nothing left over")?;
    oracles::status(world).await.context("status tells the truth")?;
    let snapshot = Snapshot::take(world).await?;
    Ok(Performance { began, ending, snapshot, counts: chronicle.counts(), writes: world.writes()? })
}
