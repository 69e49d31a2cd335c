//! Cluster API's own controllers and webhooks: the start and the deletion of a Machine, and the owners that
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
