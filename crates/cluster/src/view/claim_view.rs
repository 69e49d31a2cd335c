//! The claims on the physical machine of an object, as the caches show them.

use crate::cache::caches::Caches;
use crate::cache::claim_watch::{exists, has_machine, machine_of, turn};
use crate::cache::claims::ClaimUse;
use crate::cache::project::{ClaimFacts, ObjectFacts};
use crate::cache::standings::object_name;
use crate::cache::store::Item;
use crate::transport::key::ObjectKey;
use five_spot_core::MachineIdentity;
use five_spot_core::claim::{Claim, HeldClaim, MachineClaims, ObjectName, Waiter};

/// The claims that concern an object.
pub(super) fn machine_claims(caches: &Caches, key: &ObjectKey, object: &ObjectFacts) -> MachineClaims {
    let machine = object.spec.as_ref().ok().and_then(|spec| spec.identity);
    let current = match (machine, caches.claims.usability(caches.now())) {
        (None, _) => Claim::NotNeeded,
        (Some(_), ClaimUse::Unread) => Claim::Unknown,
        // A claim that cannot be written is as good as none.
        (_, ClaimUse::Unprotected) => {
            return MachineClaims { current: Claim::Unprotected, ..MachineClaims::default() };
        }
        (Some(machine), ClaimUse::Protected) => current(caches, key, object, machine),
    };
    let held = caches.claims.held_by(key);
    let former = held.into_iter().filter(|held| Some(*held) != machine);
    MachineClaims {
        current,
        former: former.filter_map(|machine| former_claim(caches, machine)).collect(),
        also_lent_by: machine.and_then(|machine| also_lent_by(caches, key, machine)),
    }
}

fn former_claim(caches: &Caches, machine: MachineIdentity) -> Option<HeldClaim> {
    let Item { version, .. } = caches.claims.get(machine)?;
    Some(HeldClaim { machine, version: version.into(), is_current: true })
}

fn current(caches: &Caches, key: &ObjectKey, object: &ObjectFacts, machine: MachineIdentity) -> Claim {
    let Some(Item { version, view: ClaimFacts { holder, uid } }) = caches.claims.get(machine) else {
        let since = caches.claims.free_since(machine);
        return Claim::Free { machine, waiters: waiters(caches, key, machine), since };
    };
    let is_current = uid.as_ref() == Some(&object.view.uid);
    let claim = HeldClaim { machine, version: version.into(), is_current };
    match holder {
        Some(holder) if holder == *key => Claim::Held(claim),
        Some(holder) if exists(caches, &holder) => Claim::Taken { holder: object_name(&holder) },
        // A Lease that names nobody was edited by hand.
        Some(_) | None => Claim::Abandoned(claim),
    }
}

fn others(caches: &Caches, key: &ObjectKey, machine: MachineIdentity) -> Vec<ObjectKey> {
    let mut objects = caches.claims.objects(machine);
    objects.retain(|object| object != key && machine_of(caches, object) == Some(machine));
    objects
}

/// The other objects that wait for a machine, by their status.
fn waiters(caches: &Caches, key: &ObjectKey, machine: MachineIdentity) -> Vec<Waiter> {
    let waiter = |other: ObjectKey| Some(caches.objects.read(&other, turn)??.waiter(&other));
    others(caches, key, machine).into_iter().filter_map(waiter).collect()
}

fn also_lent_by(caches: &Caches, key: &ObjectKey, machine: MachineIdentity) -> Option<ObjectName> {
    let others = others(caches, key, machine);
    others.into_iter().find(|other| has_machine(caches, other)).as_ref().map(object_name)
}
