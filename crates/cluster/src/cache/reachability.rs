//! The loss of a workload cluster that had been reached, and its return.
//!
//! The caches keep what they know while a watch is interrupted: an API server that restarts is no reason to forget its Nodes.
//! But what they know of a cluster that has not responded for minutes may be wrong, and nobody may take it for the truth.
//! While no watch fails, nothing is requested here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The time after a failed watch after which a cluster that still does not respond counts as lost. An API server that is
/// updated is back by then.
const LOST_AFTER: Duration = Duration::from_mins(5);

/// The time between two attempts to reach a lost cluster.
const PROBE_EVERY: Duration = Duration::from_secs(20);

/// The reachability of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    is_lost: AtomicBool,
    failed: Notify,
}

impl Reachability {
    /// True if the cluster has not responded for [`LOST_AFTER`].
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Notes that a watch has failed.
    pub(crate) fn note_failure(&self) {
        self.failed.notify_one();
    }

    /// Monitors the cluster for as long as it is polled. `responds` makes one request; `notify` is called when the cluster is
    /// lost, and when it is back.
    pub(crate) async fn monitor<F: Future<Output = bool>>(
        &self,
        responds: impl Fn() -> F,
        notify: impl Fn(),
    ) {
        loop {
            self.failed.notified().await;
            sleep(LOST_AFTER).await;
            while !responds().await {
                if !self.is_lost.swap(true, Ordering::Relaxed) {
                    notify();
                }
                sleep(PROBE_EVERY).await;
            }
            if self.is_lost.swap(false, Ordering::Relaxed) {
                notify();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::time::{Instant, timeout};

    /// The changes, with their seconds, and the number of requests, if the cluster does not respond during `outage` seconds
    /// and its watch fails at the beginning of it.
    async fn changes_during(outage: std::ops::Range<u64>) -> (Vec<(u64, bool)>, u32) {
        let (began, reachability) = (Instant::now(), Reachability::default());
        let (changes, requests) = (Mutex::new(Vec::new()), Mutex::new(0));
        let seconds = || began.elapsed().as_secs();
        let responds = || {
            *requests.lock().expect("no panic") += 1;
            let responds = !outage.contains(&seconds());
            async move { responds }
        };
        let notify = || changes.lock().expect("no panic").push((seconds(), reachability.is_lost()));
        let fail = async {
            sleep(Duration::from_secs(outage.start)).await;
            reachability.note_failure();
        };
        let monitor = reachability.monitor(responds, notify);
        let _ = timeout(Duration::from_hours(1), async { tokio::join!(monitor, fail) }).await;
        (changes.into_inner().expect("no panic"), requests.into_inner().expect("no panic"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_interruption_changes_nothing_and_costs_one_request() {
        assert_eq!(changes_during(10..200).await, (Vec::new(), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_lost_after_five_minutes_until_it_is_back() {
        let (changes, _) = changes_during(10..1000).await;
        assert_eq!(changes, [(310, true), (1010, false)]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_failure_nothing_is_requested() {
        assert_eq!(changes_during(4000..4001).await, (Vec::new(), 0));
    }
}
