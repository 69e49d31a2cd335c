//! One execution of one decision: the facts that it is based on, and the calls that all actions share.

use crate::cache::caches::Caches;
use crate::cache::lock::lock;
use crate::cache::workload::WorkloadLink;
use crate::execute::outcome::{Execution, ExecutionError, SkipReason};
use crate::transport::key::ObjectKey;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::confirm::{Confirmed, Template};
use crate::view::observed::Observed;
use five_spot_core::action::Action;
use five_spot_core::{Decision, Evidence};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The facts that a decision was made on.
#[derive(Clone, Copy)]
pub enum Basis<'a> {
    /// The caches. Enough for actions that do no harm if the caches lag, and for an emergency.
    Cached(&'a Observed),
    /// Live reads. Needed to create, delete or release anything outside of an emergency.
    Confirmed(&'a Confirmed),
}

impl<'a> Basis<'a> {
    /// The object and its world.
    pub fn observed(self) -> &'a Observed {
        match self {
            Self::Cached(observed) => observed,
            Self::Confirmed(confirmed) => confirmed.observed(),
        }
    }
}

/// The permission to delete or release an object: facts that the API server has confirmed, or an emergency, which does
/// not wait for them. Each deletion still carries the UID that it is meant for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Warrant(());

impl Warrant {
    const fn of(basis: Basis<'_>, decision: &Decision) -> Option<Self> {
        match (basis, decision.evidence) {
            (Basis::Confirmed(_), _) | (Basis::Cached(_), Evidence::BestEffort) => Some(Self(())),
            (Basis::Cached(_), Evidence::Cached | Evidence::Confirmed) => None,
        }
    }
}

/// Facts that the API server has confirmed, whatever the decision demands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmation(());

/// The permission to create objects for a physical machine: the object has claimed it, in this execution or before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed(());

/// The execution of one decision.
pub(super) struct Job<'a> {
    pub(super) caches: &'a Arc<Caches>,
    pub(super) key: &'a ObjectKey,
    pub(super) observed: &'a Observed,
    basis: Basis<'a>,
    warrant: Option<Warrant>,
    /// True if the decision demands a claim that has not succeeded yet.
    lacks_claim: AtomicBool,
    skipped: Mutex<Vec<SkipReason>>,
    released: AtomicBool,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        caches: &'a Arc<Caches>,
        key: &'a ObjectKey,
        basis: Basis<'a>,
        decision: &Decision,
    ) -> Self {
        Self {
            observed: basis.observed(),
            warrant: Warrant::of(basis, decision),
            lacks_claim: AtomicBool::new(
                decision.actions.iter().any(|action| matches!(action, Action::Claim { .. })),
            ),
            skipped: Mutex::default(),
            released: AtomicBool::default(),
            caches,
            key,
            basis,
        }
    }

    /// The permission to delete or release.
    pub(super) fn warrant(&self) -> Result<Warrant, SkipReason> {
        self.warrant.ok_or(SkipReason::Unconfirmed)
    }

    /// The confirmed spec from which objects are made.
    pub(super) fn template(&self) -> Result<&'a Template, SkipReason> {
        match self.basis {
            Basis::Confirmed(confirmed) => confirmed.template().ok_or(SkipReason::InvalidSpec),
            Basis::Cached(_) => Err(SkipReason::Unconfirmed),
        }
    }

    /// The confirmed facts that a release demands even in an emergency.
    pub(super) const fn confirmation(&self) -> Result<Confirmation, SkipReason> {
        match self.basis {
            Basis::Confirmed(_) => Ok(Confirmation(())),
            Basis::Cached(_) => Err(SkipReason::Unconfirmed),
        }
    }

    /// The permission to create.
    pub(super) fn claimed(&self) -> Result<Claimed, SkipReason> {
        if self.lacks_claim.load(Ordering::SeqCst) { Err(SkipReason::Unclaimed) } else { Ok(Claimed(())) }
    }

    /// Notes that the machine is claimed, or that it cannot be claimed.
    pub(super) fn note_claimed(&self) {
        self.lacks_claim.store(false, Ordering::SeqCst);
    }

    /// The link to the cluster of the Node.
    pub(super) fn link(&self) -> Result<&'a WorkloadLink, SkipReason> {
        self.observed.link.as_deref().ok_or(SkipReason::NoWorkloadCluster)
    }

    /// The UID of the object that was decided on.
    pub(super) fn uid(&self) -> &str {
        self.observed.world.object.uid.as_str()
    }

    /// Notes a skipped action.
    pub(super) fn note_skipped(&self, action: &Action, reason: SkipReason) {
        tracing::debug!(%action, reason = reason.as_str(), "Action skipped: its precondition is gone");
        lock(&self.skipped).push(reason);
    }

    /// Notes an action that was carried out.
    pub(super) fn note_done(&self, action: &Action) {
        if *action == Action::RemoveFinalizer {
            self.released.store(true, Ordering::SeqCst);
        }
    }

    /// The execution that has ended with this result.
    pub(super) fn into_execution(self, result: Result<(), ExecutionError>) -> Execution {
        Execution {
            skipped: std::mem::take(&mut *lock(&self.skipped)),
            released: self.released.load(Ordering::SeqCst),
            result,
        }
    }

    /// An operation on the object itself.
    pub(super) fn on_object(&self, verb: Verb) -> Operation {
        Operation::new(verb, TargetKind::ScheduledMachine, self.key.clone())
    }
}
