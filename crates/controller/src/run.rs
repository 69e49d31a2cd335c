//! The event loop: changes and time fill the queue, workers empty it.

use crate::brake::RemovalBrake;
use crate::health::Health;
use crate::leader::{Elector, LeaseGuard, Role};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::queue::Queue;
use crate::reconcile::{Next, Reconciler};
use crate::reconcile_report::ReconcileReport;
use crate::recovery::Recovery;
use crate::shards::{self, Assignment, View};
use crate::urgency::{Emergency, Urgency};
use crate::worker_slots::WorkerSlots;
use crate::{RunError, Settings, logging};
use five_spot_cluster::cache::{self, ChangeCause, ChangeReceiver, ClusterSettings};
use five_spot_cluster::transport::http::WriteGuard;
use five_spot_cluster::{Connection, ObjectKey};
use five_spot_core::Fingerprint;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The time between two comparisons of the wall clock with the monotonic clock of the timers.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// The difference between the two from which on all wake-ups are computed again.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// The time that reconciles in flight have to finish at the end. Cutting them off is safe: a crash may follow any
/// action.
const LAST_WORK: Duration = Duration::from_millis(1500);

/// The time in which reconciles in flight may still begin a write if there is a Lease, for which another instance may wait.
const LAST_WRITES: Duration = Duration::from_millis(300);

/// The time after that for writes that are on their way. Then the Lease is released, and the next instance must not work beside
/// them.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// The wait after a reconcile that panicked.
const AFTER_PANIC: Duration = Duration::from_mins(5);

/// The reason of a reconcile that the last one has asked for, in the words that `kube` uses in its own spans.
const REQUESTED: &str = "reconciler requested retry";

/// The reason of a reconcile after this instance has become the leader.
const BECAME_LEADER: &str = "became the leader";

/// The reason of a reconcile after this instance has become the owner of an object.
const BECAME_OWNER: &str = "became the owner";

/// Runs the controller until `stop` is cancelled.
pub async fn run(
    connection: Connection,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (changes, receiver) = cache::change_channel();
    let cluster_settings = ClusterSettings {
        policy: settings.policy,
        namespaces: settings.namespaces,
        management_nodes: settings.management_nodes,
        instance: settings.instance,
        controller_namespace: settings.controller_namespace,
    };
    let watches = stop.child_token();
    let (metrics, health) = (settings.metrics, settings.health);
    let (mut electing, end_of_term) = (JoinSet::new(), CancellationToken::new());
    let (mut sharing, end_of_sharing) = (JoinSet::new(), CancellationToken::new());
    // Leases are written without guards.
    let unguarded = connection.clone();
    let (connection, role) = match settings.election {
        None => (connection, None),
        Some(election) => {
            let guard = Arc::new(LeaseGuard::new(election.clock.clone()));
            metrics.follow_election(guard.clone());
            let guarded = connection.clone().with_write_guard(guard.clone());
            let (elector, role) = Elector::new(election, connection, guard, health.clone())?;
            electing.spawn(elector.run(end_of_term.clone()));
            (guarded, Some(role))
        }
    };
    let last_writes = (role.is_some() || settings.shards.is_some()).then(CancellationToken::new);
    let connection = match &last_writes {
        None => connection,
        Some(end) => connection.with_write_guard(Arc::new(EndOfWrites(end.clone()))),
    };
    let (connection, role, assignment) = match settings.shards {
        None => (connection, role, Assignment::default()),
        Some(shards) => {
            let (guarded, driver, assignment) =
                shards::start(shards, unguarded, connection, role, (&metrics, &health))?;
            sharing.spawn(driver.run(end_of_sharing.clone()));
            (guarded, None, assignment)
        }
    };
    metrics.attach(&connection);
    let caches = cache::start(connection, cluster_settings, changes, &watches)?;
    health.attach(&caches);
    metrics.attach_caches(&caches);
    assignment.count_for(&metrics, &caches);
    let brake = RemovalBrake::new(settings.brake, assignment.watched());
    let wall = caches.now();
    let event_loop = EventLoop {
        queue: Queue::new(settings.concurrency),
        concurrency: settings.concurrency,
        role,
        assignment,
        last_writes,
        reasons: BTreeMap::new(),
        workers: JoinSet::new(),
        running: BTreeMap::new(),
        recovery: Recovery::default(),
        pace: Pace::default(),
        slots: WorkerSlots::new(settings.concurrency),
        clock: (Instant::now(), wall),
        ids: Arc::new(AtomicU64::new(u64::try_from(wall.as_microsecond()).unwrap_or_default())),
        metrics,
        health: health.clone(),
        reconciler: Reconciler::new(caches, brake),
        changes: receiver,
    };
    event_loop.run(stop).await;
    // No worker is left: another instance may work from now on. The next leader needs the Lease of the instance as well.
    end_of_sharing.cancel();
    while sharing.join_next().await.is_some() {}
    end_of_term.cancel();
    while electing.join_next().await.is_some() {}
    watches.cancel();
    health.detach();
    Ok(())
}

/// The guard that permits no write once the program is about to release its Lease.
struct EndOfWrites(CancellationToken);

impl WriteGuard for EndOfWrites {
    fn check(&self) -> Result<(), &'static str> {
        if self.0.is_cancelled() { Err("this instance is being stopped") } else { Ok(()) }
    }
}

/// The event loop: it owns the queue, and starts the workers.
struct EventLoop {
    reconciler: Reconciler,
    concurrency: usize,
    /// The role of this instance; absent without an election: then it always works.
    role: Option<watch::Receiver<Role>>,
    /// The objects that this instance works on.
    assignment: Assignment,
    /// Ends all writes before a Lease is released; absent if there is none.
    last_writes: Option<CancellationToken>,
    queue: Queue<ObjectKey>,
    /// The first reason for which a key was queued since it was last taken. A key without one is taken because it is due.
    reasons: BTreeMap<ObjectKey, &'static str>,
    workers: JoinSet<(ObjectKey, Option<Next>)>,
    /// The keys in flight.
    running: BTreeMap<ObjectKey, Running>,
    recovery: Recovery,
    pace: Pace,
    changes: ChangeReceiver,
    slots: WorkerSlots,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// The same moment on both clocks, monotonic and wall.
    clock: (Instant, Timestamp),
    /// The last number of a reconcile.
    ids: Arc<AtomicU64>,
}

/// A key in flight: how urgent it was when its reconcile began, and how to end that.
struct Running {
    emergency: Emergency,
    /// Cuts the reconcile off.
    preempted: CancellationToken,
    /// Ends the work after the reconcile in flight.
    leaving: CancellationToken,
}

impl EventLoop {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let now = Instant::now();
            self.start_workers(now);
            let wake = self.next_wake(now);
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
                view = self.assignment.changed() => self.follow(view).await,
                Some(done) = self.workers.join_next() => self.finish(done),
                Some((key, cause)) = self.changes.recv() => self.handle(key, cause),
                recovered = self.recovery.recovered() => {
                    for key in recovered {
                        self.enqueue(key, "its cluster has recovered");
                    }
                }
                () = sleep_until(wake) => {
                    self.cut_off_leavers();
                    self.check_clock();
                    self.check_brake();
                    self.recovery.probe(&self.reconciler.caches, Instant::now());
                }
            }
        }
        if !self.finishes_in_time().await {
            tracing::warn!(
                left = self.workers.len(),
                "stopped with reconciles in flight; the next start continues them"
            );
            self.workers.shutdown().await;
        }
    }

    /// Lets the reconciles in flight finish. Returns false if some do not.
    async fn finishes_in_time(&mut self) -> bool {
        let (workers, last_writes) = (&mut self.workers, &self.last_writes);
        let rest = async { while workers.join_next().await.is_some() {} };
        tokio::pin!(rest);
        let Some(last_writes) = last_writes else { return timeout(LAST_WORK, rest).await.is_ok() };
        if timeout(LAST_WRITES, &mut rest).await.is_ok() {
            return true;
        }
        last_writes.cancel();
        timeout(LAST_ANSWERS, rest).await.is_ok()
    }

    fn is_standby(&self) -> bool {
        self.role.as_ref().is_some_and(|role| *role.borrow() == Role::Standby) || self.assignment.is_standby()
    }

    /// Works on the objects of another view from now on.
    async fn follow(&mut self, view: View) {
        let before = self.assignment.replace(view.clone());
        if view.continues(&before) {
            self.reassign(&before);
        } else {
            self.end_term().await;
            if view.works() {
                if view.may_have_stale_caches() {
                    self.reconciler.begin_term();
                }
                let keys = self.reconciler.caches.keys();
                for key in keys {
                    self.enqueue(key, BECAME_OWNER);
                }
            }
        }
        self.assignment.report_stopped();
    }

    /// Takes over the objects that this instance owns from now on, and ends the work on those that it no longer owns.
    fn reassign(&mut self, before: &View) {
        let (gained, lost) = self.assignment.changes(before, self.reconciler.caches.keys());
        for key in lost {
            self.queue.remove(&key);
            self.reasons.remove(&key);
            self.reconciler.release(&key);
            self.metrics.gone(&key);
            if let Some(running) = self.running.get(&key) {
                running.leaving.cancel();
                self.assignment.stops_soon(key);
            }
        }
        for key in gained {
            self.reconciler.take_over(&key);
            self.enqueue(key, BECAME_OWNER);
        }
    }

    /// Cuts off reconciles of objects that this instance has to leave to another one, if they take too long.
    fn cut_off_leavers(&mut self) {
        for key in self.assignment.overdue(Instant::now()) {
            if let Some(running) = self.running.get(&key) {
                running.preempted.cancel();
            }
        }
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
        self.assignment.all_stopped();
        self.reasons.clear();
        self.recovery = Recovery::default();
        self.queue = Queue::new(self.concurrency);
        self.slots = WorkerSlots::new(self.concurrency);
        self.metrics.forget_objects();
    }

    /// Starts workers for all keys that are due at this moment, as far as there are slots.
    fn start_workers(&mut self, now: Instant) {
        if self.is_standby() {
            return;
        }
        while self.slots.is_free_for_emergency()
            && let Some(key) =
                self.queue.next_emergency_of(now, |namespace| self.slots.has_room_for_emergency(namespace))
        {
            self.slots.begin_emergency(key.clone());
            self.start_worker(key);
        }
        while self.slots.is_free(now)
            && let Some(key) = self.queue.next_of(now, |namespace| self.slots.has_room(namespace))
        {
            self.slots.begin(key.clone(), now);
            self.start_worker(key);
        }
    }

    fn start_worker(&mut self, key: ObjectKey) {
        let urgency = self.urgency(&key);
        self.pace.count(&key, urgency.is_emergency(), Instant::now());
        let (preempted, leaving) = (CancellationToken::new(), CancellationToken::new());
        let emergency = urgency.emergency;
        let running = Running { emergency, preempted: preempted.clone(), leaving: leaving.clone() };
        self.running.insert(key.clone(), running);
        let worker = Worker {
            leaving,
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

    /// The time of the next wake-up: when the next key is due and there is a worker for it, or to compare the clocks. Workers
    /// for those that were due have been started: if there are slots left, the others wait for one of their own namespace.
    fn next_wake(&self, now: Instant) -> Instant {
        let check = self.clock.0 + CLOCK_CHECK;
        let due = match self.slots.free_at(now) {
            Some(free) if free <= now => self.queue.next_due_after(now),
            free => free.zip(self.queue.next_due()).map(|(free, due)| free.max(due)),
        };
        let emergency =
            self.queue.next_emergency_due_after(now).filter(|_| self.slots.is_free_for_emergency());
        let leavers = self.assignment.cut_off_at();
        [due, emergency, self.recovery.due(), leavers].into_iter().flatten().fold(check, Instant::min)
    }

    /// Handles a change that the caches report.
    fn handle(&mut self, key: ObjectKey, cause: ChangeCause) {
        // After a failure a change of the status alone is our own write, whose answer was lost. A reconcile would write
        // it again, without end and without a pause.
        if cause == ChangeCause::Status && self.reconciler.attempts.is_failing(&key) {
            return;
        }
        let now = Instant::now();
        let due =
            if cause.is_paced() { self.pace.due(&key, self.urgency(&key).is_emergency(), now) } else { now };
        self.enqueue_at(key, cause.as_str(), due);
    }

    fn enqueue(&mut self, key: ObjectKey, reason: &'static str) {
        self.enqueue_at(key, reason, Instant::now());
    }

    fn enqueue_at(&mut self, key: ObjectKey, reason: &'static str, due: Instant) {
        if self.is_standby() || !self.assignment.owns(&key, &self.reconciler.caches) {
            return;
        }
        let urgency = self.urgency(&key);
        self.reasons.entry(key.clone()).or_insert(reason);
        if urgency.is_emergency() {
            self.preempt(&key, urgency);
        }
        self.queue.add(key, urgency, due);
    }

    /// Cuts off a reconcile that began before its object became an emergency: it may wait for a cluster that does not
    /// answer.
    fn preempt(&self, key: &ObjectKey, urgency: Urgency) {
        if let Some(running) = self.running.get(key)
            && running.emergency < urgency.emergency
        {
            running.preempted.cancel();
        }
    }

    fn finish(&mut self, done: Result<(ObjectKey, Option<Next>), tokio::task::JoinError>) {
        // A worker that is cancelled ends with the runtime, and one that panics catches that itself.
        let Ok((key, next)) = done else { return };
        let now = Instant::now();
        self.slots.done(&key);
        self.running.remove(&key);
        if self.assignment.has_left(&key) {
            self.queue.done(&key);
            self.queue.remove(&key);
            self.recovery.note(&key, false, now);
            self.reconciler.release(&key);
            self.metrics.gone(&key);
            self.assignment.report_stopped();
            return;
        }
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
        self.pace.forget_recovered(Instant::now());
        logging::report_suppressed_lines();
        let now = (Instant::now(), self.reconciler.caches.now());
        let passed = SignedDuration::try_from(now.0 - instant).unwrap_or(SignedDuration::MAX);
        let drift = now.1.duration_since(wall) - passed;
        if drift.abs() > CLOCK_TOLERANCE {
            tracing::warn!(drift_secs = drift.as_secs(), "the system clock was set; reconciling all objects");
            self.reconciler.caches.keys().into_iter().for_each(|key| self.enqueue(key, "the clock was set"));
        }
        self.clock = now;
    }

    /// Reconciles the objects whose removal is held, if the clock is trusted again.
    fn check_brake(&mut self) {
        for key in self.reconciler.brake.check_clock(&self.reconciler.caches) {
            self.enqueue(key, "the clock is trusted again");
        }
    }

    fn urgency(&self, key: &ObjectKey) -> Urgency {
        self.reconciler.urgency(key)
    }
}

/// Waits until the role of this instance changes; forever without an election.
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
    /// Cancelled when another instance takes the object over.
    leaving: CancellationToken,
}

impl Worker {
    /// Reconciles until the object has to wait: of many windows that open at once, the first object is finished first.
    /// `None` if a reconcile panicked.
    async fn work(self) -> Option<Next> {
        let mut reason = self.reason;
        loop {
            let next = self.reconcile_once(reason).await;
            if next != Some(Next::Now) || self.leaving.is_cancelled() {
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
