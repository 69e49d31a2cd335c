//! Removal of a machine: gracefully, with a drain before the Machine is deleted, or at once.

use super::demand::UnwantedBy;
use super::draft::{Draft, Stage};
use super::fault::FaultKind;
use super::situation::{Situation, floor, instant};
use crate::action::{Action, Event, EventCause, NodeRef};
use crate::drain;
use crate::text;
use crate::world::{FormerNode, MachineView, NodeFact, NodeView, PodView, ProviderView, Slot, Uid, Workload};
use five_spot_api::OnTimeout;
use five_spot_api::event::EventReason;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The maximum length of what blocks a drain in the event about its forced end, in bytes. The event has room for 1,024.
const MAX_OBSTACLE: usize = 400;

/// The maximum length of the report of a forced end, in bytes. The log and the audit trail show all of it.
const MAX_FORCED: usize = 4096;

/// The time between two reads of a Node that seems to have outlived its Machine, while its cluster does not respond.
const FORMER_NODE_READ_EVERY: SignedDuration = SignedDuration::from_secs(20);

/// Removes what exists.
pub(super) fn take_down(situation: &Situation<'_>, cause: UnwantedBy, draft: &mut Draft) {
    if situation.is_orphaning() {
        return;
    }
    let at_once = match cause {
        UnwantedBy::KillSwitch | UnwantedBy::Reclaim => true,
        UnwantedBy::Deletion => situation.handling().kill_switch,
        UnwantedBy::AwaitingResume
        | UnwantedBy::OverrideDown
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
        draft.stage = Stage::Idle;
        forget(situation, draft);
    }
}

/// Clears the recorded facts about a machine that is gone, except its last drain, its reclaims and its join times.
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

/// Asks for a read of a Node that seems to have outlived its Machine, and for another one if that fails.
pub(super) fn look_for_former_node(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.world.former_node == FormerNode::Cached && !situation.world.machine.is_unknown() {
        draft.node_needs_confirmation = true;
        draft.wake(situation, situation.now.saturating_add(FORMER_NODE_READ_EVERY).unwrap_or(Timestamp::MAX));
    }
}

/// Deletes the Machine at once. Neither 5-Spot nor Cluster API drains its node.
pub(super) fn eject(situation: &Situation<'_>, draft: &mut Draft) {
    match situation.world.machine.ours() {
        Some(machine) => {
            draft.is_urgent = true;
            delete_without_drain(machine, true, draft);
        }
        None => clear_leftovers(situation, draft),
    }
}

/// Drains the node and then deletes the Machine, within the deadline.
pub(super) fn shut_down(situation: &Situation<'_>, draft: &mut Draft) {
    let Some(machine) = situation.world.machine.ours() else {
        return clear_leftovers(situation, draft);
    };
    if machine.terminating {
        return skip_late_drain(situation, machine, draft);
    }
    let recorded =
        situation.past(draft.facts.shutdown_started_at.as_ref()).or_else(|| unrecorded_start(situation));
    let started_at = recorded.filter(|_| !draft.timers_stand_still).unwrap_or(situation.second);
    draft.facts.shutdown_started_at = Some(Time(started_at));
    let deadline = deadline(situation, started_at);
    draft.wake(situation, deadline);
    match &situation.world.node {
        NodeFact::NotYet | NodeFact::Gone | NodeFact::Mismatch { .. } => delete_machine(machine, draft),
        NodeFact::Unknown | NodeFact::Renamed(_) => {
            let obstacle = Obstacle { what: unknown_node(situation), pods: &[] };
            overdue(situation, machine, deadline, &obstacle, draft);
        }
        NodeFact::Found(node) => {
            let retry_at = situation.world.failures.last.as_ref().map(|failure| failure.retry_at);
            empty(
                situation,
                machine,
                node,
                drain::DrainPace { began: started_at, deadline, retry_at },
                draft,
            );
        }
    }
}

/// Returns the start of the shutdown of a deleted object whose status cannot be written: its deadline applies all the same.
fn unrecorded_start(situation: &Situation<'_>) -> Option<Timestamp> {
    let deleted = situation.world.object.deletion?.since;
    let since = floor(situation.world.unrecorded_since?).max(floor(deleted));
    (since <= situation.second).then_some(since)
}

/// Tells Cluster API to skip its drain of a Machine that is already being deleted, when `onTimeout: Force` requires it.
fn skip_late_drain(situation: &Situation<'_>, machine: &MachineView, draft: &mut Draft) {
    let recorded = draft.facts.shutdown_started_at.as_ref().map(instant);
    let started_at = recorded.or_else(|| unrecorded_start(situation));
    let Some(started_at) = started_at.filter(|_| situation.handling().on_timeout == OnTimeout::Force) else {
        return;
    };
    let deadline = deadline(situation, started_at);
    draft.wake(situation, deadline);
    // The pods are named when the time is over.
    draft.watch_pods = !machine.drain_excluded;
    if situation.now < deadline {
        return;
    }
    let left = situation.world.node.found().and_then(|node| {
        let pods = node.pods.as_ref()?;
        Some(drain::leaving(pods, node.readiness, started_at, situation.now))
    });
    let is_empty = situation.world.node == NodeFact::NotYet
        || left.as_ref().is_some_and(Vec::is_empty)
        || draft.facts.drain.as_ref().is_some_and(|drain| drain.evicted >= drain.total);
    let left = left.unwrap_or_default();
    if !machine.drain_excluded && !is_empty {
        let what = "Cluster API has not drained its node; 5-Spot makes it skip its drain".to_owned();
        let event = drain_forced(&Obstacle { what, pods: &left }, started_at, deadline, situation);
        draft.act(Action::Publish(event));
    }
    delete_without_drain(machine, true, draft);
}

/// Returns the drain deadline.
fn deadline(situation: &Situation<'_>, started_at: Timestamp) -> Timestamp {
    let handling = situation.handling();
    let timeout = handling.graceful_shutdown_timeout.min(handling.node_drain_timeout);
    let deadline = started_at.saturating_add(timeout).unwrap_or(Timestamp::MAX);
    cleanup_deadline(situation).map_or(deadline, |bound| bound.min(deadline))
}

/// Returns the deadline for the cleanup of a deleted object.
pub(super) fn cleanup_deadline(situation: &Situation<'_>) -> Option<Timestamp> {
    let since = situation.world.object.deletion?.since;
    Some(since.saturating_add(situation.world.policy.finalizer_cleanup_timeout).unwrap_or(Timestamp::MAX))
}

fn empty(
    situation: &Situation<'_>,
    machine: &MachineView,
    node: &NodeView,
    pace: drain::DrainPace,
    draft: &mut Draft,
) {
    draft.watch_pods = true;
    if !node.unschedulable {
        draft.act(Action::Cordon { node: node_ref(node) });
    }
    draft.resolve_drain_rules = node.needs_drain_rules();
    let Some(pods) = node.pods.as_ref().filter(|_| node.drain_rules_resolved) else {
        let obstacle =
            Obstacle { what: format!("the pods of node {} could not be read", node.name), pods: &[] };
        return overdue(situation, machine, pace.deadline, &obstacle, draft);
    };
    let progress = drain::evict(pods, node.readiness, pace, situation.now);
    draft.record_drain(situation, &progress);
    if let Some(look) = progress.next_look {
        draft.wake(situation, look);
    }
    if progress.done() {
        return delete_without_drain(machine, false, draft);
    }
    draft.actions.extend(progress.actions);
    let blockers: Vec<String> =
        progress.blocked.iter().map(|blocked| format!("{} ({})", blocked.pod, blocked.reason)).collect();
    let what = match blockers.as_slice() {
        [] => format!("{} still on node {}", text::counted(progress.remaining, "pod"), node.name),
        named => format!("drain of node {} is blocked by {}", node.name, named.join(", ")),
    };
    let pods = drain::leaving(pods, node.readiness, pace.began, situation.now);
    overdue(situation, machine, pace.deadline, &Obstacle { what, pods: &pods }, draft);
}

/// Returns the reason why a node whose state is unknown, or that has another name, cannot be drained.
fn unknown_node(situation: &Situation<'_>) -> String {
    if let NodeFact::Renamed(node) = &situation.world.node {
        return format!(
            "the machine is in the cluster as node {} now, which Cluster API does not drain; drain and delete that Node",
            node.name
        );
    }
    let cause = match &situation.world.workload {
        Workload::Unusable { message, .. } => message.as_str(),
        Workload::Pending(_) => "the workload cluster has not responded yet",
        Workload::Reachable(_) => {
            "the workload cluster has no Node for the Machine, but Cluster API reports the node as healthy or the cluster \
             cannot be identified; see the condition MachineReady"
        }
    };
    format!("the node cannot be drained: {cause}")
}

/// The obstacle to a drain.
struct Obstacle<'a> {
    /// The description.
    what: String,
    /// The pods that are still on the node.
    pods: &'a [&'a PodView],
}

/// After the deadline, deletes the Machine or reports the error, depending on `onTimeout`.
fn overdue(
    situation: &Situation<'_>,
    machine: &MachineView,
    deadline: Timestamp,
    obstacle: &Obstacle<'_>,
    draft: &mut Draft,
) {
    if situation.now < deadline {
        return;
    }
    match situation.handling().on_timeout {
        OnTimeout::Force => {
            draft.actions.clear();
            let started_at = draft.facts.shutdown_started_at.as_ref().map_or(situation.second, instant);
            draft.act(Action::Publish(drain_forced(obstacle, started_at, deadline, situation)));
            delete_without_drain(machine, true, draft);
        }
        OnTimeout::Error => {
            draft.fail(
                FaultKind::DrainTimedOut,
                format!("drain deadline {deadline} passed: {}; retrying", obstacle.what),
            );
        }
    }
}

/// Returns the event for a drain that `onTimeout: Force` ends, with the pods that are still on the node.
fn drain_forced(
    obstacle: &Obstacle<'_>,
    started_at: Timestamp,
    deadline: Timestamp,
    situation: &Situation<'_>,
) -> Event {
    let names: Vec<String> =
        obstacle.pods.iter().take(drain::MAX_BLOCKED).map(|pod| pod.id.to_string()).collect();
    let lost = match obstacle.pods.len() {
        0 => String::new(),
        count => format!(" with {} on its node: {}", text::counted(count, "pod"), names.join(", ")),
    };
    // The obstacle comes first: an event is cut, and the names of twenty pods may be all that fits.
    let note = format!(
        "Drain deadline {deadline} passed and drain.onTimeout is Force: {}; deleting Machine {}{lost}",
        text::bounded(&obstacle.what, MAX_OBSTACLE),
        situation.machine_name(),
    );
    Event {
        reason: EventReason::DrainForced,
        note: text::bounded(&note, MAX_FORCED).into_owned(),
        cause: EventCause::Instant(started_at),
    }
}

/// Tells Cluster API to skip its drain, because the node is drained or need not be, and deletes the Machine.
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

/// Deletes the provider objects that are left when the Machine is gone. Never earlier: Cluster API abandons its drain when the
/// infrastructure object is being deleted.
pub(super) fn clear_leftovers(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.world.machine.is_unknown() {
        return;
    }
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
