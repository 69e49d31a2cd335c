//! A decision under construction.

use super::brake::Removal;
use super::fault::{Fault, FaultKind};
use super::situation::Situation;
use crate::action::Action;
use crate::drain::{self, DrainProgress};
use crate::text;
use five_spot_api::{DrainStatus, JoinStatus, ReclaimRecord, WorkloadCluster};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The parts of a decision, as far as its steps have determined them.
pub(super) struct Draft {
    pub(super) actions: Vec<Action>,
    pub(super) fault: Option<Fault>,
    pub(super) facts: Facts,
    pub(super) stage: Stage,
    pub(super) watch_pods: bool,
    pub(super) resolve_drain_rules: bool,
    pub(super) taints: TaintStage,
    /// The removal of a machine whose schedule has closed.
    pub(super) removal: Removal,
    /// True during a pause: the deadline of a shutdown and the time to join start again when it is over.
    pub(super) timers_stand_still: bool,
    /// The actions that a pause holds back.
    pub(super) held_back: Vec<Action>,
    /// True if nothing may delay the actions: they return a machine to its owner or release an object after its timeout.
    pub(super) is_urgent: bool,
    /// True if the caches show a Node that should be gone, which only a live read can confirm.
    pub(super) node_needs_confirmation: bool,
    wake: Option<Timestamp>,
}

/// The facts that are recorded in the status for the next decision.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) shutdown_started_at: Option<Time>,
    pub(super) drain: Option<DrainStatus>,
    pub(super) reclaims: Vec<ReclaimRecord>,
    pub(super) join: Option<JoinStatus>,
    pub(super) workload_cluster: Option<WorkloadCluster>,
}

/// The current stage, for the messages in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is in progress.
    Idle,
    /// The objects are being created.
    Creating,
    /// The objects of the previous Machine are still being deleted.
    WaitingForOldMachine,
    /// Another object has the physical machine, or is to have it first.
    WaitingForMachine,
    /// A Machine whose node did not join was given up; the next one is created later.
    WaitingToJoinAgain,
    /// The Machine exists and is wanted.
    Running,
    /// A machine is wanted, but this Machine cannot stay.
    TakingDown(TakedownReason),
    /// The Machine is being shut down.
    Removing,
    /// The Machine is being deleted without a drain.
    Ejecting,
}

impl Stage {
    /// Returns true if another Machine replaces this one.
    pub(super) const fn is_replacing(self) -> bool {
        matches!(self, Self::TakingDown(TakedownReason::SpecChanged | TakedownReason::PartDeleted))
    }
}

/// The reason why a Machine cannot stay although a machine is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakedownReason {
    /// The spec has changed.
    SpecChanged,
    /// Someone has deleted its bootstrap or infrastructure object.
    PartDeleted,
    /// Its Cluster is being deleted, which waits for all of its Machines.
    ClusterDeleted,
}

/// The state of the taints of the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaintStage {
    /// No taints are wanted and none are owned.
    NotNeeded,
    /// There is no Node.
    NoNode,
    /// The Node is not Ready.
    NodeNotReady,
    /// They are being written.
    Writing,
    /// They could not be written.
    Failed(String),
    /// Someone else has set a taint with the same key and effect.
    Conflict(String),
    /// They are on the Node.
    Applied,
}

/// Returns the recorded join times. `waiting_since` is dropped if it belongs to an earlier Machine.
fn known_join(situation: &Situation<'_>) -> Option<JoinStatus> {
    let prior = situation.prior();
    let known = prior.machine_ref.as_ref().and_then(|machine| machine.uid.as_deref());
    let now = situation.world.machine.ours().map(|machine| machine.uid.as_str());
    let mut join = prior.join.clone()?;
    join.waiting_since = join.waiting_since.filter(|_| now.is_some() && now == known);
    Some(join)
}

impl Draft {
    pub(super) fn new(situation: &Situation<'_>) -> Self {
        let prior = situation.prior();
        Self {
            actions: Vec::new(),
            fault: None,
            facts: Facts {
                shutdown_started_at: prior.shutdown_started_at.clone(),
                drain: prior.drain.clone(),
                reclaims: prior.reclaims.clone(),
                join: known_join(situation),
                workload_cluster: prior.workload_cluster.clone(),
            },
            stage: Stage::Idle,
            watch_pods: false,
            resolve_drain_rules: false,
            taints: TaintStage::NotNeeded,
            removal: Removal::default(),
            timers_stand_still: false,
            held_back: Vec::new(),
            is_urgent: false,
            node_needs_confirmation: false,
            wake: None,
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Records a fault, unless one is already recorded.
    pub(super) fn fail(&mut self, kind: FaultKind, message: impl Into<String>) {
        self.fault.get_or_insert_with(|| {
            let message = message.into();
            Fault { kind, message: text::bounded(&message, text::MAX_MESSAGE).into_owned() }
        });
    }

    /// Records the progress of the drain of the current shutdown.
    pub(super) fn record_drain(&mut self, situation: &Situation<'_>, progress: &DrainProgress) {
        let last = self.facts.drain.take();
        // Both times come from the same clock, so they can be compared even if it was set back since.
        let shutdown = situation.prior().shutdown_started_at.as_ref();
        let prior = last.as_ref().filter(|drain| shutdown.is_some_and(|began| drain.started_at >= *began));
        let began = prior.and_then(|drain| situation.past(Some(&drain.started_at)));
        self.facts.drain = Some(drain::status(prior, began.unwrap_or(situation.second), progress));
    }

    /// Requests another decision at `time`, if that is in the future.
    pub(super) fn wake(&mut self, situation: &Situation<'_>, time: Timestamp) {
        if time > situation.now {
            self.wake = Some(self.wake.map_or(time, |earlier| earlier.min(time)));
        }
    }

    /// Returns the earliest time at which another decision is needed.
    pub(super) fn wake_at(&self, situation: &Situation<'_>) -> Option<Timestamp> {
        let boundary = situation.plan().and_then(|plan| plan.next_boundary(situation.now));
        let retry = situation.world.failures.last.as_ref().map(|failure| failure.retry_at);
        // A time to resume that is still to come counts from then on.
        let resume = situation.world.object.resume;
        let to_come = [retry, resume].into_iter().flatten().filter(|time| *time > situation.now);
        // A removal that is held becomes planned when its recorded time comes.
        let planned = self.removal.record.as_ref().filter(|_| self.removal.is_held());
        let planned = planned.and_then(|record| record.planned_for.as_ref()).map(|time| time.0);
        let planned = planned.filter(|time| *time > situation.now);
        [self.wake, boundary, planned].into_iter().flatten().chain(to_come).min()
    }
}
