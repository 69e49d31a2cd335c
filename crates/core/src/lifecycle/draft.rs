//! A decision in the making.

use super::fault::{Fault, FaultKind};
use super::situation::Situation;
use crate::action::Action;
use crate::drain::{self, Progress};
use crate::text;
use five_spot_api::{DrainStatus, JoinStatus, ReclaimRecord, WorkloadCluster};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What the steps of a decision have put together so far.
pub(super) struct Draft {
    pub(super) actions: Vec<Action>,
    pub(super) fault: Option<Fault>,
    pub(super) facts: Facts,
    pub(super) stage: Stage,
    pub(super) watch_pods: bool,
    pub(super) judge_pods: bool,
    pub(super) taints: TaintStage,
    /// What a pause has held back.
    pub(super) held_back: Vec<Action>,
    /// A machine is given back, or an object let go, that nothing may hold up any more.
    pub(super) is_urgent: bool,
    /// The caches show a Node that should be gone: only its cluster can tell.
    pub(super) doubts_node: bool,
    wake: Option<Timestamp>,
}

/// What has to be remembered from one decision to the next.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) shutdown_started_at: Option<Time>,
    pub(super) drain: Option<DrainStatus>,
    pub(super) reclaims: Vec<ReclaimRecord>,
    pub(super) join: Option<JoinStatus>,
    pub(super) workload_cluster: Option<WorkloadCluster>,
}

/// What is going on, for the words in status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing.
    Resting,
    /// The objects are being made.
    Creating,
    /// Objects of the last machine are still terminating.
    WaitingForOldMachine,
    /// A Machine whose node did not join is given up; the next one comes later.
    WaitingToJoinAgain,
    /// The Machine is there and wanted.
    Running,
    /// The Machine is there and wanted, but not as it is.
    Parting(Parting),
    /// The Machine has to go.
    Removing,
    /// It goes at once.
    Ejecting,
}

impl Stage {
    /// Another machine comes for this one.
    pub(super) const fn is_replacing(self) -> bool {
        matches!(self, Self::Parting(Parting::SpecChanged | Parting::PartDeleted))
    }
}

/// Why a machine that is wanted has to go all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// The spec describes another one.
    SpecChanged,
    /// Somebody has deleted a part of it.
    PartDeleted,
    /// Its Cluster is being deleted, and cannot go before all of its Machines are gone.
    ClusterDeleted,
}

/// How the Node's taints stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaintStage {
    /// None are wanted and none are ours.
    NotNeeded,
    /// There is no Node to taint.
    NoNode,
    /// The Node is not Ready.
    NodeNotReady,
    /// They are being written.
    Writing,
    /// They could not be written.
    Failed(String),
    /// Someone else's are in the way.
    Conflict(String),
    /// They are there.
    Applied,
}

/// What is known of joins. Since when a node has been waited for belongs to the Machine that was there then.
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
            stage: Stage::Resting,
            watch_pods: false,
            judge_pods: false,
            taints: TaintStage::NotNeeded,
            held_back: Vec::new(),
            is_urgent: false,
            doubts_node: false,
            wake: None,
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Records a fault, unless one is known already.
    pub(super) fn fail(&mut self, kind: FaultKind, message: impl Into<String>) {
        self.fault.get_or_insert_with(|| {
            let message = message.into();
            Fault { kind, message: text::bounded(&message, text::MAX_MESSAGE).into_owned() }
        });
    }

    /// Records how far the drain is that belongs to the present shutdown.
    pub(super) fn record_drain(&mut self, situation: &Situation<'_>, progress: &Progress) {
        let last = self.facts.drain.take();
        // One clock has told when both began, whatever it tells now.
        let shutdown = situation.prior().shutdown_started_at.as_ref();
        let prior = last.as_ref().filter(|drain| shutdown.is_some_and(|began| drain.started_at >= *began));
        let began = prior.and_then(|drain| situation.past(Some(&drain.started_at)));
        self.facts.drain = Some(drain::status(prior, began.unwrap_or(situation.second), progress));
    }

    /// Asks to be woken at `time`, if it is still to come.
    pub(super) fn wake(&mut self, situation: &Situation<'_>, time: Timestamp) {
        if time > situation.now {
            self.wake = Some(self.wake.map_or(time, |earlier| earlier.min(time)));
        }
    }

    /// The earliest moment at which anything of this changes by itself.
    pub(super) fn wake_at(&self, situation: &Situation<'_>) -> Option<Timestamp> {
        let boundary = situation.plan().and_then(|plan| plan.next_boundary(situation.now));
        let retry = situation.world.failures.last.as_ref().map(|failure| failure.retry_at);
        [self.wake, boundary, retry.filter(|time| *time > situation.now)].into_iter().flatten().min()
    }
}
