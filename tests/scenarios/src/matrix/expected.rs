//! The time limits of emergencies, whatever the obstacle.

use super::{MatrixEmergency, Obstacle};
use crate::environment::Impairment;
use std::time::Duration;

/// The time limit of actions that depend on the management cluster alone.
const AT_ONCE: Duration = Duration::from_secs(5);

/// The time limit of an unobstructed drain.
const UNHINDERED_DRAIN: Duration = Duration::from_secs(20);

/// The time limit of two hundred deletions of pods on a busy API server.
const MANY_DELETIONS: Duration = Duration::from_secs(10);

/// The time a reclaim waits for pods.
const RECLAIM_BOUND: Duration = Duration::from_mins(1);

/// The time a deleted object waits for its machine to leave gracefully.
const FINALIZER_BOUND: Duration = Duration::from_mins(10);

/// The additional time of a graceful removal if no event can be written: each step waits for its events for a few seconds.
const UNANSWERED_EVENTS: Duration = Duration::from_secs(20);

/// The additional time that a management cluster with a second for each request needs for what follows the Machine's
/// DELETE: the event, the removal of the finalizer, and the reads before them.
const SLOW_REQUESTS: Duration = Duration::from_secs(10);

/// The bounds of a cell, counted from the beginning of the emergency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The time the Machine has to stay at least: it is unknown whether its node is empty, and there is time left to
    /// find out.
    pub machine_kept: Duration,
    /// The time at which the Machine's DELETE has to have been accepted; nothing if the Machine stays.
    pub machine_deleted: Option<Duration>,
    /// The time at which the object has to be gone; nothing if it stays.
    pub object_gone: Option<Duration>,
}

impl Expected {
    /// The bounds of a cell.
    pub fn of(emergency: MatrixEmergency, obstacle: Obstacle) -> Self {
        let end = FINALIZER_BOUND + AT_ONCE;
        let drained = UNHINDERED_DRAIN + delayed_drain(obstacle);
        let unless_held = |is_held| if is_held { end + slowed(obstacle) } else { drained };
        let (machine_deleted, object_gone) = match emergency {
            MatrixEmergency::KillSwitch => (Some(AT_ONCE), None),
            MatrixEmergency::Reclaim => {
                let waits = if holds_reclaim(obstacle) {
                    RECLAIM_BOUND
                } else if obstacle == Obstacle::TwoHundredPods {
                    MANY_DELETIONS
                } else {
                    Duration::ZERO
                };
                (Some(waits + AT_ONCE), None)
            }
            MatrixEmergency::Deletion => {
                let is_held = holds_drain(obstacle);
                let machine_deleted = if is_held { end } else { drained };
                (Some(machine_deleted), Some(unless_held(is_held || holds_machine(obstacle))))
            }
            MatrixEmergency::FinalizerBound => (Some(end), Some(unless_held(true))),
            MatrixEmergency::OrphaningDeletion => (None, Some(unless_held(holds_release(obstacle)))),
        };
        // In whole seconds, as the deletion timestamp is.
        let is_kept = emergency == MatrixEmergency::Deletion && obstacle.hides_workload();
        let machine_kept =
            if is_kept { FINALIZER_BOUND.saturating_sub(Duration::from_secs(1)) } else { Duration::ZERO };
        Self { machine_kept, machine_deleted, object_gone }
    }

    /// True if the object is released when its finalizer time is over, whatever is left of its machine.
    pub fn is_forced(&self) -> bool {
        self.object_gone.is_some_and(|bound| bound > FINALIZER_BOUND)
    }
}

fn slowed(obstacle: Obstacle) -> Duration {
    if obstacle == Obstacle::Impaired(Impairment::SlowManagement) { SLOW_REQUESTS } else { Duration::ZERO }
}

fn delayed_drain(obstacle: Obstacle) -> Duration {
    if obstacle == Obstacle::Impaired(Impairment::EventsHang) { UNANSWERED_EVENTS } else { Duration::ZERO }
}

/// Returns true if the pods cannot be seen to be gone, so that a reclaim waits for them as long as it may.
fn holds_reclaim(obstacle: Obstacle) -> bool {
    obstacle.hides_node()
        || matches!(obstacle, Obstacle::PodsWithFinalizers | Obstacle::Impaired(Impairment::SlowManagement))
}

/// Returns true if a graceful drain cannot be carried out, or is held back on purpose.
fn holds_drain(obstacle: Obstacle) -> bool {
    obstacle.hides_node()
        || obstacle.pauses()
        || matches!(
            obstacle,
            Obstacle::Impaired(Impairment::SlowManagement)
                | Obstacle::PodsStuck
                | Obstacle::PodsWithFinalizers
        )
}

/// Returns true if a Machine that was deleted does not go.
fn holds_machine(obstacle: Obstacle) -> bool {
    matches!(obstacle, Obstacle::ProviderStuck | Obstacle::Impaired(Impairment::ClusterApi))
}

/// Returns true if an object that gives its machine away may have to wait: what it has put on the Node cannot be removed, or a pause
/// holds back every write.
fn holds_release(obstacle: Obstacle) -> bool {
    obstacle.hides_node() || obstacle.pauses() || obstacle == Obstacle::Impaired(Impairment::SlowManagement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_switch_is_not_delayed_and_an_orphaned_machine_stays() {
        for obstacle in Obstacle::ALL {
            let of = |emergency| Expected::of(emergency, obstacle);
            assert_eq!(of(MatrixEmergency::KillSwitch).machine_deleted, Some(AT_ONCE), "{obstacle}");
            assert_eq!(of(MatrixEmergency::OrphaningDeletion).machine_deleted, None, "{obstacle}");
            assert!(
                of(MatrixEmergency::Reclaim).machine_deleted <= Some(RECLAIM_BOUND + AT_ONCE),
                "{obstacle}"
            );
            let end = FINALIZER_BOUND + AT_ONCE + slowed(obstacle);
            assert!(of(MatrixEmergency::Deletion).object_gone <= Some(end), "{obstacle}");
        }
    }
}
