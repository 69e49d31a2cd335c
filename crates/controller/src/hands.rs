//! How many objects are worked on at a time.
//!
//! A hand that has been at one object for long waits for a cluster that does not answer. It must not keep the objects of
//! other clusters waiting, so that another takes its place meanwhile. Emergencies have hands of their own: however many
//! others wait, a person does not.

use five_spot_cluster::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How long a hand may be at an object before it counts as one that waits: much longer than anything takes that is
/// answered.
const LONG: Duration = Duration::from_secs(2);

/// How many may wait for each that works. A cluster that does not answer is noticed before there are as many.
const MOST_WAITING: usize = 8;

/// The hands, and since when each is at work.
#[derive(Debug)]
pub(crate) struct Hands {
    limit: usize,
    since: BTreeMap<ObjectKey, Instant>,
    emergencies: BTreeSet<ObjectKey>,
}

impl Hands {
    /// This many that work at a time.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), since: BTreeMap::new(), emergencies: BTreeSet::new() }
    }

    /// Whether there is one for another object.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at(now).is_some_and(|time| time <= now)
    }

    /// When there is one, if time alone brings one about.
    pub(crate) fn free_at(&self, now: Instant) -> Option<Instant> {
        if self.since.len() >= self.limit.saturating_mul(1 + MOST_WAITING) {
            return None;
        }
        let mut working: Vec<Instant> =
            self.since.values().map(|since| *since + LONG).filter(|until| *until > now).collect();
        if working.len() < self.limit {
            return Some(now);
        }
        working.sort_unstable();
        working.get(working.len() - self.limit).copied()
    }

    /// Whether there is one for an emergency.
    pub(crate) fn is_free_for_emergency(&self) -> bool {
        self.emergencies.len() < self.limit.saturating_mul(1 + MOST_WAITING)
    }

    /// One begins with an emergency.
    pub(crate) fn begin_emergency(&mut self, key: ObjectKey) {
        self.emergencies.insert(key);
    }

    /// One begins with an object.
    pub(crate) fn begin(&mut self, key: ObjectKey, now: Instant) {
        self.since.insert(key, now);
    }

    /// It is done with it.
    pub(crate) fn done(&mut self, key: &ObjectKey) {
        self.since.remove(key);
        self.emergencies.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_waits_for_long_makes_room_for_another() {
        let (mut hands, start) = (Hands::new(2), Instant::now());
        hands.begin(key("a"), start);
        assert!(hands.is_free(start));
        hands.begin(key("b"), start + Duration::from_secs(1));
        assert!(!hands.is_free(start + Duration::from_secs(1)));
        assert_eq!(hands.free_at(start + Duration::from_secs(1)), Some(start + LONG));
        assert!(hands.is_free(start + LONG));
        hands.begin(key("c"), start + LONG);
        assert!(!hands.is_free(start + LONG));
        hands.done(&key("b"));
        assert!(hands.is_free(start + LONG));
    }

    #[tokio::test(start_paused = true)]
    async fn emergencies_have_hands_of_their_own() {
        let (mut hands, start) = (Hands::new(1), Instant::now());
        hands.begin(key("a"), start);
        assert!(!hands.is_free(start));
        assert!(hands.is_free_for_emergency());
        hands.begin_emergency(key("b"));
        hands.done(&key("a"));
        assert!(hands.is_free(start), "and take none from the others");
        for number in 0..MOST_WAITING {
            hands.begin_emergency(key(&number.to_string()));
        }
        assert!(!hands.is_free_for_emergency(), "within bounds");
        hands.done(&key("b"));
        assert!(hands.is_free_for_emergency());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_an_end_to_waiting() {
        let (mut hands, start) = (Hands::new(1), Instant::now());
        for number in 0..=MOST_WAITING {
            hands.begin(key(&number.to_string()), start);
        }
        assert_eq!(hands.free_at(start + LONG), None);
        hands.done(&key("0"));
        assert!(hands.is_free(start + LONG));
    }
}
