//! Taking a machine down: gracefully, by emptying its node before the Machine is deleted, or at once.

use super::demand::UnwantedBy;
use super::draft::{Draft, Stage};
use super::fault::FaultKind;
use super::situation::{Situation, instant};
use crate::action::{Action, Event, EventCause, NodeRef};
use crate::drain;
use crate::text;
use crate::world::{FormerNode, MachineView, NodeFact, NodeView, PodView, ProviderView, Slot, Uid};
use five_spot_api::OnTimeout;
use five_spot_api::event::EventReason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Takes down what there is, for this cause.
pub(super) fn take_down(situation: &Situation<'_>, cause: UnwantedBy, draft: &mut Draft) {
    if situation.world.object.deletion.is_some_and(|deletion| deletion.orphan) {
        return;
    }
    let at_once = match cause {
        UnwantedBy::KillSwitch | UnwantedBy::Reclaim => true,
        UnwantedBy::Deletion => situation.handling().kill_switch,
        UnwantedBy::OverrideDown
        | UnwantedBy::Disabled
        | UnwantedBy::DisabledByReclaim
        | UnwantedBy::OutsideWindow => false,
    };
    if at_once {
        draft.stage = Stage::Ejecting;
        eject(situation, draft);
    } else {
        draft.stage = Stage::Removing;
        shut_down(situation, draft);
    }
    if !situation.anything_left() {
        draft.stage = Stage::Resting;
        forget(situation, draft);
    }
}

/// A machine that is gone leaves nothing to remember but its last drain, its reclaims and joins.
pub(super) fn forget(situation: &Situation<'_>, draft: &mut Draft) {
    draft.facts.shutdown_started_at = None;
    if situation.world.machine.ours().is_none() && situation.world.former_node == FormerNode::Gone {
        draft.facts.workload_cluster = None;
    }
    if let Some(join) = &mut draft.facts.join {
        join.failed_at = None;
        join.machine_uid = None;
        join.waiting_since = None;
    }
}

/// Deletes the Machine at once, without any drain, CAPI's included.
pub(super) fn eject(situation: &Situation<'_>, draft: &mut Draft) {
    match situation.world.machine.ours() {
        Some(machine) => {
            draft.is_urgent = true;
            delete_without_drain(machine, true, draft);
        }
        None => clear_leftovers(situation, draft),
    }
}

/// Empties the node, then deletes the Machine, all within its deadline.
pub(super) fn shut_down(situation: &Situation<'_>, draft: &mut Draft) {
    let Some(machine) = situation.world.machine.ours() else {
        return clear_leftovers(situation, draft);
    };
    if machine.terminating {
        return exclude_late(situation, machine, draft);
    }
    let started_at = situation.past(draft.facts.shutdown_started_at.as_ref()).unwrap_or(situation.second);
    draft.facts.shutdown_started_at = Some(Time(started_at));
    let deadline = deadline(situation, started_at);
    draft.wake(situation, deadline);
    match &situation.world.node {
        NodeFact::NotYet | NodeFact::Gone | NodeFact::Mismatch { .. } => delete_machine(machine, draft),
        NodeFact::Unknown => {
            let stuck = Stuck {
                what: "the node cannot be drained because its workload cluster is unreachable".to_owned(),
                pods: &[],
            };
            overdue(situation, machine, deadline, &stuck, draft);
        }
        NodeFact::Found(node) => {
            let retry_at = situation.world.failures.last.as_ref().map(|failure| failure.retry_at);
            empty(situation, machine, node, drain::Pace { began: started_at, deadline, retry_at }, draft);
        }
    }
}

/// A Machine that is being deleted: what `onTimeout: Force` could not exclude before is excluded now.
fn exclude_late(situation: &Situation<'_>, machine: &MachineView, draft: &mut Draft) {
    let started_at = draft.facts.shutdown_started_at.as_ref().map(instant);
    let Some(started_at) = started_at.filter(|_| situation.handling().on_timeout == OnTimeout::Force) else {
        return;
    };
    let deadline = deadline(situation, started_at);
    draft.wake(situation, deadline);
    if situation.now >= deadline {
        delete_without_drain(machine, true, draft);
    }
}

/// The moment at which draining ends, one way or the other.
fn deadline(situation: &Situation<'_>, started_at: Timestamp) -> Timestamp {
    let handling = situation.handling();
    let timeout = handling.graceful_shutdown_timeout.min(handling.node_drain_timeout);
    let deadline = started_at.saturating_add(timeout).unwrap_or(Timestamp::MAX);
    cleanup_deadline(situation).map_or(deadline, |bound| bound.min(deadline))
}

/// The moment at which the cleanup of a deleted object has taken too long.
pub(super) fn cleanup_deadline(situation: &Situation<'_>) -> Option<Timestamp> {
    let since = situation.world.object.deletion?.since;
    Some(since.saturating_add(situation.world.policy.finalizer_cleanup_timeout).unwrap_or(Timestamp::MAX))
}

fn empty(
    situation: &Situation<'_>,
    machine: &MachineView,
    node: &NodeView,
    pace: drain::Pace,
    draft: &mut Draft,
) {
    draft.watch_pods = true;
    if !node.unschedulable {
        draft.act(Action::Cordon { node: node_ref(node) });
    }
    draft.judge_pods = node.has_unjudged_pods();
    let Some(pods) = node.pods.as_ref().filter(|_| node.pods_judged) else {
        let stuck = Stuck { what: format!("the pods of node {} could not be read", node.name), pods: &[] };
        return overdue(situation, machine, pace.deadline, &stuck, draft);
    };
    let progress = drain::evict(pods, node.readiness, pace, situation.now);
    draft.record_drain(situation, &progress);
    if progress.done() {
        return delete_without_drain(machine, false, draft);
    }
    if let Some(look) = progress.next_look {
        draft.wake(situation, look);
    }
    draft.actions.extend(progress.actions);
    let blockers: Vec<String> =
        progress.blocked.iter().map(|blocked| format!("{} ({})", blocked.pod, blocked.reason)).collect();
    let what = match blockers.as_slice() {
        [] => format!("{} still on node {}", text::counted(progress.remaining, "pod"), node.name),
        named => format!("drain of node {} is blocked by {}", node.name, named.join(", ")),
    };
    let pods = drain::leaving(pods, node.readiness, pace.began, situation.now);
    overdue(situation, machine, pace.deadline, &Stuck { what, pods: &pods }, draft);
}

/// What is in the way of a drain.
struct Stuck<'a> {
    /// In a sentence.
    what: String,
    /// The pods that are still there.
    pods: &'a [&'a PodView],
}

/// Past the deadline either the Machine is deleted regardless, or someone has to look at what holds it.
fn overdue(
    situation: &Situation<'_>,
    machine: &MachineView,
    deadline: Timestamp,
    stuck: &Stuck<'_>,
    draft: &mut Draft,
) {
    if situation.now < deadline {
        return;
    }
    match situation.handling().on_timeout {
        OnTimeout::Force => {
            draft.actions.clear();
            let started_at = draft.facts.shutdown_started_at.as_ref();
            draft.act(Action::Publish(drain_forced(stuck, started_at, deadline, situation)));
            delete_without_drain(machine, true, draft);
        }
        OnTimeout::Error => {
            draft.fail(
                FaultKind::DrainTimedOut,
                format!("drain deadline {deadline} passed: {}; retrying", stuck.what),
            );
        }
    }
}

/// What `onTimeout: Force` overrides, with the pods that are lost.
fn drain_forced(
    stuck: &Stuck<'_>,
    started_at: Option<&Time>,
    deadline: Timestamp,
    situation: &Situation<'_>,
) -> Event {
    let names: Vec<String> =
        stuck.pods.iter().take(drain::MAX_BLOCKED).map(|pod| pod.id.to_string()).collect();
    let lost = match stuck.pods.len() {
        0 => String::new(),
        count => format!(" with {} on its node: {}", text::counted(count, "pod"), names.join(", ")),
    };
    Event {
        reason: EventReason::DrainForced,
        note: format!(
            "Drain deadline {deadline} passed and drain.onTimeout is Force: deleting Machine {}{lost} ({})",
            situation.machine_name(),
            stuck.what
        ),
        cause: EventCause::Instant(started_at.map_or(situation.second, instant)),
    }
}

/// Tells CAPI not to drain, because the node is empty or need not be emptied, and deletes the Machine.
pub(super) fn delete_without_drain(machine: &MachineView, volumes: bool, draft: &mut Draft) {
    if !machine.drain_excluded || (volumes && !machine.volume_wait_excluded) {
        draft.act(Action::ExcludeDrain { machine: machine.uid.clone(), volumes });
    }
    delete_machine(machine, draft);
}

pub(super) fn delete_machine(machine: &MachineView, draft: &mut Draft) {
    if !machine.terminating {
        draft.act(Action::DeleteMachine { machine: machine.uid.clone() });
    }
}

/// Deletes what is left when the Machine is gone. Never earlier: CAPI abandons its drain when it finds
/// the infrastructure object going.
pub(super) fn clear_leftovers(situation: &Situation<'_>, draft: &mut Draft) {
    if let Some(uid) = leftover(&situation.world.infrastructure) {
        draft.act(Action::DeleteInfrastructure { uid });
    }
    if let Some(uid) = leftover(&situation.world.bootstrap) {
        draft.act(Action::DeleteBootstrap { uid });
    }
}

fn leftover(slot: &Slot<ProviderView>) -> Option<Uid> {
    slot.ours().filter(|object| !object.terminating).map(|object| object.uid.clone())
}

pub(super) fn node_ref(node: &NodeView) -> NodeRef {
    NodeRef { name: node.name.clone(), uid: node.uid.clone() }
}
