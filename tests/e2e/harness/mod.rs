//! The harness itself: a fault that does not happen, or an identity that may do everything, would make every other test
//! worthless.

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
