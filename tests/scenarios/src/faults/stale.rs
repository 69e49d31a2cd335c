//! Reads that are answered from the past.

use super::{Case, Fair, Judge};
use crate::embedded::Disturbance;
use five_spot_sandbox::faults::{Fault, RequestKind, Rule, Trigger};

/// Somebody else has just made an object under a name of ours, or a rule for the drain: that it is there can only be known
/// from a read that is true, which is what a real server promises for one that names no version.
const NOT_STALE: [&str; 2] = ["foreign_machine_has_our_name", "rules_and_labels_of_cluster_api"];

/// How many different choices of the reads that are stale.
const CHOICES: u64 = 5;

/// Every other read is answered from some changes ago, or from before the controller's own last write. Not all of them: a
/// world in which nothing changes until a read is true, and no read is true until something changes, stands still.
pub(super) fn cases(fair: &Fair, seed: u64) -> Vec<Case> {
    if NOT_STALE.contains(&fair.scenario.name) {
        return Vec::new();
    }
    let faults = [
        ("lag-1", Fault::StaleRead(1)),
        ("lag-5", Fault::StaleRead(5)),
        ("before-own-write", Fault::StaleBeforeOwnWrite),
    ];
    let seeds = seed..seed + CHOICES;
    seeds.flat_map(|seed| faults.clone().map(|(name, fault)| case(name, fault, seed))).collect()
}

fn case(name: &str, fault: Fault, seed: u64) -> Case {
    let trigger = Trigger::PerMille(500);
    let rule = Rule { kind: RequestKind::Read, path: String::new(), trigger, fault };
    let disturbance = Disturbance { seed, ..Disturbance::rule(rule) };
    Case { name: format!("{name}-{seed}"), disturbance, judge: Judge::SameEnd }
}
