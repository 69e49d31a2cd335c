//! How soon an emergency has to have its effect, whatever hinders it.

use super::{Emergency, Obstacle};
use crate::environment::Impairment;
use std::time::Duration;

/// How long the controller may take for what depends on the management cluster alone.
const AT_ONCE: Duration = Duration::from_secs(5);

/// How long a drain may take in which nothing is in the way.
const UNHINDERED_DRAIN: Duration = Duration::from_secs(20);

/// How long two hundred deletions of pods may take on an API server that has other work.
const MANY_DELETIONS: Duration = Duration::from_secs(10);

/// How long a reclaim waits for pods.
const RECLAIM_BOUND: Duration = Duration::from_mins(1);

/// How long a deleted object waits for its machine to leave gracefully.
const FINALIZER_BOUND: Duration = Duration::from_mins(10);

/// How much longer a management cluster that takes a second for each request may need for what follows the Machine's
/// DELETE: the event, the removal of the finalizer, and the reads before them.
const SLOW_REQUESTS: Duration = Duration::from_secs(10);

/// The bounds of a cell, counted from the beginning of the emergency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How long the Machine has to stay at least: nobody can see whether its node is empty, and there is time left to
    /// find out.
    pub machine_kept: Duration,
    /// When the Machine's DELETE has to have been accepted; nothing if the Machine stays.
    pub machine_deleted: Option<Duration>,
    /// When the object has to be gone; nothing if it stays.
    pub object_gone: Option<Duration>,
}

impl Expected {
    /// The bounds of a cell.
    pub fn of(emergency: Emergency, obstacle: Obstacle) -> Self {
        let end = FINALIZER_BOUND + AT_ONCE;
        let unless_held = |is_held| if is_held { end + slowed(obstacle) } else { UNHINDERED_DRAIN };
        let (machine_deleted, object_gone) = match emergency {
            Emergency::KillSwitch => (Some(AT_ONCE), None),
            Emergency::Reclaim => {
                let waits = if holds_reclaim(obstacle) {
                    RECLAIM_BOUND
                } else if obstacle == Obstacle::TwoHundredPods {
                    MANY_DELETIONS
                } else {
                    Duration::ZERO
                };
                (Some(waits + AT_ONCE), None)
            }
            Emergency::Deletion => {
                let is_held = holds_drain(obstacle);
                let machine_deleted = if is_held { end } else { UNHINDERED_DRAIN };
                (Some(machine_deleted), Some(unless_held(is_held || holds_machine(obstacle))))
            }
            Emergency::FinalizerBound => (Some(end), Some(unless_held(true))),
            Emergency::OrphaningDeletion => (None, Some(unless_held(holds_release(obstacle)))),
        };
        // In whole seconds, as the deletion timestamp is.
        let is_kept = emergency == Emergency::Deletion && obstacle.hides_workload();
        let machine_kept =
            if is_kept { FINALIZER_BOUND.saturating_sub(Duration::from_secs(1)) } else { Duration::ZERO };
        Self { machine_kept, machine_deleted, object_gone }
    }
}

fn slowed(obstacle: Obstacle) -> Duration {
    if obstacle == Obstacle::Impaired(Impairment::SlowManagement) { SLOW_REQUESTS } else { Duration::ZERO }
}

/// Whether the pods cannot be seen to be gone, so that a reclaim waits for them as long as it may.
fn holds_reclaim(obstacle: Obstacle) -> bool {
    obstacle.hides_node()
        || matches!(obstacle, Obstacle::PodsWithFinalizers | Obstacle::Impaired(Impairment::SlowManagement))
}

/// Whether a graceful drain cannot be carried out or recorded, or is held back on purpose.
fn holds_drain(obstacle: Obstacle) -> bool {
    obstacle.hides_node()
        || obstacle.pauses()
        || obstacle.refuses_status()
        || matches!(
            obstacle,
            Obstacle::ProviderKindGone
                | Obstacle::Impaired(Impairment::SlowManagement)
                | Obstacle::NodeNotReady
                | Obstacle::PodsStuck
                | Obstacle::PodsWithFinalizers
        )
}

/// Whether a Machine that was deleted does not go.
fn holds_machine(obstacle: Obstacle) -> bool {
    matches!(obstacle, Obstacle::ProviderStuck | Obstacle::Impaired(Impairment::ClusterApi))
}

/// Whether an object that gives its machine away may have to wait: what it has put on the Node cannot be removed, or a pause
/// holds back every write.
fn holds_release(obstacle: Obstacle) -> bool {
    obstacle.hides_node() || obstacle.pauses() || obstacle == Obstacle::Impaired(Impairment::SlowManagement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_switch_waits_for_nobody_and_an_orphaned_machine_stays() {
        for obstacle in Obstacle::ALL {
            let of = |emergency| Expected::of(emergency, obstacle);
            assert_eq!(of(Emergency::KillSwitch).machine_deleted, Some(AT_ONCE), "{hindrance}");
            assert_eq!(of(Emergency::OrphaningDeletion).machine_deleted, None, "{hindrance}");
            assert!(of(Emergency::Reclaim).machine_deleted <= Some(RECLAIM_BOUND + AT_ONCE), "{hindrance}");
            let end = FINALIZER_BOUND + AT_ONCE + slowed(obstacle);
            assert!(of(Emergency::Deletion).object_gone <= Some(end), "{hindrance}");
        }
    }
}
