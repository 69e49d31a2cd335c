//! Crash points: a scenario is played once undisturbed, which numbers the controller's writes, and then once more for
//! every write and every blow that can fall around it. Each time it has to end the same.

use crate::embedded::{Blow, BlowAt, Disturbance, Layout, play};
use crate::perform::Performance;
use crate::scenario::Scenario;
use anyhow::Context as _;

/// What came of all crash points of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many were tried.
    pub tried: usize,
    /// Those that did not end as the undisturbed run did.
    pub failures: Vec<String>,
}

/// Tries each of these blows at every write.
pub fn try_all(scenario: &Scenario, layout: Layout, blows: &[Blow]) -> anyhow::Result<Report> {
    let undisturbed = play(scenario, layout, &Disturbance::default()).context("undisturbed")?;
    let mut report = Report::default();
    for write in 0..undisturbed.writes.len() {
        for &blow in blows {
            let at = BlowAt { write, blow };
            report.tried += 1;
            if let Err(error) = try_one(scenario, layout, at, &undisturbed) {
                let what = &undisturbed.writes[write];
                report.failures.push(format!("{at} ({what}): {error:#}"));
            }
        }
    }
    Ok(report)
}

/// Tries one blow, and compares the end with that of the undisturbed run.
pub fn try_one(
    scenario: &Scenario,
    layout: Layout,
    at: BlowAt,
    undisturbed: &Performance,
) -> anyhow::Result<()> {
    let disturbed = play(scenario, layout, &Disturbance::blow(at))?;
    let differences = undisturbed.snapshot.differences(&disturbed.snapshot);
    anyhow::ensure!(differences.is_empty(), "it ended differently:\n{}", differences.join("\n"));
    anyhow::ensure!(
        disturbed.counts == undisturbed.counts,
        "objects came and went {:?} instead of {:?}",
        disturbed.counts,
        undisturbed.counts
    );
    Ok(())
}
