//! A hostile tenant in the same cluster as the scenario.

use super::{Baseline, Case, Judge};
use crate::in_memory::Disturbance;

/// Our CRD is gone when the last object of the last tenant is gone, so that time depends on other tenants too. Only the end is
/// compared.
const CONCERNS_EVERY_TENANT: [&str; 1] = ["definition_deleted"];

/// It counts every write after a restart, and the claims of the neighbour's objects are written by the same controller.
const COUNTS_ALL_WRITES: [&str; 1] = ["restarted_while_idle"];

/// The scenario has to end in the same way and in time, because nothing of its own fails.
pub(super) fn cases(baseline: &Baseline) -> Vec<Case> {
    let name = &baseline.scenario.name;
    if COUNTS_ALL_WRITES.contains(name) {
        return Vec::new();
    }
    let waits_for_others = CONCERNS_EVERY_TENANT.contains(name);
    let disturbance = Disturbance { neighbours: true, waits_for_others, ..Disturbance::default() };
    vec![Case { name: "hostile-tenant".to_owned(), disturbance, judge: Judge::SameEnd }]
}
