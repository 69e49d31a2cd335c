//! How a scenario ends in fair weather, which is how it has to end in any.

use super::clocks;
use crate::embedded::{Disturbance, Layout, Run, play};
use crate::perform::Performance;
use crate::scenario::Scenario;
use anyhow::{Context as _, ensure};
use std::time::Duration;

/// A scenario, and its undisturbed run.
#[derive(Clone, Debug)]
pub struct Fair {
    /// The scenario.
    pub scenario: Scenario,
    /// Where the Nodes are.
    pub layout: Layout,
    pub(super) run: Run,
    performance: Performance,
}

impl Fair {
    /// Plays a scenario undisturbed.
    pub fn play(scenario: Scenario, layout: Layout) -> anyhow::Result<Self> {
        let run = play(&scenario, layout, &Disturbance::default()).context("undisturbed")?;
        let performance = run.performance.clone().context("undisturbed")?;
        Ok(Self { scenario, layout, run, performance })
    }

    /// When only the oracles were left.
    pub(super) const fn played(&self) -> jiff::Timestamp {
        self.performance.played
    }

    /// Plays it disturbed: it has to end the same, and to make and remove as much. Where it may fail and did, there is
    /// nothing to compare.
    pub(super) fn play_again(&self, disturbance: &Disturbance) -> anyhow::Result<Run> {
        let run = play(&self.scenario, self.layout, disturbance)?;
        // Whoever lives in another time for good sees another world.
        let is_out_of_time = disturbance.jump.is_some_and(|jump| jump.until == Duration::MAX);
        if let Some(disturbed) = run.performance.as_ref().filter(|_| !is_out_of_time) {
            let (before, now) = (&self.performance.snapshot, &disturbed.snapshot);
            let differences = if disturbance.jump.is_some_and(|jump| clocks::is_believed(jump.by)) {
                before.without_drain_counts().differences(&now.without_drain_counts())
            } else {
                before.differences(now)
            };
            ensure!(differences.is_empty(), "it ended differently:\n{}", differences.join("\n"));
            ensure!(
                disturbed.counts == self.performance.counts,
                "objects came and went {:?} instead of {:?}",
                disturbed.counts,
                self.performance.counts
            );
        }
        Ok(run)
    }
}
