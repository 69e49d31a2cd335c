//! Tests of the harness itself: a fault without effect, or an identity with all permissions, would make all
//! other tests worthless.

mod faults;
mod identity;
mod orphans;
mod provider;
mod timeline;

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [identity::tests(), provider::tests(), timeline::tests(), orphans::tests(), faults::tests()]
        .into_iter()
        .flatten()
        .collect()
}
