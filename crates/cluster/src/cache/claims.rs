//! The claims on physical machines, the standings of the objects of each, and an index of the machines of a holder.
//!
//! Entries of the indexes are hints: whoever uses one compares it with the store that it points into.

use crate::cache::lock::lock;
use crate::cache::project::{self, ClaimFacts};
use crate::cache::standings::{Affected, Standing, Standings};
use crate::cache::store::{Item, Store, SyncState};
use crate::transport::core_kinds::Lease;
use crate::transport::error::ReadFailureKind;
use crate::transport::key::ObjectKey;
use five_spot_core::MachineIdentity;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The time for which machines are lent without a claim after the API server has refused to write a Lease: after the first
/// refusal, and the longest after several.
const WITHOUT_LEASES: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(30), SignedDuration::from_mins(5));

/// The last refusal to write a Lease.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// No Lease is written before this time.
    until: Timestamp,
    pause: SignedDuration,
}

/// The use that can be made of claims at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimUse {
    /// They protect machines.
    Protected,
    /// The controller may not read or write Leases.
    Unprotected,
    /// They have not been read yet.
    Unread,
}

/// The claims on all physical machines.
pub(crate) struct Claims {
    namespace: Arc<str>,
    pub(crate) store: Store<ClaimFacts>,
    by_holder: Mutex<BTreeMap<ObjectKey, Vec<MachineIdentity>>>,
    standings: Mutex<Standings>,
    /// The times at which machines of several objects became free.
    freed: Mutex<BTreeMap<MachineIdentity, Timestamp>>,
    started_at: Timestamp,
    refusal: Mutex<Option<Refusal>>,
}

impl Claims {
    /// No claims yet. The Leases are in this namespace.
    pub(super) fn new(namespace: &str, started_at: Timestamp) -> Self {
        Self {
            namespace: namespace.into(),
            store: Store::new([Some(namespace.to_owned())]),
            by_holder: Mutex::default(),
            standings: Mutex::default(),
            freed: Mutex::default(),
            started_at,
            refusal: Mutex::default(),
        }
    }

    /// The namespace of the Leases.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Lease of a machine.
    pub(crate) fn lease(&self, machine: MachineIdentity) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), machine.lease())
    }

    /// The claim on a machine.
    pub(crate) fn get(&self, machine: MachineIdentity) -> Option<Item<ClaimFacts>> {
        self.store.get(&self.lease(machine))
    }

    /// The use that can be made of claims.
    pub(crate) fn usability(&self, now: Timestamp) -> ClaimUse {
        if lock(&self.refusal).is_some_and(|refusal| now < refusal.until) {
            return ClaimUse::Unprotected;
        }
        match self.store.sync_state() {
            SyncState::Synced => ClaimUse::Protected,
            SyncState::Failed(failure) if failure.kind != ReadFailureKind::Unreachable => {
                ClaimUse::Unprotected
            }
            SyncState::Failed(_) | SyncState::Syncing => ClaimUse::Unread,
        }
    }

    /// Notes that a Lease could not be written for want of a permission or of its namespace. Returns the time after which it
    /// is retried.
    pub(crate) fn note_refused(&self, now: Timestamp) -> Duration {
        let mut refusal = lock(&self.refusal);
        let pause = match *refusal {
            // Writes that were sent together are refused together.
            Some(last) if now < last.until => last.pause,
            Some(last) => (last.pause * 2).min(WITHOUT_LEASES.1),
            None => WITHOUT_LEASES.0,
        };
        *refusal = now.checked_add(pause).ok().map(|until| Refusal { until, pause });
        Duration::try_from(pause).unwrap_or_default()
    }

    /// Notes that a Lease could be written. Returns true if the one before was refused.
    pub(crate) fn note_accepted(&self) -> bool {
        lock(&self.refusal).take().is_some()
    }

    /// Stores a Lease that was read or written. Returns true if it has changed.
    pub(crate) fn put(&self, lease: &Lease) -> bool {
        let key = ObjectKey::of(lease);
        let version = lease.resource_version().unwrap_or_default();
        let is_new = self.store.put(key.clone(), &version, project::claim(lease));
        if let Some(machine) = MachineIdentity::of_lease(&key.name) {
            self.index_holder(machine);
        }
        is_new
    }

    /// Removes a claim whose Lease is gone.
    pub(crate) fn remove(&self, machine: MachineIdentity, now: Timestamp) {
        self.store.remove(&self.lease(machine));
        self.note_freed(machine, now);
    }

    /// Notes that the Lease of a machine exists although a read has reported that it does not: creating it has failed because
    /// of it.
    pub(crate) fn note_existence(&self, machine: MachineIdentity) {
        self.store.note_existence(&self.lease(machine));
    }

    /// Indexes the holder of a machine.
    pub(crate) fn index_holder(&self, machine: MachineIdentity) {
        let Some(Item { view, .. }) = self.get(machine) else { return };
        lock(&self.freed).remove(&machine);
        if let Some(holder) = view.holder {
            let mut by_holder = lock(&self.by_holder);
            let machines = by_holder.entry(holder).or_default();
            if !machines.contains(&machine) {
                // Nearly always one, and room for no more.
                machines.reserve_exact(1);
                machines.push(machine);
            }
        }
    }

    /// Notes the time at which a machine became free, if several objects may wait for it.
    pub(crate) fn note_freed(&self, machine: MachineIdentity, now: Timestamp) {
        if self.objects(machine).len() > 1 {
            lock(&self.freed).insert(machine, now);
        }
    }

    /// The time since which a machine has been free, as far as this program has seen.
    pub(crate) fn free_since(&self, machine: MachineIdentity) -> Timestamp {
        lock(&self.freed).get(&machine).copied().unwrap_or(self.started_at)
    }

    /// Notes the standing of an object, and returns the objects to which the change matters. `standing` reads it from the
    /// stores; of two that are read at the same time the newer is noted last.
    pub(crate) fn note_standing(
        &self,
        object: &ObjectKey,
        standing: impl FnOnce() -> Option<Standing>,
    ) -> Vec<Affected> {
        let mut standings = lock(&self.standings);
        let standing = standing();
        standings.note(object, standing)
    }

    /// The objects that may have this machine.
    pub(crate) fn objects(&self, machine: MachineIdentity) -> Vec<ObjectKey> {
        lock(&self.standings).objects(machine).cloned().collect()
    }

    /// The machines whose claim an object holds.
    pub(crate) fn held_by(&self, holder: &ObjectKey) -> Vec<MachineIdentity> {
        let candidates = lock(&self.by_holder).get(holder).cloned().unwrap_or_default();
        let is_held = |machine: &MachineIdentity| self.is_holder(holder, *machine);
        candidates.into_iter().filter(is_held).collect()
    }

    fn is_holder(&self, object: &ObjectKey, machine: MachineIdentity) -> bool {
        let is_holder = |claim: &ClaimFacts| claim.holder.as_ref() == Some(object);
        self.store.read(&self.lease(machine), is_holder) == Some(true)
    }

    /// Removes the entries of the indexes that are out of date. `machine_of` is the machine of an object.
    pub(super) fn collect_garbage(&self, machine_of: impl Fn(&ObjectKey) -> Option<MachineIdentity>) {
        lock(&self.standings).retain(|machine, object| machine_of(object) == Some(machine));
        lock(&self.by_holder).retain(|holder, machines| {
            machines.retain(|machine| self.is_holder(holder, *machine));
            !machines.is_empty()
        });
        let is_claimed = |machine: &MachineIdentity| self.store.has(&self.lease(*machine));
        lock(&self.freed).retain(|machine, _| !is_claimed(machine));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_leases_are_written_ever_more_rarely() {
        let mut now: Timestamp = "2026-11-16T08:00:00Z".parse().expect("a timestamp");
        let claims = Claims::new("5spot-system", now);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let pause = claims.note_refused(now);
            assert_eq!(claims.note_refused(now), pause, "two at the same time count as one");
            assert_eq!(claims.usability(now), ClaimUse::Unprotected);
            now += pause;
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [30, 60, 120, 240, 300, 300]);
        assert!(claims.note_accepted() && !claims.note_accepted());
        assert_eq!(claims.note_refused(now).as_secs(), 30);
    }
}
