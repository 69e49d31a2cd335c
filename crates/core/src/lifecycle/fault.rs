//! What keeps an object from being where it should be and needs someone.

use super::demand::Demand;
use super::draft::{Draft, Stage};
use super::situation::{Situation, Spec};
use crate::world::{ReferenceProblemKind, Workload, WorkloadProblem};
use five_spot_api::condition::Reason;

/// How many failures in a row it takes before a passing trouble is shown as an error.
const TRANSIENT_FAILURES_UNTIL_ERROR: u32 = 5;

/// A fault of this object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// What exactly, in a sentence.
    pub message: String,
}

/// The kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The spec cannot be understood.
    InvalidSpec,
    /// An object of someone else has a name of ours.
    NameTaken,
    /// Something that the spec refers to is missing, refused or not allowed.
    References(ReferenceProblemKind),
    /// The workload cluster cannot be used.
    Workload(WorkloadProblem),
    /// Pods still held the node at the deadline.
    DrainTimedOut,
    /// No Ready node within `joinTimeout`.
    JoinFailed,
    /// The cleanup of the deleted object took longer than its bound.
    CleanupTimedOut,
    /// The API server refused what had to be done.
    Refused,
    /// What had to be done failed again and again.
    Repeated,
}

impl FaultKind {
    /// The reason of the condition `Ready`.
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

/// The reason that a problem with the workload cluster gives to conditions.
pub(super) const fn workload_reason(problem: WorkloadProblem) -> Reason {
    match problem {
        WorkloadProblem::SecretMissing => Reason::NotFound,
        WorkloadProblem::SecretForbidden | WorkloadProblem::Refused => Reason::Forbidden,
        WorkloadProblem::KubeconfigInvalid => Reason::KubeconfigInvalid,
        WorkloadProblem::Unreachable => Reason::Unreachable,
        WorkloadProblem::WrongCluster => Reason::WrongCluster,
    }
}

pub(super) const fn reference_reason(kind: ReferenceProblemKind) -> Reason {
    match kind {
        ReferenceProblemKind::NotFound => Reason::NotFound,
        ReferenceProblemKind::Forbidden => Reason::Forbidden,
        ReferenceProblemKind::NotAllowed => Reason::NotAllowed,
    }
}

/// Faults that the steps before have not found themselves. One that they have found is closer to the
/// cause, and stays.
pub(super) fn of_situation(situation: &Situation<'_>, demand: Demand, draft: &mut Draft) {
    match situation.spec {
        Spec::Invalid(spec) if demand == Demand::Unclear => {
            let errors: Vec<String> = spec.errors.iter().map(ToString::to_string).collect();
            draft.fail(FaultKind::InvalidSpec, errors.join("; "));
        }
        Spec::Invalid(_) | Spec::Valid(_) => {}
    }
    // A machine that goes at once needs nothing of its cluster.
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
