//! Reads that are answered from the past.

use super::{Baseline, Case, Judge};
use crate::in_memory::Disturbance;
use five_spot_apiserver::faults::{Fault, RequestKind, Rule, Trigger};

/// Somebody else has just made an object under a name of ours, a rule for the drain, or a `DaemonSet`: that it is there can
/// only be known from a read that is true, which is what a real server promises for one that names no version. Reads from
/// before our own last write are tried there as well.
const MADE_BY_OTHERS: [&str; 3] =
    ["foreign_machine_has_our_name", "mirror_and_daemon_pods_stay", "rules_and_labels_of_cluster_api"];

/// The number of different choices of stale reads.
const CHOICES: u64 = 5;

/// Every other read is answered from some changes ago, or from before the controller's own last write. Not all of them: a
/// environment in which nothing changes until a read is true, and no read is true until something changes, stands still.
pub(super) fn cases(baseline: &Baseline, seed: u64) -> Vec<Case> {
    let mut faults = vec![("before-own-write", Fault::StaleBeforeOwnWrite)];
    if !MADE_BY_OTHERS.contains(&baseline.scenario.name) {
        faults.extend([("lag-1", Fault::StaleRead(1)), ("lag-5", Fault::StaleRead(5))]);
    }
    let cases = |seed| faults.iter().map(move |(name, fault)| case(name, fault.clone(), seed));
    (seed..seed + CHOICES).flat_map(cases).collect()
}

fn case(name: &str, fault: Fault, seed: u64) -> Case {
    let trigger = Trigger::PerMille(500);
    let rule = Rule { kind: RequestKind::Read, path: String::new(), trigger, fault };
    let disturbance = Disturbance { seed, ..Disturbance::rule(rule) };
    Case { name: format!("{name}-{seed}"), disturbance, judge: Judge::SameEnd }
}
