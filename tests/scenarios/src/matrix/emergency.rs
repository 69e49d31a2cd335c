//! The ways to take a machine back, or to let its object go.

use crate::catalog::nodes::reclaim;
use crate::environment::Environment;
use crate::kinds::SCHEDULED_MACHINE;
use crate::subject::Subject;
use kube::api::PropagationPolicy;
use serde_json::json;
use std::fmt;

/// Something that has to happen whatever else is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Emergency {
    /// `killSwitch: true`.
    KillSwitch,
    /// The owner's processes ask for the machine.
    Reclaim,
    /// The object is deleted.
    Deletion,
    /// The object was deleted, its drain is held up, and the time of its finalizer ends.
    FinalizerBound,
    /// The object is deleted, and whoever does so keeps the machine.
    OrphaningDeletion,
}

impl Emergency {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::KillSwitch, Self::Reclaim, Self::Deletion, Self::FinalizerBound, Self::OrphaningDeletion];

    /// Returns true if a pod on the node is held by a budget. Neither a kill switch nor a reclaim asks budgets; a deletion is held
    /// up until its time is over, and a machine that nobody wants to delete is kept from leaving for another reason.
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

impl fmt::Display for Emergency {
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
