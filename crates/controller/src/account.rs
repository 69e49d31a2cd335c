//! What one reconcile tells of itself: to the log, to the audit trail and to the metrics.

use crate::audit;
use crate::metrics::{ErrorKind, Metrics, Repeat, Verdict};
use five_spot_api::Phase;
use five_spot_api::event::EventReason;
use five_spot_cluster::{ObjectKey, Observed, Retry, Setback};
use five_spot_core::action::Action;
use five_spot_core::{Decision, FaultKind};
use std::sync::Arc;
use tokio::time::Instant;

/// The target of these lines: they are a reconcile's, wherever they are written.
const TARGET: &str = "five_spot_controller::reconcile";

/// What is said of every attempt that is made again later.
const RETRYING: &str = "Reconciliation error — requeuing with exponential back-off";

/// The account of one reconcile.
pub(crate) struct Account {
    metrics: Arc<Metrics>,
    key: ObjectKey,
    began: Instant,
    phase: Option<Phase>,
    /// How it went; nothing if there was nothing to reconcile.
    verdict: Option<Verdict>,
}

impl Account {
    /// A reconcile of this object begins.
    pub(crate) fn open(metrics: Arc<Metrics>, key: ObjectKey) -> Self {
        Self { metrics, key, began: Instant::now(), phase: None, verdict: None }
    }

    /// Something was decided. It may be decided again before anything comes of it.
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

    /// What was decided is on record.
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
            if let Action::Publish(event) = action
                && event.reason == EventReason::DrainForced
            {
                tracing::warn!(target: TARGET, reason = event.reason.as_str(), "{}", event.note);
                audit::drain_forced(observed, decision, &event.note);
            }
        }
        self.metrics.reported(&self.key, observed, decision);
    }

    /// All of it was carried out. `retry`: something needs someone, and will be looked at again after that. Without it
    /// the next reconcile follows at once, and speaks of a fault that is still there.
    pub(crate) fn settled(&mut self, observed: &Observed, decision: &Decision, retry: Option<Retry>) {
        if decision.actions.contains(&Action::RemoveFinalizer) {
            audit::let_go(observed, decision);
        }
        // Failures that are over are still in the decision that proved it.
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
            say_retry(&fault.message, retry);
        }
    }

    /// A call failed. `machine_exists`: what was to be made is there already.
    pub(crate) fn failed(&mut self, setback: &Setback, retry: Retry, machine_exists: bool) {
        self.verdict = Some(Verdict::Failure(ErrorKind::of_setback(setback)));
        if setback.error.is_apply() && !machine_exists {
            tracing::error!(target: TARGET, error = %setback, "Machine creation failed");
        }
        say_retry(&setback.to_string(), retry);
        self.metrics.set_back(&self.key);
    }

    /// What the event of a fault has to say that has been found again; nothing while it is new.
    pub(crate) fn repeats(&self, decision: &Decision) -> Option<Repeat> {
        let failed = !matches!(self.verdict, Some(Verdict::Success) | None);
        (failed && decision.status.phase == Some(Phase::Error)).then(|| self.metrics.repeated(&self.key))?
    }

    /// The object is gone.
    pub(crate) fn gone(&self) {
        self.metrics.gone(&self.key);
    }

    /// The reconcile has ended, or has broken off.
    pub(crate) fn close(self, broke_off: bool) {
        let broken = broke_off.then_some(Verdict::Error(ErrorKind::InternalError));
        if let Some(verdict) = broken.or(self.verdict) {
            self.metrics.reconciled(&self.key, self.phase, verdict, self.began.elapsed());
        }
    }
}

fn say_retry(error: &str, retry: Retry) {
    let (retry_count, backoff_secs) = (retry.retry_count, retry.backoff.as_secs());
    tracing::error!(target: TARGET, error, retry_count, backoff_secs, "{RETRYING}");
}

/// What is wrong with the schedule of a spec.
fn schedule_errors(observed: &Observed) -> Option<String> {
    let errors = &observed.spec.as_ref().err()?.errors;
    let of_schedule: Vec<String> = errors
        .iter()
        .filter(|error| error.field.starts_with("spec.schedule"))
        .map(ToString::to_string)
        .collect();
    (!of_schedule.is_empty()).then(|| of_schedule.join("; "))
}
