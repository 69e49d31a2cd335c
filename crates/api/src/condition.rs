//! Condition types and their reasons.

/// The type of a condition in `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The object is where it should be, in the sense of kstatus.
    Ready,
    /// A node is in the cluster and Ready.
    MachineReady,
    /// A machine is wanted now.
    Scheduled,
    /// Everything that the spec refers to is there and allowed.
    ReferencesValid,
    /// The Node carries the taints of `nodeTaints`.
    NodeTainted,
    /// The node has been emptied for the shutdown in progress, or the last one.
    Drained,
    /// Something holds back every write but status.
    Paused,
}

impl ConditionType {
    /// Every type, in the order of `status.conditions`.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::MachineReady,
        Self::Scheduled,
        Self::ReferencesValid,
        Self::NodeTainted,
        Self::Drained,
        Self::Paused,
    ];

    /// The word in status.
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
        /// Why a condition has its value. One list for all types: several share a reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])+ $name),+ }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in status.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

reasons! {
    /// The node is Ready, and wanted.
    NodeReady,
    /// Outside the schedule, and gone.
    Inactive,
    /// `enabled: false`, and gone.
    Disabled,
    /// `killSwitch`, and gone.
    Terminated,
    /// The Machine is being made or its node has not joined yet.
    Provisioning,
    /// The Machine has a node that is not Ready.
    NodeNotReady,
    /// There is no Node yet.
    NoNodeYet,
    /// The Node had joined and is gone while its Machine lives.
    NodeLost,
    /// The Node is still there although its Machine is gone.
    NodeLeftBehind,
    /// There is no Machine.
    NoMachine,
    /// The Machine is being replaced because the spec changed.
    Replacing,
    /// Objects of the last window are still terminating.
    WaitingForOldMachine,
    /// The machine is being drained or deleted.
    ShuttingDown,
    /// A reclaim is being carried out.
    EmergencyRemove,
    /// The last reconciles failed.
    ReconcileFailed,
    /// The spec cannot be understood.
    InvalidSpec,
    /// Pods still held the node at the drain deadline.
    DrainTimedOut,
    /// No Ready node within `joinTimeout`.
    JoinFailed,
    /// An object of ours has a name that belongs to someone else.
    NameTaken,
    /// The workload cluster's kubeconfig cannot be used as it is.
    KubeconfigInvalid,
    /// The workload cluster does not answer.
    Unreachable,
    /// The kubeconfig leads to another cluster than the one that the Node was last seen in.
    WrongCluster,
    /// The cleanup of the deleted object took longer than its bound.
    FinalizerCleanupTimedOut,
    /// Something is held back by a pause.
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
    /// No machine is wanted: `killSwitch`.
    KillSwitch,
    /// No machine is wanted: a reclaim switched the schedule off.
    EmergencyReclaimDisabledSchedule,
    /// No machine is wanted: the object is being deleted.
    Deleted,
    /// It cannot be said whether a machine is wanted: the schedule is not valid.
    InvalidSchedule,
    /// Everything that the spec refers to is in order.
    Resolved,
    /// Something that the spec refers to does not exist.
    NotFound,
    /// The API server refuses the controller what the spec asks for.
    Forbidden,
    /// The spec asks for what is not allowed.
    NotAllowed,
    /// The Node carries the taints.
    Applied,
    /// The taints could not be written.
    PatchFailed,
    /// Someone else's taint has the same key and effect.
    TaintOwnershipConflict,
    /// Pods are leaving the node.
    Draining,
    /// Pods that may not be disrupted hold the node.
    Blocked,
    /// The node is empty.
    Drained,
    /// CAPI's Cluster is paused.
    ClusterPaused,
    /// The annotation `cluster.x-k8s.io/paused` is set.
    CapiAnnotation,
    /// The annotation `5spot.finos.org/paused` is set on the object.
    ObjectAnnotation,
    /// The annotation `5spot.finos.org/paused` is set on the namespace.
    NamespaceAnnotation,
    /// Nothing holds the object back.
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
