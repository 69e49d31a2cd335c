//! Cluster API's own controllers and webhooks: how a Machine starts, how it is deleted, and which owners
//! objects may have.

mod contract;
mod draining;
pub(crate) mod machine;
mod ownership;
mod running;
pub(crate) mod workload;

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [running::tests(), draining::tests(), ownership::tests(), contract::tests()]
        .into_iter()
        .flatten()
        .collect()
}
