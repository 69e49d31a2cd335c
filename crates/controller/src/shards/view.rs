//! The objects that an instance may work on.

use five_spot_cluster::ObjectKey;
use five_spot_core::shard::Shard;
use std::collections::BTreeSet;

/// The duty of an instance as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It does not hold its Lease.
    #[default]
    StandsBy,
    /// It works on the objects that it owns.
    Works,
}

/// The relation of an instance to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It works on it.
    Owned,
    /// Another instance owns it under the count of this one.
    Foreign,
    /// It owns it, but another instance that was started with another count still works on it, or takes precedence.
    Waiting,
}

/// The objects that an instance may work on, until the next view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(super) shard: Shard,
    pub(super) duty: Duty,
    /// The other instances whose objects this one does not work on.
    pub(super) waits_for: BTreeSet<Shard>,
    /// True if there is another instance whose count cannot be read.
    pub(super) waits_for_all: bool,
    /// The number of times that this instance has begun to work.
    pub(super) term: u64,
    /// True if another instance may have worked on these objects while this process ran.
    pub(super) was_standby: bool,
    /// The number of this view.
    pub(super) number: u64,
}

impl View {
    /// The view before anything is known.
    pub(super) const fn initial(shard: Shard) -> Self {
        Self {
            shard,
            duty: Duty::StandsBy,
            waits_for: BTreeSet::new(),
            waits_for_all: false,
            term: 0,
            was_standby: false,
            number: 0,
        }
    }

    pub(crate) const fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn works(&self) -> bool {
        self.duty == Duty::Works
    }

    /// True if both belong to the same uninterrupted time of work.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        self.works() && before.works() && self.term == before.term
    }

    /// True if the caches may be older than the last write of another instance.
    pub(crate) const fn may_have_stale_caches(&self) -> bool {
        self.was_standby || self.shard.count() > 1 || self.term > 1
    }

    /// The relation to an object.
    pub(crate) fn ownership(&self, key: &ObjectKey) -> Ownership {
        if !self.shard.owns(&key.namespace, &key.name) {
            return Ownership::Foreign;
        }
        let claimed = |shard: &Shard| shard.owns(&key.namespace, &key.name);
        let waits = !self.works() || self.waits_for_all || self.waits_for.iter().any(claimed);
        if waits { Ownership::Waiting } else { Ownership::Owned }
    }

    pub(crate) fn owns(&self, key: &ObjectKey) -> bool {
        self.ownership(key) == Ownership::Owned
    }
}
