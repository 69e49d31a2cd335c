//! The real program on a real API server that has a problem: the program reports the problem, retries with growing
//! intervals, starts its work when the cause is gone, and ends on SIGTERM at any time.
//!
//! Each test has its own API server, which is empty at first.

mod away;
mod bare;
mod cluster_api;
mod definition;
mod permissions;
mod program;

use five_spot_testenv::harness::Test;

pub(crate) use bare::{
    Bare, instances_role, machine, rules_without_leases, shipped_definition, shipped_rules,
};
pub(crate) use program::{Program, controller_program};

pub(crate) fn tests() -> Vec<Test> {
    [permissions::tests(), definition::tests(), cluster_api::tests(), away::tests()]
        .into_iter()
        .flatten()
        .collect()
}
