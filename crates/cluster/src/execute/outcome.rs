//! The outcomes of actions and of whole decisions.

use crate::transport::error::CallError;

/// The outcome of an action that was attempted and did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionOutcome {
    /// The action was carried out.
    Done,
    /// A disruption budget or a webhook does not allow the eviction now. It is retried later.
    Blocked,
    /// The event could not be published, or had been before. Nothing relies on it.
    Unpublished,
}

/// An action that was not carried out.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// A precondition of the action is gone. It is no failure: the next decision looks at the world as it is then.
    Skipped(SkipReason),
    /// A call failed.
    Failed(CallError),
}

impl From<SkipReason> for Unfinished {
    fn from(reason: SkipReason) -> Self {
        Self::Skipped(reason)
    }
}

impl From<CallError> for Unfinished {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

/// The result of an action.
pub(super) type Acted = Result<ActionOutcome, Unfinished>;

macro_rules! skip_reasons {
    ($($(#[$doc:meta])+ $name:ident => $label:literal),+ $(,)?) => {
        /// The precondition of an action that is gone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum SkipReason { $($(#[$doc])+ $name),+ }

        impl SkipReason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The reason in log lines and metric labels.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $label),+ }
            }
        }
    };
}

skip_reasons! {
    /// The action needs facts that the API server has confirmed, and there are none.
    Unconfirmed => "unconfirmed",
    /// The spec is invalid, so that nothing can be made from it.
    InvalidSpec => "invalid_spec",
    /// Cluster API has not been found yet.
    NoClusterApi => "no_cluster_api",
    /// The kind of the provider's object is not served.
    KindNotServed => "kind_not_served",
    /// The workload cluster cannot be used.
    NoWorkloadCluster => "no_workload_cluster",
    /// The controller may not use Leases: machines are lent without claims.
    Unprotected => "unprotected",
    /// The physical machine has not been claimed, so that nothing may be made for it.
    Unclaimed => "unclaimed",
    /// The object of the action does not exist any more.
    ObjectGone => "object_gone",
    /// The object is already as the action would make it.
    AlreadyDone => "already_done",
}

/// The error that ended the execution of a decision.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ExecutionError {
    /// The call that failed.
    #[source]
    pub error: CallError,
    /// True if the taints of the Node could not be written.
    pub taints: bool,
    /// True if the events were published and the status was written before the call failed.
    pub reported: bool,
}

impl From<CallError> for ExecutionError {
    fn from(error: CallError) -> Self {
        Self { error, taints: false, reported: false }
    }
}

/// The execution of a decision.
#[derive(Debug)]
#[must_use]
pub struct Execution {
    /// The actions that were skipped, each with its reason.
    pub skipped: Vec<SkipReason>,
    /// True if our finalizer was removed.
    pub released: bool,
    /// The first failure, if there was one.
    pub result: Result<(), ExecutionError>,
}
