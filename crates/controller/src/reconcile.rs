//! One reconcile of one object: observe, decide, confirm if the decision demands it, carry out, note the result.

use crate::attempts::Attempts;
use crate::audit;
use crate::brake::RemovalBrake;
use crate::reconcile_report::{ReconcileReport, log_forced_drain};
use crate::urgency::Urgency;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::Caches;
use five_spot_cluster::execute::{self, Basis, ExecutionError};
use five_spot_cluster::view::{self, ConfirmScope, Observed};
use five_spot_core::world::{Failures, Uid};
use five_spot_core::{Decision, Evidence};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::Span;

/// The most attempts of one reconcile if an object changes while it is worked on.
const ATTEMPTS: u32 = 4;

/// The most repetitions of a write that the admission policy of the Lease has refused, and the wait before each. Right
/// after a takeover the API server may still see the previous leader; that takes milliseconds, and is no failure.
const POLICY_REFUSALS: u32 = 50;
const AFTER_POLICY_REFUSAL: Duration = Duration::from_millis(100);

/// The wait after a write that a guard of this instance has refused. A standby forgets its queue, and starts again when it
/// leads; this is for a guard that permits writes again before that.
const AFTER_GUARD: SignedDuration = SignedDuration::from_mins(1);

/// The most reconciles in a row that each leave something to do at once before there is a pause between them. The most
/// that an object needs without waiting for anything is five, when its window opens.
const ROUNDS: u32 = 10;

/// The longest of these pauses, and the longest in an emergency, which must not wait.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);
const LONGEST_URGENT_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// The time of the next reconcile of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Never: the object is gone.
    Gone,
    /// On the next change.
    OnChange,
    /// At once.
    Now,
    /// At this time, if nothing changes before.
    At(Timestamp),
}

/// Everything that reconciles share: the caches, and the history of attempts. Clones share both.
#[derive(Clone)]
pub(crate) struct Reconciler {
    pub(crate) caches: Arc<Caches>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) brake: Arc<RemovalBrake>,
}

impl Reconciler {
    pub(crate) fn new(caches: Arc<Caches>, brake: RemovalBrake) -> Self {
        Self { caches, attempts: Arc::default(), brake: Arc::new(brake) }
    }

    /// The urgency of an object, as far as the caches show it.
    pub(crate) fn urgency(&self, key: &ObjectKey) -> Urgency {
        view::queue_facts(&self.caches, key).into()
    }

    /// Begins a new term as the leader.
    pub(crate) fn begin_term(&self) {
        self.caches.begin_term();
        self.attempts.clear();
        self.brake.reset();
    }

    /// Begins to work on an object that another instance has worked on: the caches may be older than its last write.
    pub(crate) fn take_over(&self, key: &ObjectKey) {
        self.release(key);
        self.caches.confirm_first(key);
    }

    /// Forgets what was remembered of an object that another instance works on from now on.
    pub(crate) fn release(&self, key: &ObjectKey) {
        self.caches.forget(key);
        self.attempts.forget(key);
        self.brake.forget(key);
    }

    /// Reconciles one object, and returns when it has to be reconciled again.
    pub(crate) async fn reconcile(&self, key: &ObjectKey, report: &mut ReconcileReport) -> Next {
        tracing::info!("Starting reconciliation");
        let (mut attempt, mut policy_refusals) = (1, 0);
        let next = loop {
            match self.once(key, report).await {
                Ok(next) => break next,
                Err(failure) if failure.error.is_guarded() => break self.after(AFTER_GUARD),
                Err(failure)
                    if failure.error.is_refused_by_lease_policy() && policy_refusals < POLICY_REFUSALS =>
                {
                    tracing::debug!(error = %failure, "the API server does not know the new leader yet; retrying");
                    policy_refusals += 1;
                    sleep(AFTER_POLICY_REFUSAL).await;
                }
                Err(failure) if failure.error.is_stale() && attempt < ATTEMPTS => {
                    tracing::debug!(error = %failure, "the object has changed since it was read; deciding again");
                    attempt += 1;
                    if let Err(error) = view::reread(&self.caches, key, &self.failures(key)).await {
                        break self.fail(key, &error.into(), report).await;
                    }
                }
                Err(failure) => break self.fail(key, &failure, report).await,
            }
        };
        tracing::info!("Reconciliation finished");
        let rounds = self.attempts.count_round(key, self.uid(key), next == Next::Now);
        if rounds > ROUNDS {
            tracing::warn!(rounds, "every reconcile leaves something to do; pausing before the next one");
            let longest = if self.urgency(key).is_emergency() { LONGEST_URGENT_PAUSE } else { LONGEST_PAUSE };
            return self.after(SignedDuration::from_secs(i64::from(rounds - ROUNDS)).min(longest));
        }
        next
    }

    /// Observes, decides and carries out once. A reclaim and a deletion have time limits: the work ends when time alone
    /// makes another decision, even if a cluster has not answered by then.
    async fn once(&self, key: &ObjectKey, report: &mut ReconcileReport) -> Result<Next, ExecutionError> {
        let Some(mut observed) = view::observe(&self.caches, key, &self.failures(key)).await? else {
            return Ok(self.unobserved(key, report).await);
        };
        let decision = self.decide(key, &mut observed, report);
        let left = self.time_left(&decision);
        // Boxed: a future that is moved into another is on the stack twice.
        let work = Box::pin(self.confirm_and_carry_out(key, observed, decision, report));
        let Some(left) = left else { return work.await };
        timeout(left, work).await.unwrap_or(Ok(Next::Now))
    }

    /// The time that work on an object with a time limit has: a reclaim or a deletion.
    fn time_left(&self, decision: &Decision) -> Option<Duration> {
        let due = decision.wake_at.filter(|_| decision.has_time_limit)?;
        Some(Duration::try_from(due.duration_since(self.caches.now())).unwrap_or(Duration::ZERO))
    }

    async fn confirm_and_carry_out(
        &self,
        key: &ObjectKey,
        observed: Box<Observed>,
        decision: Decision,
        report: &mut ReconcileReport,
    ) -> Result<Next, ExecutionError> {
        let confirms = match decision.evidence {
            Evidence::BestEffort => false,
            Evidence::Confirmed => true,
            // The caches are enough, unless something has never been compared or an event may have been lost.
            Evidence::Cached => observed.unproven || self.needs_read(key),
        };
        if !confirms {
            return self.carry_out(key, Basis::Cached(&observed), &decision, report).await;
        }
        let mut scope = ConfirmScope::of(&decision, &observed.world);
        loop {
            let failures = self.failures(key);
            let Some(mut confirmed) = view::confirm(&self.caches, key, &observed, scope, &failures).await?
            else {
                return Ok(self.unobserved(key, report).await);
            };
            let decision = self.decide(key, confirmed.observed_mut(), report);
            if confirmed.suffices_for(&decision) {
                return self.carry_out(key, Basis::Confirmed(&confirmed), &decision, report).await;
            }
            scope = ConfirmScope::Everything;
        }
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        basis: Basis<'_>,
        decision: &Decision,
        report: &mut ReconcileReport,
    ) -> Result<Next, ExecutionError> {
        let observed = basis.observed();
        view::watch_pods(&self.caches, key, observed, decision.watch_pods);
        view::watch_agents(observed);
        let execution = execute::carry_out(&self.caches, key, basis, decision).await;
        report.skipped(&execution.skipped);
        let is_reported = execution.result.as_ref().map_or_else(|failure| failure.reported, |()| true);
        if is_reported {
            report.reported(observed, decision);
            report.held(self.brake.note(key, decision));
        }
        // The actions of an emergency or a deletion are carried out even if the status could not be written.
        let is_carried_out =
            decision.evidence == Evidence::BestEffort || observed.world.object.deletion.is_some();
        if is_reported || is_carried_out {
            log_forced_drain(observed, decision, |event| {
                self.attempts.note_forced(key, self.uid(key), &event.cause)
            });
        }
        if execution.released {
            audit::released(observed, decision);
        }
        execution.result?;
        let recovered = self.attempts.succeeded(key);
        let goes_on = recovered || !decision.actions.is_empty();
        // A fault counts once nothing is left to do about it: until then the next reconcile finds it again at once.
        let is_faulty = decision.fault.is_some();
        let retry = if goes_on && is_faulty {
            None
        } else {
            self.attempts.found_fault(key, self.uid(key), is_faulty)
        };
        report.completed(observed, decision, retry);
        if goes_on {
            return Ok(Next::Now);
        }
        self.count_again(key, observed, decision, report).await;
        let retry_at = retry.map(|retry| self.after(retry.backoff));
        let read_at = self.attempts.note_settled(
            key,
            self.uid(key),
            decision.settled,
            self.urgency(key),
            self.caches.now(),
        );
        Ok(soonest([decision.wake_at.map(Next::At), retry_at, read_at.map(Next::At)]))
    }

    /// Notes a failure, and reports it in the status.
    async fn fail(&self, key: &ObjectKey, failure: &ExecutionError, report: &mut ReconcileReport) -> Next {
        let now = self.caches.now();
        let retry = self.attempts.failed(key, self.uid(key), failure, self.urgency(key), now);
        let again = self.after(retry.backoff);
        let Some(mut observed) = view::glance(&self.caches, key, &self.failures(key)).await else {
            report.failed(failure, retry, false);
            return soonest([self.time_limit(key).await, Some(again), None]);
        };
        report.failed(failure, retry, observed.world.machine.ours().is_some());
        let decision = self.decide(key, &mut observed, report);
        let next = soonest([decision.wake_at.map(Next::At), Some(again), None]);
        let goes_on = decision.is_urgent || observed.world.object.deletion.is_some();
        if goes_on && failure.error.is_status_write() {
            // The next attempt comes soon, and writes it.
            return next;
        }
        let reporting = Box::pin(self.report_failure(key, &observed, &decision, report));
        match self.time_left(&decision) {
            None => reporting.await,
            Some(left) => {
                if timeout(left, reporting).await.is_err() {
                    tracing::debug!("the failure was not reported in the status in time");
                }
            }
        }
        next
    }

    async fn report_failure(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        decision: &Decision,
        report: &ReconcileReport,
    ) {
        match execute::report(&self.caches, key, observed, decision).await {
            Ok(()) => {
                report.reported(observed, decision);
                report.held(self.brake.note(key, decision));
                self.count_again(key, observed, decision, report).await;
            }
            Err(failure) => tracing::debug!(error = %failure, "failed to report the failure in the status"),
        }
    }

    /// Counts a fault that is still there in the event that announced it.
    async fn count_again(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        decision: &Decision,
        report: &ReconcileReport,
    ) {
        if let Some(repeat) = report.repeats(decision) {
            let repeat = (&repeat.event, repeat.times);
            execute::count_again(&self.caches, key, observed, decision, repeat).await;
        }
    }

    fn decide(&self, key: &ObjectKey, observed: &mut Observed, report: &mut ReconcileReport) -> Decision {
        let decision = self.brake.decide(&self.caches, key, observed);
        if let Some(phase) = decision.status.phase {
            Span::current().record("phase", phase.as_str());
        }
        report.decided(observed, &decision);
        decision
    }

    /// The next reconcile of an object that is gone, or of which something has not been read yet.
    async fn unobserved(&self, key: &ObjectKey, report: &ReconcileReport) -> Next {
        if self.caches.contains(key) {
            return self.time_limit(key).await.unwrap_or(Next::OnChange);
        }
        self.caches.forget(key);
        self.attempts.forget(key);
        report.held(self.brake.forget(key));
        report.gone();
        Next::Gone
    }

    /// The time at which an object has to be reconciled although something of it has not been read yet.
    async fn time_limit(&self, key: &ObjectKey) -> Option<Next> {
        view::time_limit(&self.caches, key, &self.failures(key)).await.map(Next::At)
    }

    /// True if the caches are not enough because an event may have been lost, or because nothing about the object has been
    /// confirmed since this instance became the leader.
    fn needs_read(&self, key: &ObjectKey) -> bool {
        !self.caches.is_confirmed_in_term(key) || self.attempts.is_read_due(key, self.caches.now())
    }

    fn failures(&self, key: &ObjectKey) -> Failures {
        self.attempts.failures(key, self.uid(key))
    }

    fn uid(&self, key: &ObjectKey) -> Option<Uid> {
        self.caches.uid(key)
    }

    fn after(&self, wait: SignedDuration) -> Next {
        Next::At(self.caches.now().saturating_add(wait).unwrap_or(Timestamp::MAX))
    }
}

fn soonest(times: [Option<Next>; 3]) -> Next {
    let at = |next: Option<Next>| match next {
        Some(Next::At(time)) => Some(time),
        Some(Next::Gone | Next::OnChange | Next::Now) | None => None,
    };
    times.into_iter().filter_map(at).min().map_or(Next::OnChange, Next::At)
}
