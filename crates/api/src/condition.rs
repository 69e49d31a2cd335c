//! The types and reasons of conditions.

/// The type of a condition in `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The object has reached the state that it should be in, in the sense of kstatus.
    Ready,
    /// A node is in the cluster and Ready.
    MachineReady,
    /// A machine is wanted at this time.
    Scheduled,
    /// All objects that the spec refers to exist and may be used.
    ReferencesValid,
    /// The Node carries the taints of `nodeTaints`.
    NodeTainted,
    /// The node was drained in the current or the last shutdown.
    Drained,
    /// A pause holds back all changes except to the status.
    Paused,
}

impl ConditionType {
    /// All types, in the order of `status.conditions`.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::MachineReady,
        Self::Scheduled,
        Self::ReferencesValid,
        Self::NodeTainted,
        Self::Drained,
        Self::Paused,
    ];

    /// The name in `status.conditions`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::MachineReady => "MachineReady",
            Self::Scheduled => "Scheduled",
            Self::ReferencesValid => "ReferencesValid",
            Self::NodeTainted => "NodeTainted",
            Self::Drained => "Drained",
            Self::Paused => "Paused",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {
        /// The reason of a condition. All condition types share one list, because several use the same reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])+ $name),+ }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in `status.conditions`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

reasons! {
    /// The machine is wanted and its node is Ready.
    NodeReady,
    /// The schedule is closed and no machine is lent.
    Inactive,
    /// `enabled` is false and no machine is lent.
    Disabled,
    /// `killSwitch` is true and no machine is lent.
    Terminated,
    /// The Machine is being created, or its node has not joined yet.
    Provisioning,
    /// The Machine has a node that is not Ready.
    NodeNotReady,
    /// There is no Node yet.
    NoNodeYet,
    /// The Node had joined and disappeared while its Machine still exists.
    NodeLost,
    /// The Node still exists although its Machine is gone.
    NodeLeftBehind,
    /// No Machine exists.
    NoMachine,
    /// The Machine is being replaced because the spec changed.
    Replacing,
    /// The objects of the previous Machine are still being deleted.
    WaitingForOldMachine,
    /// Another `ScheduledMachine` has the physical machine.
    MachineInUse,
    /// The machine is being drained or deleted.
    ShuttingDown,
    /// An emergency reclaim is in progress.
    EmergencyRemove,
    /// The last reconciles failed.
    ReconcileFailed,
    /// The spec is invalid.
    InvalidSpec,
    /// Pods still blocked the drain at its deadline.
    DrainTimedOut,
    /// The node did not become Ready within `joinTimeout`.
    JoinFailed,
    /// An object that 5-Spot did not create has the name of one that it has to create.
    NameTaken,
    /// The kubeconfig of the workload cluster is unusable.
    KubeconfigInvalid,
    /// The workload cluster does not answer.
    Unreachable,
    /// The kubeconfig refers to a different cluster than the one in which the Node was last seen.
    WrongCluster,
    /// The cleanup of the deleted object exceeded its time limit.
    FinalizerCleanupTimedOut,
    /// A pause holds back changes.
    Paused,
    /// A machine is wanted: the schedule is open.
    InWindow,
    /// A machine is wanted: the schedule opens within `leadTime`.
    LeadTime,
    /// A machine is wanted: `override.state` is `up`.
    Override,
    /// No machine is wanted: the schedule is closed.
    OutsideWindow,
    /// No machine is wanted: `override.state` is `down`.
    OverrideDown,
    /// No machine is wanted: `killSwitch` is true.
    KillSwitch,
    /// No machine is wanted: an emergency reclaim disabled the schedule.
    EmergencyReclaimDisabledSchedule,
    /// No machine is wanted: a reclaim has finished, and no person has allowed the machine to be lent again yet.
    AwaitingResume,
    /// No machine is wanted: the object is being deleted.
    Deleted,
    /// The schedule is invalid, so whether a machine is wanted is unknown.
    InvalidSchedule,
    /// All objects that the spec refers to exist and may be used.
    Resolved,
    /// An object that the spec refers to does not exist.
    NotFound,
    /// The controller lacks a permission that the spec requires.
    Forbidden,
    /// The spec asks for something that is not allowed.
    NotAllowed,
    /// The Node carries the taints.
    Applied,
    /// The taints could not be written.
    PatchFailed,
    /// A taint that 5-Spot did not set has the same key and effect.
    TaintOwnershipConflict,
    /// The node is being drained.
    Draining,
    /// Pods block the drain.
    Blocked,
    /// The drain is complete.
    Drained,
    /// The Cluster API Cluster is paused.
    ClusterPaused,
    /// The annotation `cluster.x-k8s.io/paused` is set.
    CapiAnnotation,
    /// The annotation `5spot.finos.org/paused` is set on the object.
    ObjectAnnotation,
    /// The annotation `5spot.finos.org/paused` is set on the namespace.
    NamespaceAnnotation,
    /// The brake holds a removal back: too many machines would be removed for a reason other than their own schedule.
    TooManyRemovals,
    /// The object is not paused.
    NotPaused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_the_form_of_a_condition() {
        for reason in Reason::ALL {
            let word = reason.as_str();
            assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
            assert!(word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
        }
    }
}
