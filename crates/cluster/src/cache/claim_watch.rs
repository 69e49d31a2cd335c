//! The watch of the Leases that claim physical machines, and the objects that a change of a claim concerns.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::change_cause::ChangeCause;
use crate::cache::lock::lock;
use crate::cache::project::{self, ObjectFacts};
use crate::cache::standings::{Affected, Standing, Turn};
use crate::cache::watch::{WatchSignal, fill};
use crate::transport::core_kinds::Lease;
use crate::transport::key::ObjectKey;
use five_spot_api::names::{self, label};
use five_spot_core::{MachineIdentity, ProviderKind};
use kube::Api;
use kube::runtime::watcher::Config;
use std::sync::Arc;

/// Watches the claims, and no other Leases.
pub(super) fn watch_claims(caches: &Arc<Caches>) {
    let watched = caches.clone();
    caches.spawn(async move {
        let claims = &watched.claims;
        let api: Api<Lease> = Api::namespaced(watched.client.clone(), claims.namespace());
        let scope = Some(claims.namespace().to_owned());
        let notify = |signal: WatchSignal| match signal {
            WatchSignal::Changed(lease) => {
                let Some(machine) = MachineIdentity::of_lease(&lease.name) else { return };
                if claims.store.has(&lease) {
                    claims.index_holder(machine);
                } else {
                    claims.note_freed(machine, watched.now());
                }
                notify_objects(&watched, machine, None);
            }
            WatchSignal::SyncState => watched.notify_all(ChangeCause::Watch),
            WatchSignal::NotServed | WatchSignal::Failed => {}
        };
        let config = Config::default().labels(label::MACHINE_CLAIM);
        fill(&watched.source, api, config, scope, &claims.store, project::claim, notify).await;
    });
}

/// Notes that a Lease was written. If the one before was refused, objects may be lent without a claim.
pub(crate) fn note_accepted(caches: &Caches) {
    if caches.claims.note_accepted() {
        caches.notify_all(ChangeCause::Claim);
    }
}

/// Notes that a Lease could not be written, and has it retried later.
pub(crate) fn note_refused(caches: &Arc<Caches>, key: &ObjectKey) {
    let pause = caches.claims.note_refused(caches.now());
    let (later, key) = (caches.clone(), key.clone());
    caches.spawn(async move {
        tokio::time::sleep(pause).await;
        later.notify(key, ChangeCause::Claim);
    });
}

/// Notifies the objects of a machine, except one.
pub(crate) fn notify_objects(caches: &Caches, machine: MachineIdentity, except: Option<&ObjectKey>) {
    for object in caches.claims.objects(machine) {
        if Some(&object) != except && machine_of(caches, &object) == Some(machine) {
            caches.notify(object, ChangeCause::Claim);
        }
    }
}

/// Notes that an object or its Machine has come, changed or gone. Others may take over the claims of one of which nothing is
/// left.
pub(super) fn note_object(caches: &Caches, key: &ObjectKey) {
    note_standing(caches, key);
    if !exists(caches, key) {
        for machine in caches.claims.held_by(key) {
            notify_objects(caches, machine, Some(key));
        }
    }
}

/// Notes the standing of an object among those of its machine, and notifies those to which a change of it matters. While
/// another object holds the claim, those that wait can do nothing; when it is released, all are notified.
pub(super) fn note_standing(caches: &Caches, key: &ObjectKey) {
    for Affected { machine, waiting, lent } in caches.claims.note_standing(key, || standing(caches, key)) {
        let holder = holder(caches, machine);
        let can_act = |object: &ObjectKey| holder.as_ref().is_none_or(|holder| holder == object);
        for object in lent.into_iter().chain(waiting.into_iter().filter(can_act)) {
            caches.notify(object, ChangeCause::Claim);
        }
    }
}

/// Notes that all objects of a provider's kind are gone.
pub(super) fn note_kind_gone(caches: &Caches, kind: &ProviderKind) {
    let uses = |object: &ObjectFacts| object.spec.as_ref().is_ok_and(|spec| spec.infrastructure == *kind);
    for key in caches.objects.select(|key, object| uses(object).then(|| key.clone())) {
        note_standing(caches, &key);
    }
}

fn standing(caches: &Caches, key: &ObjectKey) -> Option<Standing> {
    let (machine, turn) =
        caches.objects.read(key, |object| Some((identity(object)?, turn(object)))).flatten()?;
    Some(Standing { machine, turn, has_machine: has_machine(caches, key) })
}

/// The place of an object in the order of those that wait for its machine, if its status says that it waits.
pub(crate) fn turn(object: &ObjectFacts) -> Option<Turn> {
    let spec = object.spec.as_ref().ok().filter(|_| object.record.waits_for_machine)?;
    Some(Turn { priority: spec.priority, created_at: object.view.created_at })
}

/// The object that holds the claim on a machine, unless it has left it behind.
fn holder(caches: &Caches, machine: MachineIdentity) -> Option<ObjectKey> {
    let holder = caches.claims.get(machine)?.view.holder;
    holder.filter(|holder| exists(caches, holder))
}

/// True unless the caches show that neither the object nor its Machine exists.
pub(crate) fn exists(caches: &Caches, holder: &ObjectKey) -> bool {
    let is_watched = caches
        .scopes
        .iter()
        .any(|scope| scope.as_ref().is_none_or(|namespace| **namespace == *holder.namespace));
    !is_watched
        || !caches.objects.is_known_absent(holder)
        || !caches.machines.is_known_absent(&machine_key(holder))
}

/// The machine of an object.
pub(crate) fn machine_of(caches: &Caches, key: &ObjectKey) -> Option<MachineIdentity> {
    caches.objects.read(key, identity).flatten()
}

fn identity(object: &ObjectFacts) -> Option<MachineIdentity> {
    object.spec.as_ref().ok().and_then(|spec| spec.identity)
}

/// True if the Machine or the infrastructure object of an object exists, as far as the caches show it.
pub(crate) fn has_machine(caches: &Caches, key: &ObjectKey) -> bool {
    if caches.machines.has(&machine_key(key)) {
        return true;
    }
    let Some(kind) =
        caches.objects.read(key, |object| object.spec.as_ref().ok().map(|spec| spec.infrastructure.clone()))
    else {
        return false;
    };
    let infrastructure = key.beside(names::infrastructure(&key.name));
    let providers = lock(&caches.providers);
    kind.and_then(|kind| providers.get(&kind)).is_some_and(|watched| watched.store.has(&infrastructure))
}
