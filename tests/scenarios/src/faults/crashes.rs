//! Faults around writes of the controller.

use super::{Baseline, Case, Judge, Sample};
use crate::in_memory::{Disturbance, WriteFault, WriteFaultAt};

/// The faults that are tried in pairs: the write is lost, or is carried out without a response.
const IN_PAIRS: [WriteFault; 2] = [WriteFault::DiesBefore, WriteFault::DiesUnaware];

/// Scenarios with an outage during which a drain continues undisturbed. A controller that is started during the outage
/// has not seen the node, and reports that until it has.
const OUTAGES: [&str; 1] = ["workload_is_down_in_mid_drain"];

/// Two objects are lent one machine because both are created at the same moment and there are no Leases. If one of them has to
/// try again, it sees the other's machine and waits.
const NEEDS_BOTH_AT_ONCE: [&str; 1] = ["double_loan_is_found"];

/// Every fault at every write.
pub(super) fn single(baseline: &Baseline) -> Vec<Case> {
    if NEEDS_BOTH_AT_ONCE.contains(&baseline.scenario.name) {
        return Vec::new();
    }
    let writes = 0..baseline.run.attempts;
    writes
        .flat_map(|write| WriteFault::ALL.map(|fault| case(baseline, vec![WriteFaultAt { write, fault }])))
        .collect()
}

/// A second crash at every write that comes after the first one, of the same kind. Only a run with the first crash
/// shows how many there are.
pub(super) fn pairs(baseline: &Baseline, sample: Sample) -> anyhow::Result<Vec<Case>> {
    if NEEDS_BOTH_AT_ONCE.contains(&baseline.scenario.name) {
        return Ok(Vec::new());
    }
    let firsts = (0..baseline.run.attempts)
        .flat_map(|write| IN_PAIRS.map(|fault| WriteFaultAt { write, fault }))
        .collect();
    let (firsts, is_sampled) = (sample.of(firsts), sample.size.is_some());
    let mut cases = Vec::new();
    for first in firsts {
        let attempts = baseline.run_again(&disturbance(baseline, vec![first]))?.attempts;
        let seconds =
            (first.write + 1..attempts).map(|write| WriteFaultAt { write, fault: first.fault }).collect();
        let one = Sample { size: is_sampled.then_some(1), seed: sample.seed ^ first.write as u64 };
        cases.extend(one.of(seconds).into_iter().map(|second| case(baseline, vec![first, second])));
    }
    Ok(cases)
}

/// True if a controller that is started during the scenario may report less than the one before.
pub(super) fn has_outage(baseline: &Baseline) -> bool {
    OUTAGES.contains(&baseline.scenario.name)
}

fn case(baseline: &Baseline, write_faults: Vec<WriteFaultAt>) -> Case {
    let names: Vec<String> = write_faults.iter().map(ToString::to_string).collect();
    Case { name: names.join("+"), disturbance: disturbance(baseline, write_faults), judge: Judge::SameEnd }
}

fn disturbance(baseline: &Baseline, write_faults: Vec<WriteFaultAt>) -> Disturbance {
    Disturbance { write_faults, may_fail: has_outage(baseline), ..Disturbance::default() }
}
