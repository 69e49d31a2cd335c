//! A hostile tenant beside the scenario.

use super::{Case, Judge};
use crate::embedded::Disturbance;

/// The scenario has to end in the same way, and within its own time: nothing of its own fails.
pub(super) fn cases() -> Vec<Case> {
    let disturbance = Disturbance { neighbours: true, ..Disturbance::default() };
    vec![Case { name: "hostile-tenant".to_owned(), disturbance, judge: Judge::SameEnd }]
}
