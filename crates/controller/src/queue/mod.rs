//! The work queue: a pure data structure. The caller passes the time, so that the same requests give the same order in
//! every run.
//!
//! Among those that are due the order is: emergencies, then the higher priority, then the earlier due time, then the
//! key. A priority rises by one point for every second that its key has been due and was not taken, so that nothing
//! starves: with priorities from 0 to 100 the lowest waits at most 100 s longer than the highest. Emergencies do not
//! wait for anything of lower rank; they are few.
//!
//! Tenants share the workers: while others wait, none has more than its equal share of them in flight, whatever
//! priorities it gives to its own objects and however many there are.

use crate::urgency::Urgency;
use five_spot_cluster::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A key that belongs to a tenant.
pub trait Tenant {
    /// The tenant. Those of one tenant compete by urgency alone.
    fn tenant(&self) -> Arc<str>;
}

impl Tenant for ObjectKey {
    fn tenant(&self) -> Arc<str> {
        self.namespace.clone()
    }
}

/// The keys that wait, those that are due, and those that are being worked on.
#[derive(Debug)]
pub struct Queue<K> {
    keys: BTreeMap<K, Entry>,
    /// Waiting keys of which no [`Queue::next`] has seen yet that they are due.
    later: BTreeSet<(Instant, K)>,
    /// The others, the longest waiting first.
    due: BTreeSet<(Instant, K)>,
    /// The same as `due`, by tenant, the most urgent first.
    ready: BTreeMap<Arc<str>, BTreeSet<(Order, K)>>,
    /// The number of keys in flight, by tenant.
    in_flight: BTreeMap<Arc<str>, usize>,
    /// The number of workers that the tenants share.
    workers: usize,
    /// Emergencies that wait, due or not.
    emergencies: BTreeSet<(Instant, K)>,
}

/// The state of a key. It is kept while the key waits or is in flight.
#[derive(Debug, Default)]
struct Entry {
    asked: Option<Call>,
    wake: Option<Call>,
    priority: u8,
    in_flight: bool,
}

/// A reason to reconcile.
#[derive(Clone, Copy, Debug)]
struct Call {
    at: Instant,
    emergency: bool,
}

/// The order among due keys: the smallest is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    calm: bool,
    aged: Instant,
    due: Instant,
}

impl Order {
    /// All priorities rise equally fast, so that the order of two keys never changes with time: instead of the priority
    /// at this moment it is enough to compare the instants at which each would reach the highest one.
    fn new(emergency: bool, priority: u8, due: Instant) -> Self {
        let behind = Duration::from_secs(u64::from(u8::MAX - priority));
        Self { calm: !emergency, aged: due.checked_add(behind).unwrap_or(due), due }
    }
}

impl Entry {
    fn calls(&self) -> impl Iterator<Item = Call> {
        self.asked.into_iter().chain(self.wake)
    }

    /// The order of the key, if it waits.
    fn order(&self) -> Option<Order> {
        if self.in_flight {
            return None;
        }
        let due = self.calls().map(|call| call.at).min()?;
        let emergency = self.calls().any(|call| call.emergency);
        Some(Order::new(emergency, self.priority, due))
    }
}

impl<K: Ord + Clone + Tenant> Queue<K> {
    /// An empty one for so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            keys: BTreeMap::new(),
            later: BTreeSet::new(),
            due: BTreeSet::new(),
            ready: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            workers,
            emergencies: BTreeSet::new(),
        }
    }

    /// Asks for `key` to be reconciled at `due`. One that waits already is raised: it keeps the earlier due time, is an
    /// emergency if either is, and takes the new priority. One that is in flight will be taken again after it is done.
    pub fn add(&mut self, key: K, urgency: Urgency, due: Instant) {
        self.change(key, |entry| {
            let earlier = entry.asked;
            entry.asked = Some(Call {
                at: earlier.map_or(due, |call| call.at.min(due)),
                emergency: urgency.is_emergency() || earlier.is_some_and(|call| call.emergency),
            });
            entry.priority = urgency.priority;
        });
    }

    /// Sets when time alone will make `key` worth a reconcile, in place of what was set before. What was asked for with
    /// [`Queue::add`] stays as it is. Taking the key forgets both.
    pub fn wake(&mut self, key: K, urgency: Urgency, due: Instant) {
        self.change(key, |entry| {
            entry.wake = Some(Call { at: due, emergency: urgency.is_emergency() });
            entry.priority = urgency.priority;
        });
    }

    /// The most urgent key that is due and not in flight. It is in flight from now on, until [`Queue::done`].
    pub fn next(&mut self, now: Instant) -> Option<K> {
        self.next_of(now, |_| true)
    }

    /// The same as [`Queue::next`], of the tenants that have room for one more.
    pub fn next_of(&mut self, now: Instant, has_room: impl Fn(&str) -> bool) -> Option<K> {
        self.notice_due(now);
        self.take(|_| true, has_room)
    }

    /// The same as [`Queue::next_of`], of emergencies alone.
    pub fn next_emergency_of(&mut self, now: Instant, has_room: impl Fn(&str) -> bool) -> Option<K> {
        self.notice_due(now);
        self.take(|order| !order.calm, has_room)
    }

    /// Takes the most urgent key of those that are meant: of tenants that have less than their share in flight, or of
    /// all that have room if there are none.
    fn take(&mut self, is_meant: impl Fn(&Order) -> bool, has_room: impl Fn(&str) -> bool) -> Option<K> {
        let share = self.share();
        let first = |(tenant, keys): (&Arc<str>, &BTreeSet<(Order, K)>)| {
            if !has_room(tenant) {
                return None;
            }
            let (order, key) = keys.first().filter(|(order, _)| is_meant(order))?;
            let has_its_share = self.in_flight.get(tenant).is_some_and(|count| *count >= share);
            Some((has_its_share, *order, key.clone()))
        };
        let (_, _, key) = self.ready.iter().filter_map(first).min()?;
        *self.in_flight.entry(key.tenant()).or_default() += 1;
        self.change(key.clone(), |entry| {
            *entry = Entry { in_flight: true, priority: entry.priority, ..Entry::default() };
        });
        Some(key)
    }

    /// The number of workers that each tenant may have while others wait.
    fn share(&self) -> usize {
        let waiting = self.ready.keys().filter(|tenant| !self.in_flight.contains_key(*tenant)).count();
        self.workers.div_ceil((self.in_flight.len() + waiting).max(1))
    }

    /// The due time of the earliest emergency that is not due yet.
    #[must_use]
    pub fn next_emergency_due_after(&self, now: Instant) -> Option<Instant> {
        self.emergencies.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// The key is no longer in flight; what was asked for meanwhile counts from now on.
    pub fn done(&mut self, key: &K) {
        if self.keys.get(key).is_some_and(|entry| entry.in_flight) {
            let tenant = key.tenant();
            let left = self.in_flight.get(&tenant).map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                self.in_flight.remove(&tenant);
            } else {
                self.in_flight.insert(tenant, left);
            }
            self.change(key.clone(), |entry| entry.in_flight = false);
        }
    }

    /// Forgets what was asked for. A key that is in flight stays so until [`Queue::done`]: an object of the same name
    /// that comes meanwhile has to wait for it.
    pub fn remove(&mut self, key: &K) {
        if self.keys.contains_key(key) {
            self.change(key.clone(), |entry| (entry.asked, entry.wake) = (None, None));
        }
    }

    /// The due time of the earliest key that is not in flight.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let earliest = |keys: &BTreeSet<(Instant, K)>| keys.first().map(|(at, _)| *at);
        earliest(&self.due).into_iter().chain(earliest(&self.later)).min()
    }

    /// The same, of those that are not due yet.
    #[must_use]
    pub fn next_due_after(&self, now: Instant) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// The number of keys that are due and wait.
    #[must_use]
    pub fn depth(&self, now: Instant) -> usize {
        self.due.len() + self.later.iter().take_while(|(at, _)| *at <= now).count()
    }

    /// The time for which the longest waiting key has been due.
    #[must_use]
    pub fn oldest_waiting(&self, now: Instant) -> Option<Duration> {
        self.next_due().filter(|due| *due <= now).map(|due| now.duration_since(due))
    }

    /// Moves what has become due to where [`Queue::next`] takes from.
    fn notice_due(&mut self, now: Instant) {
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            let Some((at, key)) = self.later.pop_first() else { return };
            if let Some(order) = self.keys.get(&key).and_then(Entry::order) {
                self.ready.entry(key.tenant()).or_default().insert((order, key.clone()));
                self.due.insert((at, key));
            }
        }
    }

    /// Changes what is known of a key, and keeps the orders in step with it.
    fn change(&mut self, key: K, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.keys.remove(&key).unwrap_or_default();
        if let Some(order) = entry.order() {
            self.withdraw(&key, order);
        }
        change(&mut entry);
        if let Some(order) = entry.order() {
            self.later.insert((order.due, key.clone()));
            if !order.calm {
                self.emergencies.insert((order.due, key.clone()));
            }
        }
        if entry.in_flight || entry.calls().next().is_some() {
            self.keys.insert(key, entry);
        }
    }

    fn withdraw(&mut self, key: &K, order: Order) {
        let place = (order.due, key.clone());
        self.emergencies.remove(&place);
        if !self.later.remove(&place) {
            self.due.remove(&place);
            let tenant = key.tenant();
            if let Some(keys) = self.ready.get_mut(&tenant) {
                keys.remove(&(order, place.1));
                if keys.is_empty() {
                    self.ready.remove(&tenant);
                }
            }
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
