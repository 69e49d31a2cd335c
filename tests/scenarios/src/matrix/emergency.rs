//! The ways to return a machine at once, or to release its object.

use crate::catalog::nodes::reclaim;
use crate::environment::Environment;
use crate::kinds::SCHEDULED_MACHINE;
use crate::subject::Subject;
use kube::api::PropagationPolicy;
use serde_json::json;
use std::fmt;

/// An emergency, which has to work whatever else is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatrixEmergency {
    /// `killSwitch: true`.
    KillSwitch,
    /// The reclaim agent requests the machine for its owner.
    Reclaim,
    /// The object is deleted.
    Deletion,
    /// The object was deleted, its drain is blocked, and the time limit of its finalizer ends.
    FinalizerBound,
    /// The object is deleted with orphaning, which keeps the machine.
    OrphaningDeletion,
}

impl MatrixEmergency {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::KillSwitch, Self::Reclaim, Self::Deletion, Self::FinalizerBound, Self::OrphaningDeletion];

    /// Returns true if a pod on the node is held by a budget. A kill switch and a reclaim ignore budgets. A deletion is
    /// blocked until its time is over. A machine that should not be deleted stays for another reason.
    pub(super) const fn has_budget(self) -> bool {
        match self {
            Self::KillSwitch | Self::Reclaim | Self::FinalizerBound | Self::OrphaningDeletion => true,
            Self::Deletion => false,
        }
    }

    /// Begins it.
    pub(super) async fn begin(
        self,
        env: &dyn Environment,
        subject: &Subject<'_>,
        node: &str,
    ) -> anyhow::Result<()> {
        match self {
            Self::KillSwitch => subject.set(json!({"killSwitch": true})).await,
            Self::Reclaim => reclaim(env, node).await,
            Self::Deletion | Self::FinalizerBound => env.delete(SCHEDULED_MACHINE, subject.name()).await,
            Self::OrphaningDeletion => {
                env.delete_with(SCHEDULED_MACHINE, subject.name(), PropagationPolicy::Orphan).await
            }
        }
    }
}

impl fmt::Display for MatrixEmergency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillSwitch => "kill-switch",
            Self::Reclaim => "reclaim",
            Self::Deletion => "deletion",
            Self::FinalizerBound => "finalizer-bound",
            Self::OrphaningDeletion => "orphaning-deletion",
        })
    }
}
