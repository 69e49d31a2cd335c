//! The event loop: changes and time fill the queue, workers empty it.

use crate::health::Health;
use crate::leader::{Elector, LeaseGuard, Role};
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::reconcile::{Next, Reconciler};
use crate::reconcile_report::ReconcileReport;
use crate::recovery::Recovery;
use crate::urgency::{Emergency, Urgency};
use crate::worker_slots::WorkerSlots;
use crate::{RunError, Settings, logging};
use five_spot_cluster::cache::{self, ChangeCause, ClusterSettings};
use five_spot_cluster::{Connection, ObjectKey};
use five_spot_core::Fingerprint;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The time between two comparisons of the wall clock with the monotonic clock of the timers.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// The difference between the two from which on all wake-ups are computed anew.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// The time that reconciles in flight have to finish at the end. Cutting them off is safe: a crash may follow any
/// action.
const LAST_WORK: Duration = Duration::from_millis(1500);

/// The same with an election: another instance waits for the Lease, which is released afterwards.
const LAST_WORK_OF_LEADER: Duration = Duration::from_millis(700);

/// The wait after a reconcile that panicked.
const AFTER_PANIC: Duration = Duration::from_mins(5);

/// The reason of a reconcile that the last one has asked for, in the words that `kube` uses in its own spans.
const REQUESTED: &str = "reconciler requested retry";

/// The reason of a reconcile after this instance has become the leader.
const BECAME_LEADER: &str = "became the leader";

/// Runs the controller until `stop` is cancelled.
pub async fn run(
    connection: Connection,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (changes, receiver) = mpsc::unbounded_channel();
    let cluster_settings = ClusterSettings {
        policy: settings.policy,
        namespaces: settings.namespaces,
        management_nodes: settings.management_nodes,
        instance: settings.instance,
    };
    let watches = stop.child_token();
    let (metrics, health) = (settings.metrics, settings.health);
    let (mut electing, end_of_term) = (JoinSet::new(), CancellationToken::new());
    let (connection, role) = match settings.election {
        None => (connection, None),
        Some(election) => {
            let guard = Arc::new(LeaseGuard::new(election.clock.clone()));
            metrics.follow_election(guard.clone());
            // The Lease itself is written without the guard.
            let guarded = connection.clone().with_write_guard(guard.clone());
            let (elector, role) = Elector::new(election, connection, guard, health.clone())?;
            electing.spawn(elector.run(end_of_term.clone()));
            (guarded, Some(role))
        }
    };
    metrics.attach(&connection);
    let caches = cache::start(connection, cluster_settings, changes, &watches)?;
    health.attach(&caches);
    let wall = caches.now();
    let event_loop = EventLoop {
        queue: Queue::new(settings.concurrency),
        concurrency: settings.concurrency,
        role,
        reasons: BTreeMap::new(),
        workers: JoinSet::new(),
        running: BTreeMap::new(),
        recovery: Recovery::default(),
        slots: WorkerSlots::new(settings.concurrency),
        clock: (Instant::now(), wall),
        ids: Arc::new(AtomicU64::new(u64::try_from(wall.as_microsecond()).unwrap_or_default())),
        metrics,
        health: health.clone(),
        reconciler: Reconciler::new(caches),
        changes: receiver,
    };
    event_loop.run(stop).await;
    // No worker is left: another instance may lead from now on.
    end_of_term.cancel();
    while electing.join_next().await.is_some() {}
    watches.cancel();
    health.detach();
    Ok(())
}

/// The event loop: it owns the queue, and starts the workers.
struct EventLoop {
    reconciler: Reconciler,
    concurrency: usize,
    /// The role of this instance; absent without an election: then it always works.
    role: Option<watch::Receiver<Role>>,
    queue: Queue<ObjectKey>,
    /// The first reason for which a key was queued since it was last taken. A key without one is taken because it is due.
    reasons: BTreeMap<ObjectKey, &'static str>,
    workers: JoinSet<(ObjectKey, Option<Next>)>,
    /// The keys in flight, how urgent each was when its reconcile began, and how to cut that off.
    running: BTreeMap<ObjectKey, (Emergency, CancellationToken)>,
    recovery: Recovery,
    changes: mpsc::UnboundedReceiver<(ObjectKey, ChangeCause)>,
    slots: WorkerSlots,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// The same moment on both clocks, monotonic and wall.
    clock: (Instant, Timestamp),
    /// The last number of a reconcile.
    ids: Arc<AtomicU64>,
}

impl EventLoop {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            self.start_workers();
            let wake = self.next_wake();
            self.health.turned();
            self.metrics.queued(self.queue.depth(Instant::now()), self.queue.next_due());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                role = changed(&mut self.role) => match role {
                    Role::Leader => {
                        // A role that was lost and won again at once shows as one change.
                        self.end_term().await;
                        self.begin_term();
                    }
                    Role::Standby => self.end_term().await,
                },
                Some(done) = self.workers.join_next() => self.finish(done),
                Some((key, cause)) = self.changes.recv() => self.handle(key, cause),
                recovered = self.recovery.recovered() => {
                    for key in recovered {
                        self.enqueue(key, "its cluster has recovered");
                    }
                }
                () = sleep_until(wake) => {
                    self.check_clock();
                    self.recovery.probe(&self.reconciler.caches, Instant::now());
                }
            }
        }
        let last_work = if self.role.is_some() { LAST_WORK_OF_LEADER } else { LAST_WORK };
        let rest = async { while self.workers.join_next().await.is_some() {} };
        if timeout(last_work, rest).await.is_err() {
            tracing::warn!(
                left = self.workers.len(),
                "stopped with reconciles in flight; the next start continues them"
            );
            self.workers.shutdown().await;
        }
    }

    fn is_standby(&self) -> bool {
        self.role.as_ref().is_some_and(|role| *role.borrow() == Role::Standby)
    }

    /// Begins to work, with a reconcile of every object.
    fn begin_term(&mut self) {
        self.reconciler.begin_term();
        self.reconciler.caches.keys().into_iter().for_each(|key| self.enqueue(key, BECAME_LEADER));
    }

    /// Ends all work. Another instance may take the Lease soon, and reconciles everything itself.
    async fn end_term(&mut self) {
        self.workers.shutdown().await;
        self.running.clear();
        self.reasons.clear();
        self.recovery = Recovery::default();
        self.queue = Queue::new(self.concurrency);
        self.slots = WorkerSlots::new(self.concurrency);
        self.metrics.forget_objects();
    }

    fn start_workers(&mut self) {
        if self.is_standby() {
            return;
        }
        let now = Instant::now();
        while self.slots.is_free_for_emergency()
            && let Some(key) = self.queue.next_emergency(now)
        {
            self.slots.begin_emergency(key.clone());
            self.start_worker(key);
        }
        while self.slots.is_free(now)
            && let Some(key) = self.queue.next(now)
        {
            self.slots.begin(key.clone(), now);
            self.start_worker(key);
        }
    }

    fn start_worker(&mut self, key: ObjectKey) {
        let preempted = CancellationToken::new();
        let emergency = self.urgency(&key).emergency;
        self.running.insert(key.clone(), (emergency, preempted.clone()));
        let worker = Worker {
            reconciler: self.reconciler.clone(),
            metrics: self.metrics.clone(),
            ids: self.ids.clone(),
            reason: self.reasons.remove(&key).unwrap_or(REQUESTED),
            key,
        };
        let working = self.health.begin(worker.key.to_string());
        let key = worker.key.clone();
        self.workers.spawn(working.through(async move {
            let next = preempted.run_until_cancelled(Box::pin(worker.work())).await;
            // A reconcile may be cut off anywhere: a crash may follow any action.
            (key, next.unwrap_or(Some(Next::Now)))
        }));
    }

    /// The time of the next wake-up: when the next key is due and there is a worker for it, or to compare the clocks.
    fn next_wake(&self) -> Instant {
        let check = self.clock.0 + CLOCK_CHECK;
        let free = self.slots.free_at(Instant::now());
        let due = free.zip(self.queue.next_due()).map(|(free, due)| free.max(due));
        let emergency = self.queue.next_emergency_due().filter(|_| self.slots.is_free_for_emergency());
        [due, emergency, self.recovery.due()].into_iter().flatten().fold(check, Instant::min)
    }

    /// Handles a change that the caches report.
    fn handle(&mut self, key: ObjectKey, cause: ChangeCause) {
        // After a failure a change of the status alone is our own write, whose answer was lost. A reconcile would write
        // it again, without end and without a pause.
        if cause == ChangeCause::Status && self.reconciler.attempts.is_failing(&key) {
            return;
        }
        self.enqueue(key, cause.as_str());
    }

    fn enqueue(&mut self, key: ObjectKey, reason: &'static str) {
        if self.is_standby() {
            return;
        }
        let urgency = self.urgency(&key);
        self.reasons.entry(key.clone()).or_insert(reason);
        if urgency.is_emergency() {
            self.preempt(&key, urgency);
        }
        self.queue.add(key, urgency, Instant::now());
    }

    /// Cuts off a reconcile that began before its object became an emergency: it may wait for a cluster that does not
    /// answer.
    fn preempt(&self, key: &ObjectKey, urgency: Urgency) {
        if let Some((began_as, preempted)) = self.running.get(key)
            && *began_as < urgency.emergency
        {
            preempted.cancel();
        }
    }

    fn finish(&mut self, done: Result<(ObjectKey, Option<Next>), tokio::task::JoinError>) {
        // A worker that is cancelled ends with the runtime, and one that panics catches that itself.
        let Ok((key, next)) = done else { return };
        let now = Instant::now();
        self.slots.done(&key);
        self.running.remove(&key);
        let urgency = self.urgency(&key);
        self.recovery.note(&key, self.reconciler.attempts.waits_for_cluster(&key), now);
        match next {
            Some(Next::Gone) => {
                self.queue.remove(&key);
                self.reasons.remove(&key);
            }
            Some(Next::OnChange) => {}
            Some(Next::Now) => self.queue.add(key.clone(), urgency, now),
            Some(Next::At(time)) => self.queue.wake(key.clone(), urgency, self.instant(time)),
            None => {
                tracing::error!(resource = &*key.name, namespace = &*key.namespace, "reconcile panicked");
                self.queue.wake(key.clone(), urgency, now + AFTER_PANIC);
            }
        }
        self.queue.done(&key);
    }

    /// The instant of the monotonic clock for a time of the wall clock.
    fn instant(&self, time: Timestamp) -> Instant {
        let wait = time.duration_since(self.reconciler.caches.now());
        let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
        Instant::now().checked_add(wait).unwrap_or_else(|| Instant::now() + CLOCK_CHECK)
    }

    /// Compares the clocks. A wall clock that was set makes every wake-up wrong: then every object is reconciled.
    fn check_clock(&mut self) {
        let (instant, wall) = self.clock;
        if Instant::now() < instant + CLOCK_CHECK {
            return;
        }
        let now = (Instant::now(), self.reconciler.caches.now());
        let passed = SignedDuration::try_from(now.0 - instant).unwrap_or(SignedDuration::MAX);
        let drift = now.1.duration_since(wall) - passed;
        if drift.abs() > CLOCK_TOLERANCE {
            tracing::warn!(drift_secs = drift.as_secs(), "the system clock was set; reconciling all objects");
            self.reconciler.caches.keys().into_iter().for_each(|key| self.enqueue(key, "the clock was set"));
        }
        self.clock = now;
    }

    fn urgency(&self, key: &ObjectKey) -> Urgency {
        self.reconciler.urgency(key)
    }
}

/// Waits until the role of this instance changes; for ever without an election.
async fn changed(role: &mut Option<watch::Receiver<Role>>) -> Role {
    if let Some(role) = role
        && role.changed().await.is_ok()
    {
        return *role.borrow_and_update();
    }
    std::future::pending().await
}

/// A worker: it reconciles one object for as long as there is something to do at once.
struct Worker {
    reconciler: Reconciler,
    metrics: Arc<Metrics>,
    ids: Arc<AtomicU64>,
    key: ObjectKey,
    reason: &'static str,
}

impl Worker {
    /// Reconciles until the object has to wait: of many windows that open at once, the first object is finished first.
    /// `None` if a reconcile panicked.
    async fn work(self) -> Option<Next> {
        let mut reason = self.reason;
        loop {
            let next = self.reconcile_once(reason).await;
            if next != Some(Next::Now) {
                return next;
            }
            reason = REQUESTED;
        }
    }

    async fn reconcile_once(&self, reason: &'static str) -> Option<Next> {
        let key = &self.key;
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number:x}", &Fingerprint::of(&key.to_string()).to_string()[..12]);
        let span = logging::reconcile_span(&id, &key.namespace, &key.name, reason);
        let mut report = ReconcileReport::open(self.metrics.clone(), key.clone());
        let work = AssertUnwindSafe(Box::pin(self.reconciler.reconcile(key, &mut report))).catch_unwind();
        let next = work.instrument(span.clone()).await;
        span.in_scope(|| report.close(next.is_err()));
        next.ok()
    }
}
