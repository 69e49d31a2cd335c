//! The undisturbed run of a scenario, with which disturbed runs are compared.

use super::clocks;
use crate::in_memory::{Disturbance, Layout, Run, run};
use crate::runner::ScenarioResult;
use crate::scenario::Scenario;
use crate::snapshot::Snapshot;
use anyhow::{Context as _, ensure};
use std::time::Duration;

/// A scenario, and its undisturbed run.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The scenario.
    pub scenario: Scenario,
    /// The cluster of the Nodes.
    pub layout: Layout,
    pub(super) run: Run,
    result: ScenarioResult,
}

impl Baseline {
    /// Runs a scenario undisturbed.
    pub fn run(scenario: Scenario, layout: Layout) -> anyhow::Result<Self> {
        let run = run(&scenario, layout, &Disturbance::default()).context("undisturbed")?;
        let result = run.result.clone().context("undisturbed")?;
        Ok(Self { scenario, layout, run, result })
    }

    /// The time at which only the oracles were left.
    pub(super) const fn finished(&self) -> jiff::Timestamp {
        self.result.finished
    }

    /// Runs it disturbed: it has to end in the same way, and create and remove the same number of objects. If it was
    /// allowed to fail and did, there is nothing to compare.
    pub(super) fn run_again(&self, disturbance: &Disturbance) -> anyhow::Result<Run> {
        let usual_ending = Some(self.result.ending.clone());
        let disturbance = &Disturbance { usual_ending, ..disturbance.clone() };
        let run = run(&self.scenario, self.layout, disturbance)?;
        // With a permanently wrong clock the environment differs.
        let is_out_of_time = disturbance.jump.is_some_and(|jump| jump.until == Duration::MAX);
        let is_comparable = !is_out_of_time && !self.scenario.is_race;
        if let Some(disturbed) = run.result.as_ref().filter(|_| is_comparable) {
            let (before, now) = (&self.result.snapshot, &disturbed.snapshot);
            let differences = match disturbance.jump {
                None if disturbance.recounts_pods => {
                    before.without_drain_counts().differences(&now.without_drain_counts())
                }
                None => before.differences(now),
                Some(jump) => {
                    let as_usual = |snapshot: &Snapshot| {
                        let snapshot = snapshot.without_unplanned_removals();
                        if clocks::is_believed(jump.by) { snapshot.without_drain_counts() } else { snapshot }
                    };
                    as_usual(before).differences(&as_usual(now))
                }
            };
            ensure!(differences.is_empty(), "it ended differently:\n{}", differences.join("\n"));
            let may_cost_a_machine =
                disturbance.jump.is_some_and(|jump| clocks::may_cost_a_machine(self.scenario.name, jump.by));
            ensure!(
                may_cost_a_machine || disturbed.counts == self.result.counts,
                "objects came and went {:?} instead of {:?}",
                disturbed.counts,
                self.result.counts
            );
        }
        Ok(run)
    }
}
