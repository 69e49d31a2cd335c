//! The scenarios.

mod changes;
mod claims;
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
mod several;
mod taints;
mod trouble;
mod upgrades;

use crate::scenario::Scenario;

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    [
        opening::scenarios(),
        closing::scenarios(),
        draining::scenarios(),
        deletion::scenarios(),
        changes::scenarios(),
        claims::scenarios(),
        pauses::scenarios(),
        permitted::scenarios(),
        trouble::scenarios(),
        nodes::scenarios(),
        taints::scenarios(),
        kubeconfigs::scenarios(),
        restarts::scenarios(),
        restores::scenarios(),
        upgrades::scenarios(),
        outages::scenarios(),
        several::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
