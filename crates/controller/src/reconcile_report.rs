//! The report of one reconcile: to the log, to the audit trail and to the metrics.

use crate::attempts::Retry;
use crate::audit;
use crate::metrics::{ErrorKind, Metrics, Repeat, Verdict};
use five_spot_api::Phase;
use five_spot_api::event::EventReason;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::execute::{ExecutionError, SkipReason};
use five_spot_cluster::view::Observed;
use five_spot_core::action::{Action, Event};
use five_spot_core::{Decision, FaultKind};
use std::sync::Arc;
use tokio::time::Instant;

/// The target of these log lines: the reconcile, wherever they are written.
const TARGET: &str = "five_spot_controller::reconcile";

/// The message of every attempt that is repeated later.
const RETRYING: &str = "Reconciliation error — requeuing with exponential back-off";

/// The report of one reconcile.
pub(crate) struct ReconcileReport {
    metrics: Arc<Metrics>,
    key: ObjectKey,
    began: Instant,
    phase: Option<Phase>,
    /// The result; absent if there was nothing to reconcile.
    verdict: Option<Verdict>,
}

impl ReconcileReport {
    /// The report of a reconcile that begins now.
    pub(crate) fn open(metrics: Arc<Metrics>, key: ObjectKey) -> Self {
        Self { metrics, key, began: Instant::now(), phase: None, verdict: None }
    }

    /// Notes a decision. Another one may follow before it is carried out.
    pub(crate) fn decided(&mut self, observed: &Observed, decision: &Decision) {
        self.phase = decision.status.phase;
        self.metrics.evaluated(schedule_errors(observed).is_none());
        let status = &decision.status;
        tracing::trace!(
            target: TARGET,
            in_schedule = status.in_schedule,
            next_change = status.next_change,
            wake_at = decision.wake_at.map(tracing::field::display),
            "Schedule evaluated"
        );
    }

    /// Notes that the events were published and the status was written.
    pub(crate) fn reported(&self, observed: &Observed, decision: &Decision) {
        let (from, to) = (observed.world.status.phase, decision.status.phase);
        if let Some(to) = to
            && from != Some(to)
        {
            let from = from.map_or("None", Phase::as_str);
            tracing::info!(target: TARGET, from_phase = from, to_phase = to.as_str(), "Phase transition");
            audit::transition(observed, decision, from, to);
        }
        for event in decision.events.iter().filter(|event| event.reason == EventReason::RapidReReclaim) {
            tracing::warn!(target: TARGET, reason = event.reason.as_str(), "{}", event.note);
        }
        for action in &decision.actions {
            tracing::debug!(target: TARGET, %action, "Decided");
        }
        self.metrics.reported(&self.key, observed, decision);
    }

    /// Notes how many removals the brake holds.
    pub(crate) fn held(&self, removals: usize) {
        self.metrics.removals_held(removals);
    }

    /// Counts the actions that were skipped.
    pub(crate) fn skipped(&self, reasons: &[SkipReason]) {
        for reason in reasons {
            self.metrics.skipped(*reason);
        }
    }

    /// Notes that a decision was carried out. `retry` is the wait after a fault. Without it the next reconcile follows at
    /// once, and reports a fault that is still there.
    pub(crate) fn completed(&mut self, observed: &Observed, decision: &Decision, retry: Option<Retry>) {
        // The decision was made before the failures were over.
        let fault = decision.fault.as_ref().filter(|fault| match fault.kind {
            FaultKind::Refused | FaultKind::Repeated => false,
            FaultKind::InvalidSpec
            | FaultKind::NameTaken
            | FaultKind::References(_)
            | FaultKind::Workload(_)
            | FaultKind::DrainTimedOut
            | FaultKind::JoinFailed => retry.is_some(),
            // The object may be gone by then.
            FaultKind::CleanupTimedOut => true,
        });
        let Some(fault) = fault else {
            self.verdict = Some(Verdict::Success);
            return;
        };
        let schedule = schedule_errors(observed);
        self.verdict = Some(Verdict::Failure(ErrorKind::of_fault(fault, schedule.is_some())));
        if let Some(error) = schedule {
            tracing::error!(target: TARGET, error, "Failed to evaluate schedule");
        }
        if let Some(retry) = retry {
            log_retry(&fault.message, retry);
        }
    }

    /// Notes a failed call. `machine_exists` is true if there is a Machine already.
    pub(crate) fn failed(&mut self, failure: &ExecutionError, retry: Retry, machine_exists: bool) {
        self.verdict = Some(Verdict::Failure(ErrorKind::of_operation(&failure.error.operation)));
        if failure.error.is_cluster_api_apply() && !machine_exists {
            tracing::error!(target: TARGET, error = %failure, "Machine creation failed");
        }
        log_retry(&failure.to_string(), retry);
        self.metrics.call_failed(&self.key);
    }

    /// The event to update for a fault that was found again; `None` while it is new.
    pub(crate) fn repeats(&self, decision: &Decision) -> Option<Repeat> {
        let failed = !matches!(self.verdict, Some(Verdict::Success) | None);
        (failed && decision.status.phase == Some(Phase::Error)).then(|| self.metrics.repeated(&self.key))?
    }

    /// Removes the metrics of an object that is gone.
    pub(crate) fn gone(&self) {
        self.metrics.gone(&self.key);
    }

    /// Ends the report.
    pub(crate) fn close(self, panicked: bool) {
        let broken = panicked.then_some(Verdict::Error(ErrorKind::InternalError));
        if let Some(verdict) = broken.or(self.verdict) {
            self.metrics.reconciled(&self.key, self.phase, verdict, self.began.elapsed());
        }
    }
}

/// Logs a drain that was ended by force: its pods are lost, whether the status could be written or not. It is logged once,
/// although what ends it may have to be tried again.
pub(crate) fn log_forced_drain(observed: &Observed, decision: &Decision, is_new: impl Fn(&Event) -> bool) {
    for action in &decision.actions {
        if let Action::Publish(event) = action
            && event.reason == EventReason::DrainForced
            && is_new(event)
        {
            tracing::warn!(target: TARGET, reason = event.reason.as_str(), "{}", event.note);
            audit::drain_forced(observed, decision, &event.note);
        }
    }
}

fn log_retry(error: &str, retry: Retry) {
    let (retry_count, backoff_secs) = (retry.retry_count, retry.backoff.as_secs());
    tracing::error!(target: TARGET, error, retry_count, backoff_secs, "{RETRYING}");
}

/// The errors in the schedule of a spec.
fn schedule_errors(observed: &Observed) -> Option<String> {
    let errors = &observed.spec.as_ref().err()?.errors;
    let of_schedule: Vec<String> = errors
        .iter()
        .filter(|error| error.field.starts_with("spec.schedule"))
        .map(ToString::to_string)
        .collect();
    (!of_schedule.is_empty()).then(|| of_schedule.join("; "))
}
