//! The emergency reclaim: the owner needs the machine back. Each step is idempotent, and its result is visible in the observed
//! state, so that after a crash between two steps the reclaim continues.

use super::draft::{Draft, Stage};
use super::reclaim_stages;
use super::removal;
use super::situation::{Situation, floor, instant};
use crate::action::{Action, Event, EventCause};
use crate::drain;
use crate::text;
use crate::world::{MachineView, NodeFact, NodeView, Workload};
use five_spot_api::ReclaimRecord;
use five_spot_api::event::EventReason;
use five_spot_api::reclaim::MAX_REASON_BYTES;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The time limit for pods to be gone in an emergency, in seconds.
pub const EMERGENCY_DRAIN_TIMEOUT_SECS: i64 = 60;
/// The number of reclaims within [`RAPID_RE_RECLAIM_WINDOW_SECS`] that is reported as a loop.
pub const RAPID_RE_RECLAIM_THRESHOLD: usize = 3;
/// The period in which reclaims are counted, in seconds.
pub const RAPID_RE_RECLAIM_WINDOW_SECS: i64 = 600;

/// The maximum number of reclaims in the status.
const MAX_RECLAIMS: usize = 10;

/// A reclaim that is in progress, or completed by this decision.
pub(super) struct Reclaim {
    /// All recorded reclaims, newest first. The first is the current one.
    records: Vec<ReclaimRecord>,
    started_at: Timestamp,
    is_new: bool,
    /// The time in the request on the Node, if the reclaim is new and the request has one. It may be in the future.
    requested_at: Option<Timestamp>,
}

impl Reclaim {
    pub(super) fn unfinished(&self) -> bool {
        self.record().finished_at.is_none()
    }

    /// Returns the time in a new request, which may be in the future.
    pub(super) const fn requested_at(&self) -> Option<Timestamp> {
        self.requested_at
    }

    /// Every reclaim there was, this one among them.
    pub(super) fn records(&self) -> &[ReclaimRecord] {
        &self.records
    }

    fn record(&self) -> &ReclaimRecord {
        &self.records[0]
    }
}

/// Returns the current reclaim: a recorded one that is not finished, or a new request on the Node.
pub(super) fn current(situation: &Situation<'_>) -> Option<Reclaim> {
    let prior = situation.prior();
    let mut records = prior.reclaims.clone();
    if let Some(place) = records.iter().position(|record| record.finished_at.is_none()) {
        let record = records.remove(place);
        records.insert(0, record);
        let started_at =
            situation.past(prior.shutdown_started_at.as_ref()).unwrap_or_else(|| unrecorded_start(situation));
        let mut reclaim = Reclaim { records, started_at, is_new: false, requested_at: None };
        if is_done(situation) {
            for record in &mut reclaim.records {
                record.finished_at.get_or_insert(Time(situation.second));
            }
        }
        return Some(reclaim);
    }
    let record = new_record(situation)?;
    records.insert(0, record);
    records.truncate(MAX_RECLAIMS);
    let requested_at = requested_at(situation);
    Some(Reclaim { records, started_at: new_start(situation, requested_at), is_new: true, requested_at })
}

/// Returns the time in the request on the Node, in whole seconds.
fn requested_at(situation: &Situation<'_>) -> Option<Timestamp> {
    situation.world.node.found()?.reclaim.as_ref()?.requested_at.map(floor)
}

/// Returns the start of a new reclaim. While the status cannot be written, a reclaim stays new, and its time limit counts from
/// the request: the status may have been refused for longer than that, and the pods get their time all the same. A request in
/// the future comes from a wrong clock or is forged, and must not postpone the end.
fn new_start(situation: &Situation<'_>, requested_at: Option<Timestamp>) -> Timestamp {
    let start = unrecorded_start(situation);
    requested_at.filter(|time| *time <= situation.second).map_or(start, |time| time.max(start))
}

/// Returns the start of a reclaim that is not recorded: now, or the time at which recording it first failed. Its time limit
/// applies all the same.
fn unrecorded_start(situation: &Situation<'_>) -> Timestamp {
    situation
        .world
        .unrecorded_since
        .map(floor)
        .filter(|since| *since <= situation.second)
        .unwrap_or(situation.second)
}

/// Returns the record of a new request. A request with the Node and time of a recorded one was already carried out; the caches
/// do not show yet that its annotations were removed.
fn new_record(situation: &Situation<'_>) -> Option<ReclaimRecord> {
    let node = situation.world.node.found()?;
    let request = node.reclaim.as_ref()?;
    // A time in the future comes from a wrong clock or is forged.
    let requested_at = request.requested_at.map(|time| floor(time).min(situation.second));
    let already_done = situation.prior().reclaims.iter().any(|record| {
        record.node_uid == node.uid.as_str() && Some(instant(&record.requested_at)) == requested_at
    });
    if already_done {
        return None;
    }
    Some(ReclaimRecord {
        requested_at: Time(requested_at.unwrap_or(situation.second)),
        reason: text::bounded(&request.reason, MAX_REASON_BYTES).into_owned(),
        node: node.name.as_str().to_owned(),
        node_uid: node.uid.as_str().to_owned(),
        finished_at: None,
        stages: Some(reclaim_stages::begin(situation, request.requested_at)),
    })
}

/// Returns true if everything is gone, the schedule is disabled, and the Node carries no request.
fn is_done(situation: &Situation<'_>) -> bool {
    let asks = situation.world.node.found().is_some_and(|node| node.reclaim.is_some());
    !situation.anything_left() && !asks && (situation.being_deleted() || !would_be_lent_again(situation))
}

fn would_be_lent_again(situation: &Situation<'_>) -> bool {
    let handling = situation.handling();
    handling.enabled || handling.override_up
}

/// Plans the next actions of the reclaim.
pub(super) fn carry_out(situation: &Situation<'_>, reclaim: &Reclaim, draft: &mut Draft) {
    if situation.is_orphaning() {
        return;
    }
    draft.facts.reclaims.clone_from(&reclaim.records);
    draft.facts.shutdown_started_at = Some(Time(reclaim.started_at));
    draft.stage = Stage::Ejecting;
    if !reclaim.unfinished() {
        draft.stage = Stage::Idle;
        return removal::forget(situation, draft);
    }
    draft.is_urgent = true;
    if reclaim.is_new {
        draft.facts.drain = None;
    }
    match situation.world.machine.ours() {
        None => removal::clear_leftovers(situation, draft),
        Some(machine) => {
            if !eject(situation, reclaim, machine, draft) {
                return;
            }
        }
    }
    disable_schedule(situation, reclaim, draft);
}

/// Drains the node and deletes the Machine. Returns false while the pods still have time to leave. The kill switch gives them
/// none.
fn eject(situation: &Situation<'_>, reclaim: &Reclaim, machine: &MachineView, draft: &mut Draft) -> bool {
    let emptied = situation.world.node.found().is_none_or(|node| {
        let emptied = empty(situation, reclaim, node, draft);
        if emptied {
            reclaim_stages::note_pods_gone(situation, draft);
        }
        emptied
    });
    let timeout = SignedDuration::from_secs(EMERGENCY_DRAIN_TIMEOUT_SECS);
    let deadline = reclaim.started_at.saturating_add(timeout).unwrap_or(Timestamp::MAX);
    draft.wake(situation, deadline);
    let is_over = situation.now >= deadline || situation.handling().kill_switch;
    let may_wait = !is_over && !machine.terminating;
    if may_wait && (!emptied || is_pending(situation)) {
        return false;
    }
    if is_over || !emptied {
        // Neither pods nor an unresponsive workload cluster delay the deletion of the Machine.
        draft.actions.clear();
    }
    removal::delete_without_drain(machine, true, draft);
    true
}

/// Returns true if the workload cluster has not responded yet. The pods keep their time until it does.
fn is_pending(situation: &Situation<'_>) -> bool {
    situation.world.node == NodeFact::Unknown && matches!(situation.world.workload, Workload::Pending(_))
}

/// Cordons the node and deletes its pods. Returns true when none are left.
fn empty(situation: &Situation<'_>, reclaim: &Reclaim, node: &NodeView, draft: &mut Draft) -> bool {
    draft.watch_pods = true;
    if !node.unschedulable {
        draft.act(Action::Cordon { node: removal::node_ref(node) });
    }
    let Some(pods) = &node.pods else { return false };
    let progress = drain::delete(pods, reclaim.started_at, situation.handling().pod_grace_period);
    draft.actions.extend(progress.actions.iter().cloned());
    draft.record_drain(situation, &progress);
    progress.done()
}

/// Disables the schedule, so that the machine is not created again, and then removes the request from the Node. A controller
/// that is restarted in between starts again from the request.
fn disable_schedule(situation: &Situation<'_>, reclaim: &Reclaim, draft: &mut Draft) {
    let asking = situation.world.node.found().filter(|node| node.reclaim.is_some());
    if !situation.being_deleted() {
        let on = would_be_lent_again(situation);
        if on {
            draft.act(Action::DisableSchedule);
        }
        if on || asking.is_some() {
            draft.act(Action::Publish(disabled_schedule(reclaim.record())));
        }
    }
    if let Some(node) = asking {
        draft.act(Action::ClearReclaimRequest { node: removal::node_ref(node) });
    }
}

fn disabled_schedule(record: &ReclaimRecord) -> Event {
    Event {
        reason: EventReason::EmergencyReclaimDisabledSchedule,
        note: format!(
            "Disabled the schedule because node {} was reclaimed; set spec.schedule.enabled to true to lend the machine again",
            record.node
        ),
        cause: EventCause::Instant(instant(&record.requested_at)),
    }
}

/// Returns the events at the start and at the end of a reclaim.
pub(super) fn announce(situation: &Situation<'_>, records: &[ReclaimRecord]) -> Vec<Event> {
    let before = &situation.prior().reclaims;
    let Some(newest) = records.first() else {
        return Vec::new();
    };
    let requested_at = instant(&newest.requested_at);
    let mut events = Vec::new();
    let known = before.iter().any(|record| same_request(record, newest));
    if !known {
        events.push(Event {
            reason: EventReason::EmergencyReclaim,
            note: format!("Node {} was reclaimed by its owner: {}", newest.node, newest.reason),
            cause: EventCause::Instant(requested_at),
        });
        let recent = recent_reclaims(records, noticed_at(newest));
        if recent >= RAPID_RE_RECLAIM_THRESHOLD {
            events.push(Event {
                reason: EventReason::RapidReReclaim,
                note: format!(
                    "{recent} reclaims of node {} within {RAPID_RE_RECLAIM_WINDOW_SECS} s; stop the matching process before you enable the schedule again",
                    newest.node
                ),
                cause: EventCause::Instant(requested_at),
            });
        }
    }
    let was_open = before.iter().any(|record| same_request(record, newest) && record.finished_at.is_none());
    if was_open && newest.finished_at.is_some() && !situation.being_deleted() {
        // It is usually published already. The same cause makes it the same event.
        events.push(disabled_schedule(newest));
    }
    events
}

pub(super) fn same_request(one: &ReclaimRecord, other: &ReclaimRecord) -> bool {
    one.node_uid == other.node_uid && one.requested_at == other.requested_at
}

/// Returns the time at which a reclaim was first seen. The clock of the node, by which it was requested, may be behind.
pub(super) fn noticed_at(record: &ReclaimRecord) -> Timestamp {
    let requested_at = instant(&record.requested_at);
    let seen_at = record.stages.as_ref().map(|stages| floor(stages.annotated_at.0));
    seen_at.map_or(requested_at, |seen_at| seen_at.max(requested_at))
}

/// Returns the number of reclaims around `time`. One that is later was recorded before the clock was set back.
fn recent_reclaims(records: &[ReclaimRecord], time: Timestamp) -> usize {
    let window = SignedDuration::from_secs(RAPID_RE_RECLAIM_WINDOW_SECS);
    let is_recent = |record: &&ReclaimRecord| time.duration_since(noticed_at(record)).abs() < window;
    records.iter().filter(is_recent).count()
}
