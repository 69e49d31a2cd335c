//! The scenarios.

mod changes;
mod closing;
mod deletion;
mod kubeconfigs;
mod nodes;
mod opening;
mod pauses;
mod restarts;
mod trouble;

use crate::scenario::Scenario;

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    [
        opening::scenarios(),
        closing::scenarios(),
        deletion::scenarios(),
        changes::scenarios(),
        pauses::scenarios(),
        trouble::scenarios(),
        nodes::scenarios(),
        kubeconfigs::scenarios(),
        restarts::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
