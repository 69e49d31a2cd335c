//! The loop: news and time fill the queue, workers empty it.

use crate::account::Account;
use crate::hands::Hands;
use crate::health::Health;
use crate::leader::{Elector, LeaseGuard, Role};
use crate::metrics::Metrics;
use crate::queue::{Queue, Rank};
use crate::reconcile::{Next, reconcile};
use crate::recovery::Recovery;
use crate::{RunError, Settings, logging};
use five_spot_cluster::{Cause, Connection, Emergency, Fleet, FleetSettings, ObjectKey};
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

/// How often the wall clock is compared with the one that timers run by.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// How far the two may drift apart in that time before all wake-ups are computed anew.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// How long work in hand may still take when everything ends. What is cut off then is safe: every action may be
/// followed by a crash.
const LAST_WORK: Duration = Duration::from_millis(1500);

/// The same with an election: another instance waits for the Lease, which is released after the work.
const LAST_WORK_OF_LEADER: Duration = Duration::from_millis(700);

/// How long after a panic an object is left alone.
const AFTER_PANIC: Duration = Duration::from_mins(5);

/// Why an object is reconciled that nobody has told anything of: the last reconcile has asked for it. In the words that
/// `kube` uses in its own spans.
const REQUESTED: &str = "reconciler requested retry";

/// Why an object is reconciled when this instance has become the leader.
const BECAME_LEADER: &str = "became the leader";

/// Runs until it is told to stop.
pub async fn run(
    connection: Connection,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (changes, news) = mpsc::unbounded_channel();
    let fleet_settings = FleetSettings {
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
            let guarded = connection.clone().with_fence(guard.clone());
            let (elector, role) = Elector::new(election, connection, guard, health.clone())?;
            electing.spawn(elector.run(end_of_term.clone()));
            (guarded, Some(role))
        }
    };
    metrics.attach(&connection);
    let fleet = Fleet::watch(connection, fleet_settings, changes, &watches)?;
    health.attach(&fleet);
    let wall = fleet.now();
    let looped = Loop {
        queue: Queue::new(settings.concurrency),
        concurrency: settings.concurrency,
        role,
        reasons: BTreeMap::new(),
        workers: JoinSet::new(),
        running: BTreeMap::new(),
        recovery: Recovery::default(),
        hands: Hands::new(settings.concurrency),
        clock: (Instant::now(), wall),
        ids: Arc::new(AtomicU64::new(u64::try_from(wall.as_microsecond()).unwrap_or_default())),
        metrics,
        health: health.clone(),
        fleet,
        news,
    };
    looped.turn(stop).await;
    // No worker is left: another instance may lead from now on.
    end_of_term.cancel();
    while electing.join_next().await.is_some() {}
    watches.cancel();
    health.detach();
    Ok(())
}

struct Loop {
    fleet: Fleet,
    concurrency: usize,
    /// Whether this instance works; absent without an election: then it always does.
    role: Option<watch::Receiver<Role>>,
    queue: Queue<ObjectKey>,
    /// Why a key was first asked for since it was last taken. One that is not here is taken because its time has come.
    reasons: BTreeMap<ObjectKey, &'static str>,
    workers: JoinSet<(ObjectKey, Option<Next>)>,
    /// What is being worked on, how urgent it was when that began, and how to cut it off.
    running: BTreeMap<ObjectKey, (Emergency, CancellationToken)>,
    recovery: Recovery,
    news: mpsc::UnboundedReceiver<(ObjectKey, Cause)>,
    hands: Hands,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// The same moment on both clocks.
    clock: (Instant, Timestamp),
    /// The last number of a reconcile.
    ids: Arc<AtomicU64>,
}

impl Loop {
    async fn turn(mut self, stop: CancellationToken) {
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
                Some((key, cause)) = self.news.recv() => self.hear(key, cause.as_str()),
                recovered = self.recovery.recovered() => {
                    for key in recovered {
                        self.hear(key, "its cluster answers again");
                    }
                }
                () = sleep_until(wake) => {
                    self.check_clock();
                    self.recovery.ask(&self.fleet, Instant::now());
                }
            }
        }
        let last_work = if self.role.is_some() { LAST_WORK_OF_LEADER } else { LAST_WORK };
        let rest = async { while self.workers.join_next().await.is_some() {} };
        if timeout(last_work, rest).await.is_err() {
            tracing::warn!(
                left = self.workers.len(),
                "stopped with work in hand, which the next start will finish"
            );
            self.workers.shutdown().await;
        }
    }

    fn is_standby(&self) -> bool {
        self.role.as_ref().is_some_and(|role| *role.borrow() == Role::Standby)
    }

    /// Works from now on, beginning with everything there is.
    fn begin_term(&mut self) {
        self.fleet.begin_term();
        self.fleet.keys().into_iter().for_each(|key| self.hear(key, BECAME_LEADER));
    }

    /// Ends all work. Another instance may take the Lease soon, and looks at everything itself.
    async fn end_term(&mut self) {
        self.workers.shutdown().await;
        self.running.clear();
        self.reasons.clear();
        self.recovery = Recovery::default();
        self.queue = Queue::new(self.concurrency);
        self.hands = Hands::new(self.concurrency);
        self.metrics.forget_objects();
    }

    fn start_workers(&mut self) {
        if self.is_standby() {
            return;
        }
        let now = Instant::now();
        while self.hands.is_free_for_emergency()
            && let Some(key) = self.queue.next_emergency(now)
        {
            self.hands.begin_emergency(key.clone());
            self.start_worker(key);
        }
        while self.hands.is_free(now)
            && let Some(key) = self.queue.next(now)
        {
            self.hands.begin(key.clone(), now);
            self.start_worker(key);
        }
    }

    fn start_worker(&mut self, key: ObjectKey) {
        let preempted = CancellationToken::new();
        let emergency = self.fleet.urgency(&key).emergency;
        self.running.insert(key.clone(), (emergency, preempted.clone()));
        let worker = Worker {
            fleet: self.fleet.clone(),
            metrics: self.metrics.clone(),
            ids: self.ids.clone(),
            reason: self.reasons.remove(&key).unwrap_or(REQUESTED),
            key,
        };
        let working = self.health.begin(worker.key.to_string());
        let key = worker.key.clone();
        self.workers.spawn(working.through(async move {
            let next = preempted.run_until_cancelled(Box::pin(worker.work())).await;
            // Whatever it was doing may be cut off: every action may be followed by a crash.
            (key, next.unwrap_or(Some(Next::Now)))
        }));
    }

    /// When to look up at the latest: at the next that is due, if there is a hand for it, and to compare the clocks.
    fn next_wake(&self) -> Instant {
        let check = self.clock.0 + CLOCK_CHECK;
        let free = self.hands.free_at(Instant::now());
        let due = free.zip(self.queue.next_due()).map(|(free, due)| free.max(due));
        let emergency = self.queue.next_emergency_due().filter(|_| self.hands.is_free_for_emergency());
        [due, emergency, self.recovery.due()].into_iter().flatten().fold(check, Instant::min)
    }

    fn hear(&mut self, key: ObjectKey, reason: &'static str) {
        if self.is_standby() {
            return;
        }
        let rank = self.rank(&key);
        self.reasons.entry(key.clone()).or_insert(reason);
        if rank.emergency {
            self.preempt(&key);
        }
        self.queue.add(key, rank, Instant::now());
    }

    /// Cuts off a reconcile that began before its object became an emergency: it may wait for a cluster that does not
    /// answer.
    fn preempt(&self, key: &ObjectKey) {
        if let Some((began_as, preempted)) = self.running.get(key)
            && *began_as < self.fleet.urgency(key).emergency
        {
            preempted.cancel();
        }
    }

    fn finish(&mut self, done: Result<(ObjectKey, Option<Next>), tokio::task::JoinError>) {
        // A worker that is cancelled ends with the runtime, and one that panics catches that itself.
        let Ok((key, next)) = done else { return };
        let now = Instant::now();
        self.hands.done(&key);
        self.running.remove(&key);
        let rank = self.rank(&key);
        self.recovery.note(&key, self.fleet.waits_for_cluster(&key), now);
        match next {
            Some(Next::Gone) => {
                self.queue.remove(&key);
                self.reasons.remove(&key);
            }
            Some(Next::OnNews) => {}
            Some(Next::Now) => self.queue.add(key.clone(), rank, now),
            Some(Next::At(time)) => self.queue.wake(key.clone(), rank, self.instant(time)),
            None => {
                tracing::error!(resource = &*key.name, namespace = &*key.namespace, "reconcile panicked");
                self.queue.wake(key.clone(), rank, now + AFTER_PANIC);
            }
        }
        self.queue.done(&key);
    }

    /// The moment on the clock that timers run by.
    fn instant(&self, time: Timestamp) -> Instant {
        let wait = time.duration_since(self.fleet.now());
        let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
        Instant::now().checked_add(wait).unwrap_or_else(|| Instant::now() + CLOCK_CHECK)
    }

    /// A wall clock that was set makes every wake-up wrong: then everything is looked at.
    fn check_clock(&mut self) {
        let (instant, wall) = self.clock;
        if Instant::now() < instant + CLOCK_CHECK {
            return;
        }
        let now = (Instant::now(), self.fleet.now());
        let passed = SignedDuration::try_from(now.0 - instant).unwrap_or(SignedDuration::MAX);
        let drift = now.1.duration_since(wall) - passed;
        if drift.abs() > CLOCK_TOLERANCE {
            tracing::warn!(drift_secs = drift.as_secs(), "the clock was set, looking at everything again");
            self.fleet.keys().into_iter().for_each(|key| self.hear(key, "the clock was set"));
        }
        self.clock = now;
    }

    fn rank(&self, key: &ObjectKey) -> Rank {
        let urgency = self.fleet.urgency(key);
        Rank { emergency: urgency.emergency != Emergency::None, priority: urgency.priority }
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

/// Works on one object for as long as it gets on by itself.
struct Worker {
    fleet: Fleet,
    metrics: Arc<Metrics>,
    ids: Arc<AtomicU64>,
    key: ObjectKey,
    reason: &'static str,
}

impl Worker {
    /// Reconciles until the object has to wait for somebody else: of many that open at once, the first is done first.
    /// Nothing if a reconcile panicked.
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
        let mut account = Account::open(self.metrics.clone(), key.clone());
        let work = AssertUnwindSafe(Box::pin(reconcile(&self.fleet, key, &mut account))).catch_unwind();
        let next = work.instrument(span.clone()).await;
        span.in_scope(|| account.close(next.is_err()));
        next.ok()
    }
}
