//! The cache of the objects that an actor watches.

use super::super::kinds::{Kind, ObjectKey};
use super::Change;
use kube::api::{DynamicObject, TypeMeta};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The latest known state of each object.
#[derive(Debug, Default)]
pub(super) struct ObjectCache {
    objects: BTreeMap<ObjectKey, Arc<DynamicObject>>,
}

impl ObjectCache {
    /// Adds an object, unless the cached version is as new.
    pub(super) fn learn(&mut self, kind: &Kind, mut object: DynamicObject) -> Option<Change> {
        // Items of a list may have no `apiVersion` and `kind`.
        object.types = Some(TypeMeta { api_version: kind.api_version(), kind: kind.kind().to_owned() });
        let key = kind.key_of(&object);
        let before = self.objects.get(&key).cloned();
        if before.as_ref().is_some_and(|known| version(known) >= version(&object)) {
            return None;
        }
        let after = Arc::new(object);
        self.objects.insert(key.clone(), after.clone());
        Some(Change { key, before, after: Some(after) })
    }

    /// Removes a deleted object, unless a newer one with the same name is known.
    pub(super) fn lose(&mut self, kind: &Kind, deleted: &DynamicObject) -> Option<Change> {
        let key = kind.key_of(deleted);
        let is_newer = self.objects.get(&key).is_some_and(|known| version(known) > version(deleted));
        if is_newer { None } else { self.forget(&key) }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) -> Option<Change> {
        let before = self.objects.remove(key)?;
        Some(Change { key: key.clone(), before: Some(before), after: None })
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<DynamicObject>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn list<'a>(
        &'a self,
        kind: &Kind,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<DynamicObject>)> + use<'a> {
        let first = kind.key(namespace, "");
        self.objects.range(first..).take_while({
            let (kind, namespace) = (kind.clone(), namespace.to_owned());
            move |(key, _)| key.kind == kind && (namespace.is_empty() || key.namespace == namespace)
        })
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.objects.keys().cloned().collect()
    }
}

/// Resource versions are opaque by contract, but numbers in this API server and in every real one.
fn version(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}
