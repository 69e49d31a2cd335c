//! Blows around writes of the controller.

use super::{Case, Fair, Judge, Sample};
use crate::embedded::{Blow, BlowAt, Disturbance};

/// The blows that are tried in pairs: the write that was meant is lost, or is carried out and nobody knows.
const IN_PAIRS: [Blow; 2] = [Blow::DiesBefore, Blow::DiesUnaware];

/// Scenarios with an outage over which a drain goes on as if nothing had been. A controller that is started during the outage
/// has not seen the node, and says so until it has.
const OUTAGES: [&str; 1] = ["workload_is_down_in_mid_drain"];

/// Every blow at every write.
pub(super) fn single(fair: &Fair) -> Vec<Case> {
    let writes = 0..fair.run.attempts;
    writes.flat_map(|write| Blow::ALL.map(|blow| case(fair, vec![BlowAt { write, blow }]))).collect()
}

/// A second crash at every write that comes after the first one, of the same kind. How many those are only a run with the
/// first one tells.
pub(super) fn pairs(fair: &Fair, sample: Sample) -> anyhow::Result<Vec<Case>> {
    let firsts =
        (0..fair.run.attempts).flat_map(|write| IN_PAIRS.map(|blow| BlowAt { write, blow })).collect();
    let (firsts, is_sampled) = (sample.of(firsts), sample.size.is_some());
    let mut cases = Vec::new();
    for first in firsts {
        let attempts = fair.play_again(&disturbance(fair, vec![first]))?.attempts;
        let seconds = (first.write + 1..attempts).map(|write| BlowAt { write, blow: first.blow }).collect();
        let one = Sample { size: is_sampled.then_some(1), seed: sample.seed ^ first.write as u64 };
        cases.extend(one.of(seconds).into_iter().map(|second| case(fair, vec![first, second])));
    }
    Ok(cases)
}

fn case(fair: &Fair, blows: Vec<BlowAt>) -> Case {
    let names: Vec<String> = blows.iter().map(ToString::to_string).collect();
    Case { name: names.join("+"), disturbance: disturbance(fair, blows), judge: Judge::SameEnd }
}

fn disturbance(fair: &Fair, blows: Vec<BlowAt>) -> Disturbance {
    Disturbance { blows, may_fail: OUTAGES.contains(&fair.scenario.name), ..Disturbance::default() }
}
