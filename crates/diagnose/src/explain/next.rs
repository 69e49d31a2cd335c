//! The things that happen next by themselves.

use super::{Next, Subject};
use five_spot_api::condition::Reason;
use five_spot_api::{OnTimeout, Phase};
use five_spot_core::EMERGENCY_DRAIN_TIMEOUT_SECS;
use five_spot_core::schedule::PlanState;
use five_spot_core::world::NodeFact;
use jiff::{SignedDuration, Timestamp};

/// The delay of the next Machine after one whose node did not join.
const JOIN_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Returns everything that is known to happen, in order.
pub(super) fn all(subject: &Subject<'_>) -> Vec<Next> {
    let mut next = Vec::new();
    boundaries(subject, &mut next);
    cordon(subject, &mut next);
    shutdown(subject, &mut next);
    joining(subject, &mut next);
    resuming(subject, &mut next);
    next.retain(|step| step.at > subject.now);
    next.sort();
    next.dedup();
    // A boundary of a schedule that is switched off changes nothing but `inSchedule`.
    let boundary = subject.valid().and_then(|spec| spec.plan().next_boundary(subject.now));
    if next.is_empty()
        && let Some(at) = subject.decision.wake_at.filter(|at| Some(*at) != boundary)
    {
        next.push(Next { at, what: "the controller reconciles the object again".to_owned() });
    }
    next
}

fn step(at: Timestamp, what: impl Into<String>) -> Next {
    Next { at, what: what.into() }
}

fn after(start: Timestamp, duration: SignedDuration) -> Timestamp {
    start.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// The opening and the closing of the schedule, lead time and override counted.
fn boundaries(subject: &Subject<'_>, next: &mut Vec<Next>) {
    let status = &subject.decision.status;
    let held = if is_held(subject) { ", once it is no longer held back" } else { "" };
    if let Some(at) = &status.next_activation {
        next.push(step(at.0, format!("a machine is wanted: the Machine is created{held}")));
    }
    if let Some(at) = &status.next_cleanup {
        let has_machine = subject.world.machine.ours().is_some();
        let is_wanted = super::is_wanted(subject.decision.demand);
        let ending = if ends_override(subject, at.0) {
            "the override ends"
        } else if is_wanted {
            "the window closes"
        } else {
            "that window closes"
        };
        // One that is not wanted yet has its Machine by then.
        let what = if has_machine || !is_wanted {
            "the node is drained and the Machine is deleted"
        } else {
            "no machine is wanted any more"
        };
        let held = if has_machine { held } else { "" };
        next.push(step(at.0, format!("{ending}: {what}{held}")));
    }
}

/// True if an override is in effect up to an instant. A window may follow it, and then it is the window that ends the demand.
fn ends_override(subject: &Subject<'_>, at: Timestamp) -> bool {
    let before = at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at);
    subject.valid().is_some_and(|spec| spec.plan().at(before) == PlanState::OverrideUp)
}

/// True if something has to be repaired before the schedule has an effect.
fn is_held(subject: &Subject<'_>) -> bool {
    (subject.decision.fault.is_some() && !subject.is_limited_to_the_reader())
        || subject.decision.status.conditions.iter().any(|c| c.type_ == "Paused" && c.status == "True")
}

/// The cordon before the window closes.
fn cordon(subject: &Subject<'_>, next: &mut Vec<Next>) {
    let (Some(spec), Some(end)) = (subject.valid(), &subject.decision.status.next_cleanup) else { return };
    if subject.phase() == Phase::Active && !spec.cordon_before.is_zero() {
        let at = end.0.checked_sub(spec.cordon_before).unwrap_or(end.0);
        next.push(step(
            at,
            "the node is cordoned, so that running jobs can finish (spec.drain.cordonBefore)",
        ));
    }
}

/// The deadlines of a shutdown, a reclaim and a deletion.
fn shutdown(subject: &Subject<'_>, next: &mut Vec<Next>) {
    let (world, handling) = (subject.world, subject.handling());
    let started = subject.decision.status.shutdown_started_at.as_ref().map(|time| time.0);
    let has_machine = world.machine.ours().is_some_and(|machine| !machine.terminating);
    if let (Some(started), Phase::ShuttingDown, true) = (started, subject.phase(), has_machine) {
        let timeout = handling.graceful_shutdown_timeout.min(handling.node_drain_timeout);
        let then = match handling.on_timeout {
            OnTimeout::Error => {
                "if pods are still on the node, the phase becomes Error and the drain continues"
            }
            OnTimeout::Force => "pods that are still on the node are lost, and the Machine is deleted",
        };
        next.push(step(after(started, timeout), format!("the drain deadline: {then}")));
    }
    if let (Some(started), Phase::EmergencyRemove, true) = (started, subject.phase(), has_machine) {
        let limit = SignedDuration::from_secs(EMERGENCY_DRAIN_TIMEOUT_SECS);
        next.push(step(after(started, limit), "the Machine is deleted, whatever pods are still on its node"));
    }
    if let Some(deletion) = world.object.deletion.filter(|_| world.object.has_finalizer) {
        let policy = world.policy;
        let then = if policy.force_finalizer_on_timeout {
            "the finalizer is removed even if objects are left over"
        } else {
            "the cleanup counts as timed out; the finalizer stays"
        };
        let at = after(deletion.since, policy.finalizer_cleanup_timeout);
        next.push(step(at, format!("the time limit of the cleanup: {then}")));
    }
}

/// The end of the time to join, and the next Machine after a failed one.
fn joining(subject: &Subject<'_>, next: &mut Vec<Next>) {
    let (Some(spec), Some(join)) = (subject.valid(), &subject.decision.status.join) else { return };
    let waits = !matches!(subject.world.node, NodeFact::Unknown);
    if let (Some(since), true, true) =
        (&join.waiting_since, waits, subject.world.machine.ours().is_some_and(|machine| !machine.terminating))
    {
        let at = after(since.0, spec.join_timeout);
        next.push(step(
            at,
            "joinTimeout: without a Ready node by then, the Machine is deleted and created again",
        ));
    }
    if let Some(failed) = &join.failed_at
        && super::is_wanted(subject.decision.demand)
    {
        next.push(step(after(failed.0, JOIN_RETRY), "another Machine is created"));
    }
}

/// The time at which a machine may be lent again.
fn resuming(subject: &Subject<'_>, next: &mut Vec<Next>) {
    if let (Some(at), Reason::AwaitingResume) = (subject.world.object.resume, subject.decision.demand) {
        next.push(step(
            at,
            "the time in the annotation 5spot.finos.org/resume: the machine may be lent again",
        ));
    }
}
