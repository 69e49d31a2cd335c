//! `5spot why` and `5spot debug-bundle` on real components, and the printed fixes, applied literally.

mod bundle;
mod cluster_api;
mod finalizers;
mod namespace;
mod program;

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [namespace::tests(), finalizers::tests(), cluster_api::tests(), bundle::tests()]
        .into_iter()
        .flatten()
        .collect()
}
