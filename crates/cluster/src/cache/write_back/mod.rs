//! Answers of reads and writes go into the stores, so that no decision is made on a state before our own last write.

use crate::cache::caches::Caches;
use crate::cache::change_cause::ChangeCause;
use crate::cache::claim_watch;
use crate::cache::project::{self, ObjectFacts};
use crate::cache::references::owner;
use crate::cache::watches;
use crate::transport::key::ObjectKey;
use five_spot_core::ProviderKind;
use kube::ResourceExt;
use kube::api::DynamicObject;
use std::sync::Arc;

/// Stores a `ScheduledMachine`. Returns its facts, or `None` if it is gone: it has no finalizer left.
pub(crate) fn put_object(caches: &Caches, object: &DynamicObject) -> Option<ObjectFacts> {
    let facts = project::scheduled_machine(object);
    let (key, version) = (ObjectKey::of(object), object.resource_version().unwrap_or_default());
    if object.metadata.deletion_timestamp.is_some() && object.finalizers().is_empty() {
        // With the last finalizer the object itself goes, whether its watch reports it or not.
        caches.objects.note_version(&version);
        caches.objects.remove(&key);
        claim_watch::note_object(caches, &key);
        caches.notify(key, ChangeCause::Object);
        return None;
    }
    // Otherwise the watch event of our own write, if it comes before the answer, would count as someone else's change.
    caches.memories.update(&key, |memory| memory.note_seen(&facts.view, facts.force_reconcile));
    caches.objects.put(key.clone(), &version, facts.clone());
    caches.index_nodes(&key);
    claim_watch::note_object(caches, &key);
    Some(facts)
}

/// Removes a `ScheduledMachine` that the API server has reported as gone.
pub(crate) fn remove_object(caches: &Caches, key: &ObjectKey) {
    caches.objects.remove(key);
    claim_watch::note_object(caches, key);
}

/// Stores a Machine.
pub(crate) fn put_machine(caches: &Caches, object: &DynamicObject) {
    let (key, version) = (ObjectKey::of(object), object.resource_version().unwrap_or_default());
    caches.machines.put(key.clone(), &version, project::machine(object));
    note_machine(caches, &key);
}

/// Removes a Machine that the API server has reported as gone.
pub(crate) fn remove_machine(caches: &Caches, name: &ObjectKey) {
    caches.machines.remove(name);
    note_machine(caches, name);
}

fn note_machine(caches: &Caches, name: &ObjectKey) {
    if let Some(object) = owner(name) {
        claim_watch::note_object(caches, &object);
    }
}

/// Stores an object of a provider.
pub(crate) fn put_provider(caches: &Arc<Caches>, kind: &ProviderKind, object: &DynamicObject) {
    let (key, version) = (ObjectKey::of(object), object.resource_version().unwrap_or_default());
    watches::provider(caches, kind).put(key.clone(), &version, project::provider(object));
    note_provider(caches, &key);
}

/// Removes an object of a provider that the API server has reported as gone.
pub(crate) fn remove_provider(caches: &Arc<Caches>, kind: &ProviderKind, name: &ObjectKey) {
    watches::provider(caches, kind).remove(name);
    note_provider(caches, name);
}

fn note_provider(caches: &Caches, name: &ObjectKey) {
    if let Some(object) = owner(name) {
        claim_watch::note_standing(caches, &object);
    }
}

#[cfg(test)]
mod tests;
