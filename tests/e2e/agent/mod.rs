//! The reclaim agent on a real API server: what its shipped manifests permit, and the program itself.

mod bound;
mod manifests;
mod policy;
mod program;

use five_spot_testenv::harness::Test;

pub(crate) use bound::{MACHINE_ID, install};
pub(crate) use program::AgentProcess;

pub(crate) fn tests() -> Vec<Test> {
    [policy::tests(), manifests::tests(), program::tests()].into_iter().flatten().collect()
}
