//! Answers of reads and writes go into the stores, so that no decision is made on a state before our own last write.

use crate::cache::caches::Caches;
use crate::cache::change_cause::ChangeCause;
use crate::cache::project::{self, ObjectFacts};
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
        caches.notify(key, ChangeCause::Object);
        return None;
    }
    // Otherwise the watch event of our own write, if it comes before the answer, would count as someone else's change.
    caches.memories.update(&key, |memory| memory.note_seen(&facts.view, facts.force_reconcile.as_deref()));
    caches.objects.put(key.clone(), &version, facts.clone());
    caches.index_nodes(&key);
    Some(facts)
}

/// Stores a Machine.
pub(crate) fn put_machine(caches: &Caches, object: &DynamicObject) {
    let version = object.resource_version().unwrap_or_default();
    caches.machines.put(ObjectKey::of(object), &version, project::machine(object));
}

/// Stores an object of a provider.
pub(crate) fn put_provider(caches: &Arc<Caches>, kind: &ProviderKind, object: &DynamicObject) {
    let version = object.resource_version().unwrap_or_default();
    watches::provider(caches, kind).put(ObjectKey::of(object), &version, project::provider(object));
}
