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
    /// The times of all reconciles.
    all: Spent,
    /// The times of those in an emergency, which the reconciles before it do not delay.
    in_emergency: Spent,
}

impl Pace {
    /// Counts a reconcile that begins.
    pub(crate) fn count(&mut self, key: &ObjectKey, is_emergency: bool, now: Instant) {
        self.all.count(key, now);
        if is_emergency {
            self.in_emergency.count(key, now);
        }
    }

    /// The time at which an object may be reconciled for a change in its workload cluster.
    pub(crate) fn due(&self, key: &ObjectKey, is_emergency: bool, now: Instant) -> Instant {
        if is_emergency { self.in_emergency.due(key, now) } else { self.all.due(key, now) }
    }

    /// Forgets the objects that have not been reconciled lately.
    pub(crate) fn forget_recovered(&mut self, now: Instant) {
        self.all.recovered_at.retain(|_, time| *time > now);
        self.in_emergency.recovered_at.retain(|_, time| *time > now);
    }
}

/// The part of the burst that each object has spent.
#[derive(Debug, Default)]
struct Spent {
    /// The time at which the whole burst is permitted again. Absent if it is now.
    recovered_at: BTreeMap<ObjectKey, Instant>,
}

impl Spent {
    fn count(&mut self, key: &ObjectKey, now: Instant) {
        let recovered_at = self.recovered_at.get(key).map_or(now, |time| (*time).max(now));
        // Reconciles for other reasons may exceed the pace, and must not make a change wait for longer.
        self.recovered_at.insert(key.clone(), (recovered_at + INTERVAL).min(now + BURST + INTERVAL));
    }

    fn due(&self, key: &ObjectKey, now: Instant) -> Instant {
        let spent = self.recovered_at.get(key).map(|time| time.saturating_duration_since(now));
        now + spent.unwrap_or_default().saturating_sub(BURST)
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
            let due = pace.due(&key(), false, Instant::now());
            if due >= end {
                return count;
            }
            advance(due.saturating_duration_since(Instant::now())).await;
            pace.count(&key(), false, Instant::now());
            count += 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_before_an_emergency_do_not_delay_it() {
        let mut pace = Pace::default();
        reconciles_within(&mut pace, Duration::from_secs(1)).await;
        let now = Instant::now();
        assert!(pace.due(&key(), false, now) > now);
        assert_eq!(pace.due(&key(), true, now), now);
        // The administrator of a workload cluster can make one, too.
        (0..200).for_each(|_| pace.count(&key(), true, now));
        assert!(pace.due(&key(), true, now) > now);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_cause_one_reconcile_a_second() {
        let mut pace = Pace::default();
        let burst = usize::try_from(BURST.as_secs()).expect("a small number");
        assert_eq!(reconciles_within(&mut pace, Duration::from_millis(500)).await, burst + 1);
        let later = reconciles_within(&mut pace, Duration::from_mins(1)).await;
        assert!((59..=61).contains(&later), "{later} in a minute");
        assert_eq!(
            pace.due(&ObjectKey::new("shop", "b"), false, Instant::now()),
            Instant::now(),
            "of one object"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_change_waits_longer_than_a_second() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..10_000 {
            pace.count(&key(), false, now);
        }
        assert_eq!(pace.due(&key(), false, now), now + INTERVAL);
        advance(INTERVAL).await;
        assert_eq!(pace.due(&key(), false, Instant::now()), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_at_rest_takes_no_memory() {
        let mut pace = Pace::default();
        pace.count(&key(), false, Instant::now());
        pace.forget_recovered(Instant::now());
        assert_eq!(pace.all.recovered_at.len(), 1);
        advance(INTERVAL).await;
        pace.forget_recovered(Instant::now());
        assert!(pace.all.recovered_at.is_empty());
    }
}
