//! The leader is killed, stopped or cut off at a write, and another controller takes over.

use super::{Baseline, Case, Judge, crashes};
use crate::environment::LeaderFault;
use crate::in_memory::{Disturbance, LeaderFaultAt};
use crate::scenario::Controllers;

/// Every fault at every write of the leader. Instances that share the objects have no leader. The writes are numbered by a run
/// with a standby, which may differ from one without in the writes that coincide.
pub(super) fn cases(baseline: &Baseline) -> anyhow::Result<Vec<Case>> {
    if matches!(baseline.scenario.controllers, Controllers::Shards(_)) {
        return Ok(Vec::new());
    }
    let undisturbed =
        Disturbance { standby: true, may_fail: crashes::has_outage(baseline), ..Disturbance::default() };
    let attempts = baseline.run_again(&undisturbed)?.attempts;
    let case = |write, fault| {
        let leader_fault = LeaderFaultAt { write, fault };
        let disturbance = Disturbance { leader_fault: Some(leader_fault), ..undisturbed.clone() };
        Case { name: leader_fault.to_string(), disturbance, judge: Judge::SameEnd }
    };
    let writes = 0..attempts;
    Ok(writes.flat_map(|write| LeaderFault::ALL.map(|fault| case(write, fault))).collect())
}
