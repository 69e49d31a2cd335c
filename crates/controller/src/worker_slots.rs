//! The slots for reconciles that run at the same time.
//!
//! A worker that has been at one object for long waits for a cluster that does not answer. So that it does not delay the
//! objects of other clusters, its slot counts as free meanwhile. Emergencies have slots of their own: a person never waits
//! for other objects.
//!
//! The waiting workers are bounded, so that a tenant whose clusters do not answer could have all of them. One namespace
//! therefore never has more than half.

use five_spot_cluster::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time after which a worker counts as waiting: much longer than a reconcile takes whose requests are answered.
const LONG: Duration = Duration::from_secs(2);

/// The waiting workers for each slot. A cluster that does not answer is noticed before there are as many.
const MOST_WAITING: usize = 8;

/// The slots, and since when each is in use.
#[derive(Debug)]
pub(crate) struct WorkerSlots {
    limit: usize,
    since: BTreeMap<ObjectKey, Instant>,
    emergencies: BTreeSet<ObjectKey>,
    /// The slots of each namespace: of emergencies and of others.
    by_namespace: BTreeMap<Arc<str>, SlotCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SlotCounts {
    ordinary: usize,
    emergencies: usize,
}

impl WorkerSlots {
    /// Slots for `limit` reconciles at a time.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            since: BTreeMap::new(),
            emergencies: BTreeSet::new(),
            by_namespace: BTreeMap::new(),
        }
    }

    /// The slots of all, waiting workers included.
    const fn most(&self) -> usize {
        self.limit.saturating_mul(1 + MOST_WAITING)
    }

    fn counts(&self, namespace: &str) -> SlotCounts {
        self.by_namespace.get(namespace).copied().unwrap_or_default()
    }

    /// True if a namespace may have one more slot.
    pub(crate) fn has_room(&self, namespace: &str) -> bool {
        self.counts(namespace).ordinary < self.most() / 2
    }

    /// True if a namespace may have one more slot for an emergency.
    pub(crate) fn has_room_for_emergency(&self, namespace: &str) -> bool {
        self.counts(namespace).emergencies < self.most() / 2
    }

    /// True if there is a free slot.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at(now).is_some_and(|time| time <= now)
    }

    /// The time at which a slot is free, if time alone frees one.
    pub(crate) fn free_at(&self, now: Instant) -> Option<Instant> {
        if self.since.len() >= self.most() {
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

    /// True if there is a free slot for an emergency.
    pub(crate) fn is_free_for_emergency(&self) -> bool {
        self.emergencies.len() < self.most()
    }

    /// Takes a slot for an emergency.
    pub(crate) fn begin_emergency(&mut self, key: ObjectKey) {
        self.by_namespace.entry(key.namespace.clone()).or_default().emergencies += 1;
        self.emergencies.insert(key);
    }

    /// Takes a slot for an object.
    pub(crate) fn begin(&mut self, key: ObjectKey, now: Instant) {
        self.by_namespace.entry(key.namespace.clone()).or_default().ordinary += 1;
        self.since.insert(key, now);
    }

    /// Frees the slot of an object.
    pub(crate) fn done(&mut self, key: &ObjectKey) {
        let mut counts = self.counts(&key.namespace);
        if self.since.remove(key).is_some() {
            counts.ordinary = counts.ordinary.saturating_sub(1);
        }
        if self.emergencies.remove(key) {
            counts.emergencies = counts.emergencies.saturating_sub(1);
        }
        if counts == SlotCounts::default() {
            self.by_namespace.remove(&key.namespace);
        } else {
            self.by_namespace.insert(key.namespace.clone(), counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_waits_for_long_frees_its_slot() {
        let (mut slots, start) = (WorkerSlots::new(2), Instant::now());
        slots.begin(key("a"), start);
        assert!(slots.is_free(start));
        slots.begin(key("b"), start + Duration::from_secs(1));
        assert!(!slots.is_free(start + Duration::from_secs(1)));
        assert_eq!(slots.free_at(start + Duration::from_secs(1)), Some(start + LONG));
        assert!(slots.is_free(start + LONG));
        slots.begin(key("c"), start + LONG);
        assert!(!slots.is_free(start + LONG));
        slots.done(&key("b"));
        assert!(slots.is_free(start + LONG));
    }

    #[tokio::test(start_paused = true)]
    async fn emergencies_have_slots_of_their_own() {
        let (mut slots, start) = (WorkerSlots::new(1), Instant::now());
        slots.begin(key("a"), start);
        assert!(!slots.is_free(start));
        assert!(slots.is_free_for_emergency());
        slots.begin_emergency(key("b"));
        slots.done(&key("a"));
        assert!(slots.is_free(start), "emergencies take no slot from the others");
        for number in 0..MOST_WAITING {
            slots.begin_emergency(key(&number.to_string()));
        }
        assert!(!slots.is_free_for_emergency(), "they are bounded too");
        slots.done(&key("b"));
        assert!(slots.is_free_for_emergency());
    }

    #[tokio::test(start_paused = true)]
    async fn clusters_that_hang_never_take_all_slots_for_one_namespace() {
        let (mut slots, start) = (WorkerSlots::new(2), Instant::now());
        let mut began = Vec::new();
        for number in 0..100 {
            let (ordinary, urgent) = (key(&format!("o{number}")), key(&format!("u{number}")));
            if slots.has_room("a") {
                slots.begin(ordinary.clone(), start);
                began.push(ordinary);
            }
            if slots.has_room_for_emergency("a") {
                slots.begin_emergency(urgent.clone());
                began.push(urgent);
            }
        }
        assert!(slots.is_free(start + LONG), "others go on when the first of them have waited for long");
        assert!(slots.is_free_for_emergency());
        assert!(slots.has_room("b") && slots.has_room_for_emergency("b"));
        for key in &began {
            slots.done(key);
        }
        assert!(slots.has_room("a") && slots.has_room_for_emergency("a"));
        assert!(slots.by_namespace.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_workers_are_bounded() {
        let (mut slots, start) = (WorkerSlots::new(1), Instant::now());
        for number in 0..=MOST_WAITING {
            slots.begin(key(&number.to_string()), start);
        }
        assert_eq!(slots.free_at(start + LONG), None);
        slots.done(&key("0"));
        assert!(slots.is_free(start + LONG));
    }
}
