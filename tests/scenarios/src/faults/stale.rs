//! Reads that return an old state.

use super::{Baseline, Case, Judge};
use crate::in_memory::Disturbance;
use crate::scenario::Controllers;
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger};

/// Someone else has just created a drain rule or a `DaemonSet`: its existence can only be known from a consistent read,
/// which a real server guarantees for a read without a resource version. Reads from before our own last write are tried
/// there as well.
const MADE_BY_OTHERS: [&str; 2] = ["mirror_and_daemon_pods_stay", "rules_and_labels_of_cluster_api"];

/// A controller is started in the middle of a reclaim: a list from before a pod has left shows it again, and this controller
/// has not seen it leave, so that status counts it a second time. Everything but these counts is compared.
const STARTED_IN_MID_RECLAIM: [&str; 1] = ["upgraded_during_a_reclaim"];

/// The number of different choices of stale reads.
const CHOICES: u64 = 5;

/// Every other read is answered from some changes ago, or from before the controller's own last write. Not all of them:
/// an environment in which nothing changes until a read is current, and no read is current until something changes,
/// makes no progress.
///
/// Not with several controllers, whose own last writes are those of each other here: such a read can precede the
/// creation of an object by another controller, which never happens on a real server without a version.
pub(super) fn cases(baseline: &Baseline, seed: u64) -> Vec<Case> {
    if baseline.scenario.controllers != Controllers::One {
        return Vec::new();
    }
    let mut faults = vec![("before-own-write", InjectedFault::StaleBeforeOwnWrite)];
    let name = &baseline.scenario.name;
    if !MADE_BY_OTHERS.contains(name) {
        faults.extend([("lag-1", InjectedFault::StaleRead(1)), ("lag-5", InjectedFault::StaleRead(5))]);
    }
    let recounts_pods = STARTED_IN_MID_RECLAIM.contains(name);
    let cases = |seed| faults.iter().map(move |(name, fault)| case(name, fault.clone(), seed, recounts_pods));
    (seed..seed + CHOICES).flat_map(cases).collect()
}

fn case(name: &str, fault: InjectedFault, seed: u64, recounts_pods: bool) -> Case {
    let trigger = Trigger::PerMille(500);
    let rule = FaultRule { kind: RequestKind::Read, path: String::new(), trigger, fault };
    let disturbance = Disturbance { seed, recounts_pods, ..Disturbance::rule(rule) };
    Case { name: format!("{name}-{seed}"), disturbance, judge: Judge::SameEnd }
}
