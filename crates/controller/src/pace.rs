//! The pace of the reconciles that changes in workload clusters and of kubeconfig Secrets cause.
//!
//! The administrator of a workload cluster can change its Nodes and pods thousands of times a second, and a tenant a Secret
//! that all of its objects name. Each reconcile writes lines to the log, and many write a status to the management cluster.
//! So an object has a burst of reconciles for such changes, as many as a busy drain needs, and one a second after that. Other
//! changes in the management cluster do not wait: kill switches are among them.

use five_spot_cluster::ObjectKey;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The time in which one more reconcile is permitted, and the longest that a change waits.
const INTERVAL: Duration = Duration::from_secs(1);

/// The burst, as the time in which it is permitted again: 120 reconciles. A kubelet runs 110 pods by default, and each that
/// ends on a drained node may cause one.
const BURST: Duration = Duration::from_mins(2);

/// The reconciles of each object of late.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The time at which the whole burst is permitted again. Absent if it is now.
    recovered_at: BTreeMap<ObjectKey, Instant>,
}

impl Pace {
    /// Counts a reconcile that begins.
    pub(crate) fn count(&mut self, key: &ObjectKey, now: Instant) {
        let recovered_at = self.recovered_at.get(key).map_or(now, |time| (*time).max(now));
        // Reconciles for other reasons may exceed the pace, and must not make a change wait for longer.
        self.recovered_at.insert(key.clone(), (recovered_at + INTERVAL).min(now + BURST + INTERVAL));
    }

    /// The time at which an object may be reconciled for a change that is paced.
    pub(crate) fn due(&self, key: &ObjectKey, now: Instant) -> Instant {
        let spent = self.recovered_at.get(key).map(|time| time.saturating_duration_since(now));
        now + spent.unwrap_or_default().saturating_sub(BURST)
    }

    /// Forgets the objects that have not been reconciled lately.
    pub(crate) fn forget_recovered(&mut self, now: Instant) {
        self.recovered_at.retain(|_, time| *time > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn key() -> ObjectKey {
        ObjectKey::new("shop", "a")
    }

    /// The number of reconciles in this time if a change follows another without a pause.
    async fn reconciles_within(pace: &mut Pace, time: Duration) -> usize {
        let (end, mut count) = (Instant::now() + time, 0);
        loop {
            let due = pace.due(&key(), Instant::now());
            if due >= end {
                return count;
            }
            advance(due.saturating_duration_since(Instant::now())).await;
            pace.count(&key(), Instant::now());
            count += 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_cause_one_reconcile_a_second() {
        let mut pace = Pace::default();
        let burst = usize::try_from(BURST.as_secs()).expect("a small number");
        assert_eq!(reconciles_within(&mut pace, Duration::from_millis(500)).await, burst + 1);
        let later = reconciles_within(&mut pace, Duration::from_mins(1)).await;
        assert!((59..=61).contains(&later), "{later} in a minute");
        assert_eq!(pace.due(&ObjectKey::new("shop", "b"), Instant::now()), Instant::now(), "of one object");
    }

    #[tokio::test(start_paused = true)]
    async fn no_change_waits_longer_than_a_second() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..10_000 {
            pace.count(&key(), now);
        }
        assert_eq!(pace.due(&key(), now), now + INTERVAL);
        advance(INTERVAL).await;
        assert_eq!(pace.due(&key(), Instant::now()), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_at_rest_takes_no_memory() {
        let mut pace = Pace::default();
        pace.count(&key(), Instant::now());
        pace.forget_recovered(Instant::now());
        assert_eq!(pace.recovered_at.len(), 1);
        advance(INTERVAL).await;
        pace.forget_recovered(Instant::now());
        assert!(pace.recovered_at.is_empty());
    }
}
