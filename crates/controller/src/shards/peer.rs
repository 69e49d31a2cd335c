//! Another instance, as its Lease shows it.

use super::MAX_DURATION;
use super::member::is_released;
use five_spot_cluster::transport::{InstanceLease, LeaseRecord};
use five_spot_core::shard::Shard;
use std::time::Duration;

/// Another instance. All times are those of the local clock.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    lease: InstanceLease,
    /// The time by which its holder has to have stopped, unless it renews its Lease.
    free_at: Duration,
    state: State,
    is_deleted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may work.
    Live,
    /// Its Lease has expired, and a read has confirmed that; or it was released.
    Gone,
}

/// True if `known` is newer than `seen`. Versions of one resource are ordered.
pub(super) fn is_newer(known: &InstanceLease, seen: &InstanceLease) -> bool {
    let number = |lease: &InstanceLease| lease.stored.version.parse::<u64>().ok();
    number(known).zip(number(seen)).is_some_and(|(known, seen)| known > seen)
}

/// The time for which a Lease is held after a renewal. An edited record must not keep others waiting forever.
pub(super) fn duration(record: &LeaseRecord, default: Duration) -> Duration {
    match record.duration_seconds {
        0 => default,
        seconds => Duration::from_secs(seconds.into()).min(MAX_DURATION),
    }
}

impl Peer {
    pub(super) fn new(lease: InstanceLease, now: Duration, default: Duration) -> Self {
        let record = &lease.stored.record;
        let state = if is_released(record) { State::Gone } else { State::Live };
        Self { free_at: now + duration(record, default), state, is_deleted: false, lease }
    }

    pub(super) fn observe(&mut self, lease: InstanceLease, now: Duration, default: Duration) {
        if is_newer(&self.lease, &lease) {
            return;
        }
        self.is_deleted = false;
        let is_renewed = self.lease.stored.record != lease.stored.record;
        if is_renewed && is_released(&lease.stored.record) {
            self.state = State::Gone;
        } else if is_renewed {
            self.state = State::Live;
            self.free_at = self.free_at.max(now + duration(&lease.stored.record, default));
        }
        // A count that was edited and cannot be read does not show what its holder does.
        let known = self.lease.announcement.count;
        let same_holder = self.holder() == lease.stored.record.holder;
        self.lease = lease;
        if same_holder && self.shard().is_none() {
            self.lease.announcement.count = known;
        }
    }

    /// Records that its Lease was deleted. Its holder may work until its time is over.
    pub(super) const fn deleted(&mut self) {
        self.is_deleted = true;
    }

    /// Records that all Leases were read: one that should have been renewed by now was not.
    pub(super) fn confirm(&mut self, now: Duration) {
        if self.is_overdue(now) {
            self.state = State::Gone;
        }
    }

    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        self.state == State::Live && self.free_at <= now
    }

    pub(super) fn expires_at(&self) -> Option<Duration> {
        (self.state == State::Live).then_some(self.free_at)
    }

    pub(super) fn is_live(&self) -> bool {
        self.state == State::Live
    }

    /// True if it need not be remembered any more.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_deleted && self.state == State::Gone
    }

    pub(super) const fn id(&self) -> u32 {
        self.lease.id
    }

    pub(super) const fn count(&self) -> Option<u32> {
        self.lease.announcement.count
    }

    pub(super) fn holder(&self) -> &str {
        &self.lease.stored.record.holder
    }

    /// The shard that it says it is; absent if that is impossible or unreadable.
    pub(super) fn shard(&self) -> Option<Shard> {
        Shard::new(self.id(), self.count()?)
    }

    pub(super) fn yields_to(&self, shard: Shard) -> bool {
        self.lease.announcement.yields_to.contains(&shard)
    }
}
