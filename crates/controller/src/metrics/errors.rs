//! The kinds of errors that a dashboard distinguishes.

use five_spot_cluster::transport::Operation;
use five_spot_core::{Fault, FaultKind};

macro_rules! error_kinds {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {
        /// The `error_type` of `fivespot_errors_total`: a closed list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorKind { $($(#[$doc])+ $name),+ }

        impl ErrorKind {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in the label.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

error_kinds! {
    /// A call about a Machine or the objects of its providers failed, a node could not be drained in time, or a name is
    /// taken.
    CapiError,
    /// The schedule of a spec is invalid.
    ScheduleError,
    /// Something else in a spec is invalid.
    ValidationError,
    /// Any other call failed.
    KubeError,
    /// An object that a spec refers to is missing, refused or not allowed.
    ReferenceError,
    /// A workload cluster cannot be used: its kubeconfig is missing or broken, it refuses us, or it does not answer.
    KubeconfigError,
    /// A node did not join in time.
    JoinError,
    /// The cleanup of a deleted object took longer than its bound.
    FinalizerTimeout,
    /// The controller itself failed.
    InternalError,
}

impl ErrorKind {
    /// The kind of a failed operation.
    pub(crate) const fn of_operation(operation: &Operation) -> Self {
        if operation.is_cluster_api() { Self::CapiError } else { Self::KubeError }
    }

    /// The kind of a fault of an object. `is_schedule` is true if the schedule is invalid.
    pub(crate) fn of_fault(fault: &Fault, is_schedule: bool) -> Self {
        match fault.kind {
            FaultKind::InvalidSpec if is_schedule => Self::ScheduleError,
            FaultKind::InvalidSpec => Self::ValidationError,
            FaultKind::NameTaken | FaultKind::DrainTimedOut => Self::CapiError,
            FaultKind::References(_) => Self::ReferenceError,
            FaultKind::Workload(_) => Self::KubeconfigError,
            FaultKind::JoinFailed => Self::JoinError,
            FaultKind::CleanupTimedOut => Self::FinalizerTimeout,
            FaultKind::Refused | FaultKind::Repeated => Self::KubeError,
        }
    }
}
