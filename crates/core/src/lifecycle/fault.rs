//! Errors of an object that need attention.

use super::demand::Demand;
use super::draft::{Draft, Stage};
use super::situation::{Situation, Spec};
use crate::world::{ReferenceProblemKind, Workload, WorkloadProblem};
use five_spot_api::condition::Reason;

/// The number of consecutive transient failures after which the phase becomes `Error`.
const TRANSIENT_FAILURES_UNTIL_ERROR: u32 = 5;

/// An error of an object that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The description.
    pub message: String,
}

/// The kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The spec is invalid.
    InvalidSpec,
    /// An object that 5-Spot did not create has the name of one that it has to create.
    NameTaken,
    /// An object that the spec refers to is missing, inaccessible or not allowed.
    References(ReferenceProblemKind),
    /// The workload cluster cannot be used.
    Workload(WorkloadProblem),
    /// Pods still blocked the drain at its deadline.
    DrainTimedOut,
    /// The node did not become Ready within `joinTimeout`.
    JoinFailed,
    /// The cleanup of the deleted object exceeded its time limit.
    CleanupTimedOut,
    /// The API server refused an action.
    Refused,
    /// Actions failed repeatedly.
    Repeated,
}

impl FaultKind {
    /// Returns the reason of the condition `Ready`.
    pub const fn reason(self) -> Reason {
        match self {
            Self::InvalidSpec => Reason::InvalidSpec,
            Self::NameTaken => Reason::NameTaken,
            Self::References(kind) => reference_reason(kind),
            Self::Workload(problem) => workload_reason(problem),
            Self::DrainTimedOut => Reason::DrainTimedOut,
            Self::JoinFailed => Reason::JoinFailed,
            Self::CleanupTimedOut => Reason::FinalizerCleanupTimedOut,
            Self::Refused | Self::Repeated => Reason::ReconcileFailed,
        }
    }
}

/// Returns the condition reason for a problem with the workload cluster.
pub(super) const fn workload_reason(problem: WorkloadProblem) -> Reason {
    match problem {
        WorkloadProblem::SecretMissing => Reason::NotFound,
        WorkloadProblem::SecretForbidden | WorkloadProblem::Refused => Reason::Forbidden,
        WorkloadProblem::KubeconfigInvalid => Reason::KubeconfigInvalid,
        WorkloadProblem::Unreachable => Reason::Unreachable,
        WorkloadProblem::WrongCluster => Reason::WrongCluster,
        WorkloadProblem::TooManyClusters => Reason::NotAllowed,
    }
}

pub(super) const fn reference_reason(kind: ReferenceProblemKind) -> Reason {
    match kind {
        ReferenceProblemKind::NotFound => Reason::NotFound,
        ReferenceProblemKind::Forbidden => Reason::Forbidden,
        ReferenceProblemKind::NotAllowed => Reason::NotAllowed,
    }
}

/// Adds the faults that the previous steps have not found. A fault that they have found is closer to the cause and takes
/// precedence.
pub(super) fn of_situation(situation: &Situation<'_>, demand: Demand, draft: &mut Draft) {
    match situation.spec {
        Spec::Invalid(spec) if demand == Demand::Unclear => {
            let errors: Vec<String> = spec.errors.iter().map(ToString::to_string).collect();
            draft.fail(FaultKind::InvalidSpec, errors.join("; "));
        }
        Spec::Invalid(_) | Spec::Valid(_) => {}
    }
    // A removal without a drain does not need the workload cluster.
    let needs_workload = demand.wanted() || situation.living_machine().is_some();
    if let Workload::Unusable { problem, message, .. } = &situation.world.workload
        && needs_workload
        && draft.stage != Stage::Ejecting
    {
        draft.fail(FaultKind::Workload(*problem), message.clone());
    }
    let failures = &situation.world.failures;
    if let Some(last) = &failures.last {
        if last.refused {
            draft.fail(FaultKind::Refused, last.message.clone());
        } else if failures.count >= TRANSIENT_FAILURES_UNTIL_ERROR {
            draft.fail(FaultKind::Repeated, last.message.clone());
        }
    }
}
