//! The scenarios.

mod changes;
pub(crate) mod closing;
mod deletion;
mod draining;
mod kubeconfigs;
pub(crate) mod nodes;
mod opening;
mod outages;
mod pauses;
mod permitted;
mod restarts;
mod restores;
mod taints;
mod trouble;

use crate::scenario::Scenario;

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    [
        opening::scenarios(),
        closing::scenarios(),
        draining::scenarios(),
        deletion::scenarios(),
        changes::scenarios(),
        pauses::scenarios(),
        permitted::scenarios(),
        trouble::scenarios(),
        nodes::scenarios(),
        taints::scenarios(),
        kubeconfigs::scenarios(),
        restarts::scenarios(),
        restores::scenarios(),
        outages::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
