//! The results of drains. A drain is identified by its start, so that each result is counted once however often it is decided.

use super::families::Families;
use super::objects::{Known, deletes_machine};
use five_spot_api::{DrainStatus, Phase, ScheduledMachineStatus};
use five_spot_cluster::view::Observed;
use five_spot_core::{Decision, EMERGENCY_DRAIN_TIMEOUT_SECS, FaultKind};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The drains of an object.
#[derive(Debug, Default)]
pub(super) struct Drains {
    /// The drain whose end has been counted, by its beginning, and how it ended.
    counted: Option<(Timestamp, &'static str)>,
    /// The emergency in progress.
    emergency: Option<Box<EmergencyDrain>>,
    /// A drain is in progress.
    draining: bool,
}

#[derive(Debug)]
struct EmergencyDrain {
    /// By the clock of the status.
    began: Timestamp,
    /// By the clock of this process, which is finer.
    seen: Instant,
    has_failed: bool,
    measured: bool,
}

/// Counts what a decision that is on record says of a drain.
pub(super) fn count(
    families: &Families,
    known: &mut Known,
    observed: &Observed,
    decision: &Decision,
    now: Option<Timestamp>,
) {
    measure_emergency(families, known, decision, now);
    let Some(drain) = &decision.status.drain else {
        known.drains.draining = false;
        return;
    };
    let before = observed.world.status.drain.as_ref();
    let result = if is_complete(drain) {
        // A drain that was complete before this process was there to see it has been counted by another.
        (before.is_none_or(|before| before.started_at != drain.started_at || !is_complete(before)))
            .then_some("success")
    } else if gave_up(decision) {
        Some("failure")
    } else {
        None
    };
    known.drains.draining = !is_complete(drain) && decision.status.shutdown_started_at.is_some();
    if let Some(result) = result
        && known.drains.counted != Some((drain.started_at.0, result))
    {
        known.drains.counted = Some((drain.started_at.0, result));
        families.node_drains.with_label_values(&[result]).inc();
    }
}

/// A call failed in the middle of a drain.
pub(super) fn call_failed(families: &Families, known: &mut Known) {
    if known.drains.draining {
        families.node_drains.with_label_values(&["error"]).inc();
    }
    if let Some(emergency) = &mut known.drains.emergency {
        emergency.has_failed = true;
    }
}

fn is_complete(drain: &DrainStatus) -> bool {
    drain.evicted >= drain.total
}

/// True if pods were left at the deadline: the drain has failed, or the Machine is deleted regardless.
fn gave_up(decision: &Decision) -> bool {
    let timed_out = decision.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::DrainTimedOut);
    timed_out || deletes_machine(decision)
}

fn measure_emergency(families: &Families, known: &mut Known, decision: &Decision, now: Option<Timestamp>) {
    let status = &decision.status;
    let began = status.shutdown_started_at.as_ref().map(|time| time.0);
    let (Some(Phase::EmergencyRemove), Some(began), Some(now)) = (status.phase, began, now) else {
        known.drains.emergency = None;
        return;
    };
    let emergency = &mut known.drains.emergency;
    if emergency.as_ref().is_none_or(|emergency| emergency.began != began) {
        *emergency = Some(Box::new(EmergencyDrain {
            began,
            seen: Instant::now(),
            has_failed: false,
            measured: false,
        }));
    }
    let Some(emergency) = emergency.as_mut().filter(|emergency| !emergency.measured) else { return };
    if !deletes_machine(decision) {
        return;
    }
    emergency.measured = true;
    let outcome = outcome(status, emergency, now);
    let took = emergency.seen.elapsed().as_secs_f64();
    families.emergency_drain_duration.with_label_values(&[outcome]).observe(took);
}

/// An emergency that ran into its bound timed out, even if its node was empty by then; one that could not empty it
/// because calls failed is an error.
fn outcome(status: &ScheduledMachineStatus, emergency: &EmergencyDrain, now: Timestamp) -> &'static str {
    let timeout = SignedDuration::from_secs(EMERGENCY_DRAIN_TIMEOUT_SECS);
    let in_time = now.duration_since(emergency.began) < timeout;
    let is_empty = status.drain.as_ref().is_some_and(is_complete);
    if in_time && (is_empty || !emergency.has_failed) {
        "success"
    } else if emergency.has_failed && !is_empty {
        "error"
    } else {
        "timeout"
    }
}
