//! The controller's clock is set.

use super::{Baseline, Case, Judge, moments};
use crate::history::ObjectCount;
use crate::in_memory::{ClockJump, Disturbance, Run};
use crate::kinds::MACHINE;
use anyhow::ensure;
use jiff::SignedDuration;
use std::time::Duration;

/// A second, a minute, an hour, a day, half a week and a bit (where a window lies that is closed now), a week, 52 weeks,
/// a year.
const STEPS: [i64; 8] = [1, 60, 3_600, 86_400, 304_200, 604_800, 31_449_600, 31_536_000];

/// The time at which the clock is set, around each moment at which the controller has something to do.
const AROUND_MILLIS: [i64; 3] = [-2_000, 500, 20_000];

/// The time until the clock is right again; the second never ends.
const LASTING: [Duration; 2] = [Duration::from_mins(2), Duration::MAX];

/// A clock that is set back further than this is assumed to have been wrong before.
const LONGEST_STEP_BACK: i64 = 86_400;

/// A clock that is set forward this far exceeds the time in which a node should have joined; the result is not caused
/// by a boundary.
fn join_timeout(scenario: &str) -> i64 {
    if scenario == "provider_fails_and_recovers" { 10 } else { 20 * 60 }
}

/// Every step, both ways, around every moment.
pub(super) fn cases(baseline: &Baseline) -> Vec<Case> {
    let both_ways: Vec<i64> = STEPS.into_iter().flat_map(|step| [step, -step]).collect();
    let mut cases = Vec::new();
    for moment in moments(&baseline.run) {
        for around in AROUND_MILLIS {
            let Ok(after) = u64::try_from(moment + around).map(Duration::from_millis) else { continue };
            for by in &both_ways {
                for lasting in LASTING {
                    let until = after.saturating_add(lasting);
                    let jump = ClockJump { after, until, by: SignedDuration::from_secs(*by) };
                    let how_long = if lasting == Duration::MAX { "for-good" } else { "for-a-while" };
                    cases.push(Case {
                        name: format!("by-{by}-from-{}-{how_long}", after.as_millis()),
                        disturbance: Disturbance {
                            jump: Some(jump),
                            may_fail: true,
                            ..Disturbance::default()
                        },
                        judge: Judge::Clock,
                    });
                }
            }
        }
    }
    cases
}

/// Returns true if a clock that is set so far is assumed to have been wrong before: the controller follows it, and
/// reverts when it is right again.
pub(super) fn is_believed(by: SignedDuration) -> bool {
    by.as_secs().abs() > LONGEST_STEP_BACK
}

/// Returns true if a clock that is set so far may cost one more Machine: it is believed, or lets the time to join pass.
pub(super) fn may_cost_a_machine(scenario: &str, by: SignedDuration) -> bool {
    is_believed(by) || by.as_secs() >= join_timeout(scenario)
}

/// With a wrong clock no boundary is crossed twice: no more Machines are created than without it, and each
/// goes at most once. A clock that is set back by more than a day may have crossed one boundary more before that, and one
/// that is set forward may have let a Machine's time to join pass.
pub(super) fn judge(baseline: &Baseline, disturbance: &Disturbance, run: &Run) -> anyhow::Result<()> {
    let by = disturbance.jump.map_or(SignedDuration::ZERO, |jump| jump.by);
    let additional = usize::from(may_cost_a_machine(baseline.scenario.name, by));
    for (object, count) in run.counts.iter().filter(|(object, _)| object.starts_with(MACHINE.kind)) {
        let baseline = baseline.run.counts.get(object).copied().unwrap_or_default();
        let most = baseline.made + additional;
        let ObjectCount { made, removed } = *count;
        ensure!(made <= most && removed <= most, "{object} came and went {count:?} instead of {baseline:?}");
    }
    Ok(())
}
