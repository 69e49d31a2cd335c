//! Liveness and readiness of the controller.
//!
//! Alive: the event loop and every worker make progress, timers fire, and no watch of the management cluster hangs.
//! Each limit here is longer than the one that the operation has itself (the deadline of a request, the limit of the transport
//! for a silent watch). A limit that is exceeded therefore means that the program is stuck, and a restart helps. An API server
//! that is down exceeds none: requests fail, and are retried.
//!
//! Ready: besides, the watches of the management cluster are synced and connected, and the checks of the environment
//! ([`Health::examined`]) have found no obstacle. Workload clusters affect neither: they show in the conditions of the objects
//! that need them.

mod work;

pub(crate) use work::{Working, progress};

use five_spot_cluster::cache::Caches;
use five_spot_cluster::transport::http::Protocol;
use five_spot_cluster::view::{ManagementWatch, management_protocol, management_watches};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use work::Work;

/// The loop looks up at least once a minute, to compare the clocks.
const LOOP_BOUND: Duration = Duration::from_secs(90);

/// The time between two checks of the timers.
const TIMER_CHECK: Duration = Duration::from_secs(5);

/// The delay after which timers count as stuck: on a busy machine they are late, but not by that much.
const TIMER_BOUND: Duration = Duration::from_secs(30);

/// The time for which a worker may make no progress. Each of its requests is answered or given up within half a minute.
const WORK_BOUND: Duration = Duration::from_mins(2);

/// The time for which a watch may hang. The transport ends one that has been silent for three minutes and opens it again, and a server
/// then sends something within a minute, at least a bookmark.
const WATCH_BOUND: Duration = Duration::from_mins(5);

/// The remark in `/ready` if no ping can show that a server is frozen.
const OVER_HTTP1: &str = "the API server does not offer HTTP/2: if it stops responding, this is noticed only after \
    its watches have been silent for 3 minutes";

type Watches = Arc<dyn Fn() -> Vec<ManagementWatch> + Send + Sync>;

/// The health of a controller.
#[derive(Default)]
pub struct Health {
    inner: Mutex<Inner>,
    readiness_request: Notify,
}

#[derive(Default)]
struct Inner {
    turned: Option<Instant>,
    timer_checked: Option<Instant>,
    working: BTreeMap<u64, Work>,
    next_id: u64,
    watches: Option<Watches>,
    protocol: Option<Arc<dyn Fn() -> Option<Protocol> + Send + Sync>>,
    findings: BTreeMap<&'static str, Findings>,
}

/// The result of a check of the controller's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The reasons for which the controller is not ready.
    pub obstacles: Vec<String>,
    /// Remarks that do not affect readiness.
    pub remarks: Vec<String>,
}

impl Health {
    /// The reasons for which the controller counts as stuck; empty if it is alive.
    #[must_use]
    pub fn liveness_failures(&self) -> Vec<String> {
        let mut liveness_failures = Vec::new();
        let watches = {
            let inner = self.lock();
            liveness_failures.extend(overdue(
                "the event loop has made no progress",
                inner.turned,
                LOOP_BOUND,
            ));
            liveness_failures.extend(overdue("timers have not fired", inner.timer_checked, TIMER_BOUND));
            liveness_failures.extend(inner.working.values().filter_map(|work| {
                overdue(
                    &format!("the reconcile of {} has made no progress", work.key),
                    Some(work.last()),
                    WORK_BOUND,
                )
            }));
            inner.watches.clone()
        };
        for watch in watches.iter().flat_map(|watches| watches()) {
            if let Some(idle) = watch.idle.filter(|idle| *idle > WATCH_BOUND) {
                liveness_failures.push(format!(
                    "the watch of {} has shown no activity for {} s",
                    watch.what,
                    idle.as_secs()
                ));
            }
        }
        liveness_failures
    }

    /// Someone requests `/ready`.
    pub(crate) fn note_readiness_request(&self) {
        self.readiness_request.notify_one();
    }

    /// Waits until `/ready` is requested, or returns at once if it was since the last call.
    pub(crate) async fn readiness_requested(&self) {
        self.readiness_request.notified().await;
    }

    /// The reasons for which the controller is not ready; empty if it is.
    #[must_use]
    pub fn obstacles(&self) -> Vec<String> {
        let mut obstacles = self.liveness_failures();
        let (watches, found) = {
            let inner = self.lock();
            let found = inner.findings.values().flat_map(|findings| findings.obstacles.clone());
            (inner.watches.clone(), found.collect::<Vec<_>>())
        };
        obstacles.extend(found);
        let Some(watches) = watches else {
            obstacles.push("the controller has not opened its watches".to_owned());
            return obstacles;
        };
        for watch in watches() {
            match watch.unsynced {
                Some(why) => obstacles.push(format!("{} are not synced: {why}", watch.what)),
                None if !watch.connected => {
                    obstacles.push(format!("the watch of {} is not connected", watch.what));
                }
                None => {}
            }
        }
        obstacles
    }

    /// Remarks that do not affect readiness.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let (mut remarks, protocol) = {
            let inner = self.lock();
            let remarks = inner.findings.values().flat_map(|findings| findings.remarks.clone());
            (remarks.collect::<Vec<_>>(), inner.protocol.clone())
        };
        if protocol.and_then(|protocol| protocol()) == Some(Protocol::Http1) {
            remarks.push(OVER_HTTP1.to_owned());
        }
        remarks
    }

    /// Replaces the findings about something. True if they have changed.
    pub fn examined(&self, what: &'static str, findings: &Findings) -> bool {
        self.lock().findings.insert(what, findings.clone()).unwrap_or_default() != *findings
    }

    /// Checks the timers for as long as it is polled.
    pub async fn check_timers(&self) {
        loop {
            self.lock().timer_checked = Some(Instant::now());
            tokio::time::sleep(TIMER_CHECK).await;
        }
    }

    /// Monitors the watches of these caches.
    pub(crate) fn attach(&self, caches: &Arc<Caches>) {
        let (watched, connected) = (caches.clone(), caches.clone());
        let mut inner = self.lock();
        inner.watches = Some(Arc::new(move || management_watches(&watched)));
        inner.protocol = Some(Arc::new(move || management_protocol(&connected)));
    }

    /// Notes progress of the event loop.
    pub(crate) fn turned(&self) {
        self.lock().turned = Some(Instant::now());
    }

    /// Monitors a worker until it ends.
    pub(crate) fn begin(self: &Arc<Self>, key: String) -> Working {
        let mut inner = self.lock();
        inner.next_id += 1;
        let (id, work) = (inner.next_id, Work::new(key));
        inner.working.insert(id, work.clone());
        drop(inner);
        Working::new(self.clone(), id, work)
    }

    /// Stops to monitor a controller that has ended.
    pub(crate) fn detach(&self) {
        let mut inner = self.lock();
        (inner.turned, inner.watches, inner.protocol) = (None, None, None);
    }

    fn end(&self, id: u64) {
        self.lock().working.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is one assignment.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn overdue(what: &str, last: Option<Instant>, bound: Duration) -> Option<String> {
    let silent = last?.elapsed();
    (silent > bound).then(|| format!("{what} for {} s", silent.as_secs()))
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
