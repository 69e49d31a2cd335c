//! The loop: news and time fill the queue, workers empty it.

use crate::account::Account;
use crate::hands::Hands;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::queue::{Queue, Rank};
use crate::reconcile::{Next, reconcile};
use crate::recovery::Recovery;
use crate::{RunError, Settings, logging};
use five_spot_cluster::{Cause, Connection, Fleet, FleetSettings, ObjectKey};
use five_spot_core::Fingerprint;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
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

/// How long after a panic an object is left alone.
const AFTER_PANIC: Duration = Duration::from_mins(5);

/// Why an object is reconciled that nobody has told anything of: the last reconcile has asked for it. In the words that
/// `kube` uses in its own spans.
const REQUESTED: &str = "reconciler requested retry";

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
        instance: settings.instance,
    };
    let watches = stop.child_token();
    let (metrics, health) = (settings.metrics, settings.health);
    metrics.attach(&connection);
    let fleet = Fleet::watch(connection, fleet_settings, changes, &watches)?;
    health.attach(&fleet);
    let wall = fleet.now();
    let looped = Loop {
        queue: Queue::new(),
        reasons: BTreeMap::new(),
        workers: JoinSet::new(),
        recovery: Recovery::default(),
        hands: Hands::new(settings.concurrency),
        clock: (Instant::now(), wall),
        next_id: u64::try_from(wall.as_microsecond()).unwrap_or_default(),
        metrics,
        health: health.clone(),
        fleet,
        news,
    };
    looped.turn(stop).await;
    watches.cancel();
    health.detach();
    Ok(())
}

struct Loop {
    fleet: Fleet,
    queue: Queue<ObjectKey>,
    /// Why a key was first asked for since it was last taken. One that is not here is taken because its time has come.
    reasons: BTreeMap<ObjectKey, &'static str>,
    workers: JoinSet<(ObjectKey, Option<Next>)>,
    recovery: Recovery,
    news: mpsc::UnboundedReceiver<(ObjectKey, Cause)>,
    hands: Hands,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// The same moment on both clocks.
    clock: (Instant, Timestamp),
    next_id: u64,
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
        let rest = async { while self.workers.join_next().await.is_some() {} };
        if timeout(LAST_WORK, rest).await.is_err() {
            tracing::warn!(
                left = self.workers.len(),
                "stopped with work in hand, which the next start will finish"
            );
        }
    }

    fn start_workers(&mut self) {
        let now = Instant::now();
        while self.hands.is_free(now)
            && let Some(key) = self.queue.next(now)
        {
            self.hands.begin(key.clone(), now);
            self.next_id += 1;
            let reason = self.reasons.remove(&key).unwrap_or(REQUESTED);
            let id = format!("{}-{:x}", &Fingerprint::of(&key.to_string()).to_string()[..12], self.next_id);
            let span = logging::reconcile_span(&id, &key.namespace, &key.name, reason);
            let fleet = self.fleet.clone();
            let mut account = Account::open(self.metrics.clone(), key.clone());
            let working = self.health.begin(key.to_string());
            let work = async move {
                let next = AssertUnwindSafe(reconcile(&fleet, &key, &mut account)).catch_unwind().await;
                account.close(next.is_err());
                (key, next.ok())
            };
            self.workers.spawn(working.through(work).instrument(span));
        }
    }

    /// When to look up at the latest: at the next that is due, if there is a hand for it, and to compare the clocks.
    fn next_wake(&self) -> Instant {
        let check = self.clock.0 + CLOCK_CHECK;
        let free = self.hands.free_at(Instant::now());
        let due = free.zip(self.queue.next_due()).map(|(free, due)| free.max(due));
        [due, self.recovery.due()].into_iter().flatten().fold(check, Instant::min)
    }

    fn hear(&mut self, key: ObjectKey, reason: &'static str) {
        let rank = self.rank(&key);
        self.reasons.entry(key.clone()).or_insert(reason);
        self.queue.add(key, rank, Instant::now());
    }

    fn finish(&mut self, done: Result<(ObjectKey, Option<Next>), tokio::task::JoinError>) {
        // A worker that is cancelled ends with the runtime, and one that panics catches that itself.
        let Ok((key, next)) = done else { return };
        let now = Instant::now();
        self.hands.done(&key);
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
        Rank { emergency: urgency.emergency, priority: urgency.priority }
    }
}
