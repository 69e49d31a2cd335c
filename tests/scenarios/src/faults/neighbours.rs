//! A hostile tenant beside the scenario.

use super::{Baseline, Case, Judge};
use crate::in_memory::Disturbance;

/// Our CRD is gone when the last object of the last tenant is, so the time that this takes is not the victim's alone.
const CONCERNS_EVERY_TENANT: [&str; 1] = ["definition_deleted"];

/// The scenario has to end in the same way and in time, because nothing of its own fails.
pub(super) fn cases(baseline: &Baseline) -> Vec<Case> {
    if CONCERNS_EVERY_TENANT.contains(&baseline.scenario.name) {
        return Vec::new();
    }
    let disturbance = Disturbance { neighbours: true, ..Disturbance::default() };
    vec![Case { name: "hostile-tenant".to_owned(), disturbance, judge: Judge::SameEnd }]
}
