//! The objects, in memory: ordered, versioned, with enough history for watches and reads of earlier states.
//!
//! One counter numbers all changes, like etcd's revision. The store has no knowledge of kinds, rules or time.

mod history;
mod key;
mod owners;

pub(crate) use history::{Change, ChangeKind, TooOld};
pub(crate) use key::Key;
pub(crate) use owners::Place;

use history::History;
use owners::OwnerIndex;

use crate::kinds::StoreId;
use crate::object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The objects of one resource, in list order.
pub(crate) type Objects = BTreeMap<Key, Arc<Value>>;

/// All objects of all resources.
#[derive(Debug)]
pub(crate) struct Store {
    resources: BTreeMap<StoreId, StoredResource>,
    owners: OwnerIndex,
    /// Changes whose side effects have not been applied yet.
    touched: Vec<Touched>,
    /// The resources whose watches must be notified.
    changed: BTreeSet<StoreId>,
    revision: u64,
    history_limit: usize,
}

/// An object that was written or removed.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pub place: Place,
    pub uid: String,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
    pub removed: bool,
}

impl Touched {
    fn new(place: Place, value: &Value, removed: bool) -> Self {
        let owners = object::owner_references(value).iter().filter_map(|owner| owner["uid"].as_str());
        Self {
            place,
            uid: object::uid(value).to_owned(),
            owners: owners.map(str::to_owned).collect(),
            removed,
        }
    }
}

/// The objects of one resource and their history.
#[derive(Debug)]
struct StoredResource {
    objects: Objects,
    history: History,
}

impl Store {
    /// Creates an empty store that keeps `history_limit` changes per resource.
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            resources: BTreeMap::new(),
            owners: OwnerIndex::default(),
            touched: Vec::new(),
            changed: BTreeSet::new(),
            revision: 1,
            history_limit,
        }
    }

    /// The revision of the latest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, store: &StoreId, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.resources.get(store)?.objects.get(&Key::new(namespace, name))
    }

    /// The object with a key.
    pub(crate) fn at(&self, place: &Place) -> Option<&Arc<Value>> {
        self.resources.get(&place.store)?.objects.get(&place.key)
    }

    /// All objects of a resource, or those of one namespace.
    pub(crate) fn list(&self, store: &StoreId, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let Some(kept) = self.resources.get(store) else {
            return Vec::new();
        };
        in_namespace(&kept.objects, namespace, None).cloned().collect()
    }

    /// The objects of a resource as of `revision`, starting after the key `after`.
    pub(crate) fn list_at(
        &self,
        store: &StoreId,
        namespace: Option<&str>,
        revision: u64,
        after: Option<&Key>,
    ) -> Result<Vec<Arc<Value>>, TooOld> {
        let Some(kept) = self.resources.get(store) else {
            return Ok(Vec::new());
        };
        let past = kept.history.rewind(&kept.objects, revision)?;
        Ok(in_namespace(&past, namespace, after).cloned().collect())
    }

    /// Stores an object with a new revision, which becomes its `resourceVersion`, and returns the stored
    /// object.
    pub(crate) fn put(&mut self, store: &StoreId, mut value: Value) -> Arc<Value> {
        self.revision += 1;
        object::set_meta(&mut value, "resourceVersion", self.revision.to_string());
        let key = Key::of(&value);
        let entry = Arc::new(value);
        let revision = self.revision;
        let place = Place { store: store.clone(), key: key.clone() };
        self.owners.update(
            &place,
            self.get(store, &key.namespace, &key.name).cloned().as_deref(),
            Some(&entry),
        );
        self.touched.push(Touched::new(place, &entry, false));
        self.mark_changed(store);
        let kept = self.resource_mut(store);
        let previous = kept.objects.insert(key, entry.clone());
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        kept.history.push(Change { revision, kind, object: entry.clone(), previous });
        entry
    }

    /// Removes an object. The returned object, which watches get too, has the revision of the removal.
    pub(crate) fn remove(&mut self, store: &StoreId, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let next = self.revision + 1;
        let kept = self.resources.get_mut(store)?;
        let previous = kept.objects.remove(&Key::new(namespace, name))?;
        let mut last = (*previous).clone();
        object::set_meta(&mut last, "resourceVersion", next.to_string());
        let object = Arc::new(last);
        let change = Change {
            revision: next,
            kind: ChangeKind::Deleted,
            object: object.clone(),
            previous: Some(previous),
        };
        kept.history.push(change);
        self.revision = next;
        let place = Place { store: store.clone(), key: Key::new(namespace, name) };
        self.owners.update(&place, Some(&object), None);
        self.touched.push(Touched::new(place, &object, true));
        self.mark_changed(store);
        Some(object)
    }

    /// Takes the changes since the last call, in order.
    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.touched)
    }

    /// Notifies the watches of a resource although none of its objects has changed.
    pub(crate) fn mark_changed(&mut self, store: &StoreId) {
        if !self.changed.contains(store) {
            self.changed.insert(store.clone());
        }
    }

    /// Takes the resources that have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<StoreId> {
        std::mem::take(&mut self.changed)
    }

    /// The location of the object with this UID.
    pub(crate) fn find_uid(&self, uid: &str) -> Option<&Arc<Value>> {
        let place = self.owners.place_of(uid)?;
        self.at(place)
    }

    /// The objects that have this UID among their owners, in a fixed order.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.owners.dependents(uid)
    }

    /// The number of objects of a resource.
    pub(crate) fn count(&self, store: &StoreId) -> usize {
        self.resources.get(store).map_or(0, |kept| kept.objects.len())
    }

    /// The changes of a resource after `revision`, oldest first.
    pub(crate) fn changes_since(&self, store: &StoreId, revision: u64) -> Result<Vec<Change>, TooOld> {
        self.resources.get(store).map_or(Ok(Vec::new()), |kept| kept.history.since(revision))
    }

    /// Discards the history of all resources up to now, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        for kept in self.resources.values_mut() {
            kept.history.forget();
        }
    }

    fn resource_mut(&mut self, store: &StoreId) -> &mut StoredResource {
        let limit = self.history_limit;
        self.resources
            .entry(store.clone())
            .or_insert_with(|| StoredResource { objects: Objects::new(), history: History::new(limit) })
    }
}

fn in_namespace<'a>(
    objects: &'a Objects,
    namespace: Option<&'a str>,
    after: Option<&Key>,
) -> impl Iterator<Item = &'a Arc<Value>> {
    // Keys are sorted by namespace first, so a namespace is a contiguous range.
    let first = namespace.map(|name| Key::new(name, ""));
    let start = match (&first, after) {
        (Some(first), after) if after.is_none_or(|after| after < first) => Bound::Included(first),
        (_, Some(after)) => Bound::Excluded(after),
        (_, None) => Bound::Unbounded,
    };
    objects
        .range::<Key, _>((start, Bound::Unbounded))
        .take_while(move |(key, _)| namespace.is_none_or(|name| key.namespace == name))
        .map(|(_, object)| object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, value: i32) -> Value {
        json!({"metadata": {"namespace": "a", "name": name}, "value": value})
    }

    fn names(objects: &[Arc<Value>]) -> Vec<String> {
        objects.iter().map(|one| format!("{}={}", object::name(one), one["value"])).collect()
    }

    #[test]
    fn earlier_states_can_be_read_until_compaction() {
        let store_id = StoreId::new("", "things");
        let mut store = Store::new(100);
        store.put(&store_id, object("one", 1));
        let early = store.revision();
        store.put(&store_id, object("one", 2));
        store.put(&store_id, object("two", 1));
        store.remove(&store_id, "a", "one");
        assert_eq!(names(&store.list(&store_id, Some("a"))), ["two=1"]);
        assert_eq!(names(&store.list_at(&store_id, None, early, None).expect("remembered")), ["one=1"]);
        store.compact();
        assert!(store.list_at(&store_id, None, early, None).is_err());
    }

    #[test]
    fn a_namespace_is_listed_without_its_neighbours() {
        let store_id = StoreId::new("", "things");
        let mut store = Store::new(10);
        for namespace in ["a", "ab", "b"] {
            store.put(&store_id, json!({"metadata": {"namespace": namespace, "name": "x"}, "value": 0}));
        }
        assert_eq!(store.list(&store_id, Some("a")).len(), 1);
        assert_eq!(store.list(&store_id, None).len(), 3);
        let after = |namespace: &str| {
            let rest = store.list_at(&store_id, None, store.revision(), Some(&Key::new(namespace, "x")));
            rest.expect("the present").len()
        };
        assert_eq!(["a", "ab", "b"].map(after), [2, 1, 0]);
    }
}
