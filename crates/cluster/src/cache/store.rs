//! Stores of projections: the facts that decisions need of every object of a kind.
//!
//! A store is filled by watches and by the answers to our own writes, so that no decision is made on a state before our
//! last write. Both may come late; of two versions of an object the newer stays.

use crate::cache::room::{Place, Room};
use crate::transport::error::{ReadFailure, ReadFailureKind};
use crate::transport::key::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One object of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item<V> {
    /// The version that was read.
    pub(crate) version: String,
    /// The projection of the object.
    pub(crate) view: V,
}

/// The state of a store: complete or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SyncState {
    /// The first list has not come yet.
    Syncing,
    /// It was complete once. A watch that fails later catches up by itself.
    Synced,
    /// It has never been complete, for this reason.
    Failed(ReadFailure),
}

/// The part of a store that one watch fills: a namespace, or everything.
pub(crate) type Scope = Option<String>;

/// The objects of one kind. Clones share the same store.
#[derive(Debug)]
pub(crate) struct Store<V> {
    inner: Arc<Mutex<Inner<V>>>,
}

impl<V> Clone for Store<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// One object of a store, and its place in the room of the store if that is limited.
#[derive(Debug)]
struct Entry<V> {
    item: Item<V>,
    place: Option<Place>,
}

/// Boxed, because a map has room for nearly twice as many as it holds.
type Items<V> = BTreeMap<ObjectKey, Box<Entry<V>>>;

#[derive(Debug)]
struct Inner<V> {
    items: Items<V>,
    listing: BTreeMap<Scope, Items<V>>,
    unfilled: BTreeSet<Scope>,
    failure: Option<ReadFailure>,
    /// The room for its objects; absent if that is not limited.
    room: Option<Room<V>>,
    /// The reason for which an object of the list that is being received was not stored.
    overflow: BTreeMap<Scope, String>,
    /// Single objects are read at their latest state, not only at one as new as this store.
    reads_latest: bool,
    /// The newest version of any object that was ever in this store.
    latest: Option<String>,
    /// Deleted objects and the version of their deletion: an older answer may still arrive.
    deletions: BTreeMap<ObjectKey, Deletion>,
}

/// The deletion of an object.
#[derive(Debug)]
struct Deletion {
    version: String,
    /// Its place in the room of the store if that is limited.
    _place: Option<Place>,
}

/// The most deletions that are remembered between two lists: more than that do not happen in one hour.
const MOST_DELETIONS: usize = 10_000;

/// The same for a store with limited room, whose cluster may invent any number of objects that it deletes.
const MOST_DELETIONS_WITHIN_ROOM: usize = 1_000;

impl<V: Clone + PartialEq> Store<V> {
    /// An empty store that these watches fill.
    pub(crate) fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let inner = Inner {
            items: BTreeMap::new(),
            listing: BTreeMap::new(),
            unfilled: scopes.into_iter().collect(),
            failure: None,
            room: None,
            overflow: BTreeMap::new(),
            reads_latest: false,
            latest: None,
            deletions: BTreeMap::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// The same store with limited room for its objects. An object without room is not stored, and a list with such an
    /// object fails as a whole: what it lacks must not count as gone.
    #[must_use]
    pub(crate) fn within(self, room: Option<Room<V>>) -> Self {
        self.lock().room = room;
        self
    }

    pub(crate) fn sync_state(&self) -> SyncState {
        let inner = self.lock();
        match &inner.failure {
            _ if inner.unfilled.is_empty() => SyncState::Synced,
            Some(failure) => SyncState::Failed(failure.clone()),
            None => SyncState::Syncing,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Item<V>> {
        self.lock().items.get(key).map(|entry| entry.item.clone())
    }

    pub(crate) fn view(&self, key: &ObjectKey) -> Option<V> {
        self.lock().items.get(key).map(|entry| entry.item.view.clone())
    }

    /// The part of an object that `pick` selects.
    pub(crate) fn read<R>(&self, key: &ObjectKey, pick: impl FnOnce(&V) -> R) -> Option<R> {
        self.lock().items.get(key).map(|entry| pick(&entry.item.view))
    }

    /// True if the store is complete and there is no such object.
    pub(crate) fn is_known_absent(&self, key: &ObjectKey) -> bool {
        let inner = self.lock();
        inner.unfilled.is_empty() && !inner.items.contains_key(key)
    }

    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.lock().items.contains_key(key)
    }

    /// True if this is the version of an object that is here.
    pub(crate) fn has_version(&self, key: &ObjectKey, version: &str) -> bool {
        !version.is_empty() && self.lock().items.get(key).is_some_and(|entry| entry.item.version == version)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// The minimum version of a read of this object: its own, or the newest of this store, so that a deleted object does
    /// not come back.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<String> {
        let inner = self.lock();
        if inner.reads_latest {
            return None;
        }
        inner.items.get(key).map(|entry| entry.item.version.clone()).or_else(|| inner.latest.clone())
    }

    /// Makes reads of single objects ask for the latest state from now on. A read that is only as new as this store may
    /// be older than the last write of another leader.
    pub(crate) fn read_latest(&self) {
        self.lock().reads_latest = true;
    }

    /// The newest version of any object of this store.
    pub(crate) fn latest(&self) -> Option<String> {
        self.lock().latest.clone()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.lock().items.keys().cloned().collect()
    }

    /// The results of `pick`, in the order of keys.
    pub(crate) fn select<R>(&self, mut pick: impl FnMut(&ObjectKey, &V) -> Option<R>) -> Vec<R> {
        self.lock().items.iter().filter_map(|(key, entry)| pick(key, &entry.item.view)).collect()
    }

    /// Stores a version of an object. True if the projection has changed.
    pub(crate) fn put(&self, key: ObjectKey, version: &str, view: V) -> bool {
        let mut inner = self.lock();
        if let Some(known) = inner.items.get(&key)
            && is_older(version, &known.item.version)
        {
            return false;
        }
        // The answer to a DELETE carries the version of the deletion itself.
        if inner.deletions.get(&key).is_some_and(|deletion| !is_older(&deletion.version, version)) {
            return false;
        }
        let Ok(entry) = inner.entry(&key, version, view) else { return false };
        inner.deletions.remove(&key);
        let changed = inner.items.get(&key).is_none_or(|known| known.item.view != entry.item.view);
        inner.note_version(version);
        inner.items.insert(key, entry);
        changed
    }

    /// The reason for which there is no room for an object, if there is none.
    pub(crate) fn no_room_for(&self, key: &ObjectKey, view: &V) -> Option<String> {
        self.lock().make_place(key, view).err()
    }

    /// Notes the version of an event.
    pub(crate) fn note_version(&self, version: &str) {
        self.lock().note_version(version);
    }

    /// Removes an object that a watch reports as deleted. True if it was there. The answer to the request that deleted it
    /// may come later, and must not bring it back.
    pub(crate) fn deleted(&self, key: &ObjectKey, version: &str) -> bool {
        let mut inner = self.lock();
        inner.note_version(version);
        let was_there = inner.items.remove(key).is_some();
        inner.note_deletion(key, version);
        was_there
    }

    /// Removes an object that the API server has reported as gone. Its watch may lag, and still report older events.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        let mut inner = self.lock();
        if let (Some(_), Some(latest)) = (inner.items.remove(key), inner.latest.clone()) {
            inner.note_deletion(key, &latest);
        }
    }

    /// Notes that an object exists that was reported as gone: the next version of it that is read or watched counts.
    pub(crate) fn note_existence(&self, key: &ObjectKey) {
        self.lock().deletions.remove(key);
    }

    /// Begins a list.
    pub(crate) fn begin(&self, scope: &Scope) {
        let mut inner = self.lock();
        inner.listing.insert(scope.clone(), BTreeMap::new());
        inner.overflow.remove(scope);
    }

    /// Adds an object to the list.
    pub(crate) fn listed(&self, scope: &Scope, key: ObjectKey, version: &str, view: V) {
        let mut inner = self.lock();
        match inner.entry(&key, version, view) {
            Ok(entry) => {
                inner.listing.entry(scope.clone()).or_default().insert(key, entry);
            }
            Err(reason) => {
                inner.overflow.insert(scope.clone(), reason);
            }
        }
    }

    /// Adds an object to the list; a newer version that is known already is kept.
    pub(crate) fn listed_afresh(&self, scope: &Scope, key: ObjectKey, version: &str, view: V) {
        let known = self.get(&key).filter(|known| is_older(version, &known.version));
        match known {
            Some(known) => self.listed(scope, key, &known.version, known.view),
            None => self.listed(scope, key, version, view),
        }
    }

    /// Completes the list: objects that it lacks are gone. Returns the objects that have changed, and whether the sync state
    /// of the store has changed by that.
    pub(crate) fn complete(&self, scope: &Scope) -> (Vec<ObjectKey>, bool) {
        let mut inner = self.lock();
        let listed = inner.listing.remove(scope).unwrap_or_default();
        if let Some(message) = inner.overflow.remove(scope) {
            let is_new = inner.fail(ReadFailure { kind: ReadFailureKind::Unreachable, message });
            return (Vec::new(), is_new);
        }
        inner.deletions.clear();
        let in_scope = |key: &ObjectKey| scope.as_ref().is_none_or(|namespace| *key.namespace == **namespace);
        let mut changed: Vec<ObjectKey> =
            inner.items.keys().filter(|key| in_scope(key) && !listed.contains_key(*key)).cloned().collect();
        for key in &changed {
            inner.items.remove(key);
        }
        for (key, entry) in listed {
            inner.note_version(&entry.item.version);
            if inner.items.get(&key).is_none_or(|known| known.item.view != entry.item.view) {
                changed.push(key.clone());
            }
            inner.items.insert(key, entry);
        }
        changed.sort();
        let was_unfilled = inner.unfilled.remove(scope) || inner.failure.is_some();
        inner.failure = None;
        (changed, was_unfilled && inner.unfilled.is_empty())
    }

    /// Marks a store as complete that no watch fills: single reads do.
    pub(crate) fn mark_synced(&self) {
        let mut inner = self.lock();
        inner.unfilled.clear();
        inner.failure = None;
    }

    /// Notes that the watch has failed. True if the failure is new and the first list has not come yet.
    pub(crate) fn fail(&self, failure: ReadFailure) -> bool {
        self.lock().fail(failure)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<V>> {
        // A panic can leave at worst one item missing, which the next list brings back.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Inner<V> {
    fn fail(&mut self, failure: ReadFailure) -> bool {
        let is_new = !self.unfilled.is_empty() && self.failure.as_ref() != Some(&failure);
        self.failure = Some(failure);
        is_new
    }

    fn entry(&mut self, key: &ObjectKey, version: &str, view: V) -> Result<Box<Entry<V>>, String> {
        let place = self.make_place(key, &view)?;
        Ok(Box::new(Entry { item: Item { version: version.to_owned(), view }, place }))
    }

    /// The place for an object, to which deleted ones give way. The error is a message for people.
    fn make_place(&mut self, key: &ObjectKey, view: &V) -> Result<Option<Place>, String> {
        let place = self.place(key, view);
        if place.is_ok() || self.deletions.is_empty() {
            return place;
        }
        self.deletions.clear();
        self.place(key, view)
    }

    /// The place for an object, which may be the one that it has.
    fn place(&self, key: &ObjectKey, view: &V) -> Result<Option<Place>, String> {
        let Some(room) = &self.room else { return Ok(None) };
        let before = self.items.get(key).and_then(|entry| entry.place.as_ref());
        room.place(view, before).map(Some)
    }

    fn note_deletion(&mut self, key: &ObjectKey, version: &str) {
        if version.parse::<u64>().is_err() {
            return;
        }
        let most = if self.room.is_some() { MOST_DELETIONS_WITHIN_ROOM } else { MOST_DELETIONS };
        if self.deletions.len() >= most {
            self.deletions.clear();
        }
        let place = match &self.room {
            None => None,
            Some(room) => match room.place_of_name(key) {
                None => return,
                place => place,
            },
        };
        self.deletions.insert(key.clone(), Deletion { version: version.to_owned(), _place: place });
    }

    fn note_version(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        if self.latest.as_deref().is_none_or(|latest| is_older(latest, version)) {
            self.latest = Some(version.to_owned());
        }
    }
}

/// Versions grow during the life of a server. A version that is no number is taken to be newer.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::room::Footprint;
    use crate::transport::http::Budget;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    fn filled() -> Store<&'static str> {
        let store = Store::new([None]);
        store.begin(&None);
        store.listed(&None, key("one"), "5", "first");
        assert_eq!(store.sync_state(), SyncState::Syncing);
        assert_eq!(store.complete(&None), (vec![key("one")], true));
        store
    }

    #[test]
    fn a_list_becomes_visible_as_a_whole() {
        let store = filled();
        assert_eq!(store.sync_state(), SyncState::Synced);
        store.begin(&None);
        store.listed(&None, key("two"), "7", "second");
        assert_eq!(
            store.view(&key("one")),
            Some("first"),
            "the old list counts until the new one is complete"
        );
        assert_eq!(store.complete(&None), (vec![key("one"), key("two")], false));
        assert_eq!(store.keys(), [key("two")]);
    }

    #[test]
    fn the_same_view_and_older_versions_are_no_change() {
        let store = filled();
        assert!(!store.put(key("one"), "6", "first"));
        assert!(!store.put(key("one"), "5", "an echo from before"));
        assert_eq!(store.get(&key("one")), Some(Item { version: "6".into(), view: "first" }));
        assert!(store.put(key("one"), "10", "second"), "versions are numbers, not words");
    }

    #[test]
    fn what_is_gone_does_not_come_back_when_its_watch_is_late() {
        let store = filled();
        store.note_version("9");
        store.remove(&key("one"));
        assert!(!store.put(key("one"), "8", "in its last days"));
        assert_eq!(store.view(&key("one")), None);
        assert!(store.put(key("two"), "8", "another that is late"));
        assert!(!store.deleted(&key("one"), "9"), "its watch reports the deletion later");
        assert!(store.put(key("one"), "10", "another life"));
    }

    #[test]
    fn an_object_that_still_exists_returns_in_its_version() {
        let store = filled();
        store.remove(&key("one"));
        assert!(!store.put(key("one"), "5", "first"));
        store.note_existence(&key("one"));
        assert!(store.put(key("one"), "5", "first"));
    }

    #[test]
    fn a_late_answer_to_a_delete_brings_nothing_back() {
        let store = filled();
        assert!(store.deleted(&key("one"), "8"));
        assert!(!store.put(key("one"), "7", "terminating"));
        assert!(!store.put(key("one"), "8", "its last state, as the answer shows it"));
        assert_eq!(store.keys(), []);
        assert!(store.put(key("one"), "9", "another life"));
    }

    #[test]
    fn a_list_that_begins_a_watch_afresh_may_lag_behind() {
        let store = filled();
        store.begin(&None);
        store.listed_afresh(&None, key("one"), "4", "an echo from before");
        store.listed_afresh(&None, key("two"), "3", "missed");
        assert_eq!(store.complete(&None), (vec![key("two")], false), "what was missed is found");
        assert_eq!(store.view(&key("one")), Some("first"));
    }

    #[test]
    fn a_list_of_one_namespace_leaves_the_others_alone() {
        let scope = |name: &str| Some(name.to_owned());
        let store = Store::new([scope("a"), scope("b")]);
        store.begin(&scope("a"));
        store.listed(&scope("a"), key("one"), "1", "first");
        assert_eq!(store.complete(&scope("a")), (vec![key("one")], false));
        assert_eq!(store.sync_state(), SyncState::Syncing);
        store.begin(&scope("b"));
        assert_eq!(store.complete(&scope("b")), (vec![], true));
        assert_eq!(store.keys(), [key("one")]);
    }

    #[test]
    fn a_failure_counts_until_the_first_list_and_is_logged_once() {
        let failure = ReadFailure { kind: ReadFailureKind::Forbidden, message: "no".into() };
        let store: Store<()> = Store::new([None]);
        assert!(store.fail(failure.clone()));
        assert!(!store.fail(failure.clone()));
        assert_eq!(store.sync_state(), SyncState::Failed(failure.clone()));
        store.begin(&None);
        assert_eq!(store.complete(&None), (vec![], true));
        assert!(!store.fail(failure));
        assert_eq!(store.sync_state(), SyncState::Synced);
    }

    /// The facts about an object that take so many bytes.
    #[derive(Clone, Debug, PartialEq)]
    struct Sized(usize);

    impl Footprint for Sized {
        fn heap_bytes(&self) -> usize {
            self.0
        }
    }

    fn within(budget: &Budget) -> Store<Sized> {
        Store::new([None]).within(Some(Room::new(budget)))
    }

    fn fill(store: &Store<Sized>, version: &str, names: &[&str], bytes: usize) -> (Vec<ObjectKey>, bool) {
        store.begin(&None);
        for name in names {
            store.listed(&None, key(name), version, Sized(bytes));
        }
        store.complete(&None)
    }

    #[test]
    fn stores_of_one_cluster_share_its_room() {
        let budget = Budget::new(10_000);
        let (nodes, pods) = (within(&budget), within(&budget));
        assert_eq!(fill(&nodes, "1", &["a", "b"], 3000), (vec![key("a"), key("b")], true));
        assert_eq!(fill(&pods, "1", &["a"], 4000), (Vec::new(), true), "there is no room for it");
        let SyncState::Failed(failure) = pods.sync_state() else { panic!("it is not complete") };
        assert!(failure.message.contains("more memory"), "{}", failure.message);
        assert!(nodes.deleted(&key("a"), "2"));
        assert_eq!(fill(&pods, "3", &["a"], 4000), (vec![key("a")], true), "when others have gone");
        drop(pods);
        assert!(nodes.put(key("c"), "4", Sized(4000)), "and when their store has");
    }

    #[test]
    fn what_there_is_no_room_for_does_not_count_as_gone() {
        let store = within(&Budget::new(10_000));
        fill(&store, "1", &["a", "b"], 3000);
        assert_eq!(fill(&store, "2", &["a", "b"], 3000), (Vec::new(), false), "the same takes no more room");
        assert!(!store.put(key("c"), "3", Sized(6000)));
        assert!(store.no_room_for(&key("c"), &Sized(6000)).is_some());
        assert_eq!(fill(&store, "4", &["b", "c", "d"], 3000), (Vec::new(), false));
        assert_eq!(store.keys(), [key("a"), key("b")], "a list that was cut short shows nothing");
        assert_eq!(store.sync_state(), SyncState::Synced);
        assert!(store.put(key("a"), "5", Sized(2000)), "a change that needs no more room is stored");
        assert_eq!(fill(&store, "6", &["b", "c"], 3000).0, [key("a"), key("c")], "as soon as there is room");
    }

    #[test]
    fn clusters_of_one_namespace_share_its_room() {
        let namespace = Budget::new(10_000);
        let [one, other] = [(); 2].map(|()| within(&Budget::new(8000).within(&namespace)));
        fill(&one, "1", &["a"], 6000);
        fill(&other, "1", &["a"], 6000);
        let SyncState::Failed(failure) = other.sync_state() else { panic!("it is not complete") };
        assert!(failure.message.contains("all workload clusters of the namespace"), "{}", failure.message);
        drop(one);
        fill(&other, "2", &["a"], 6000);
        assert_eq!(other.sync_state(), SyncState::Synced);
    }

    #[test]
    fn deleted_objects_take_room_too_and_give_way_to_others() {
        let store = within(&Budget::new(10_000));
        fill(&store, "1", &["a"], 3000);
        for number in 0..10_000 {
            assert!(!store.deleted(&key(&format!("invented-{number}")), "2"));
        }
        let remembered = store.lock().deletions.len();
        assert!((1..10_000 / 256).contains(&remembered), "{remembered} names");
        assert_eq!(store.no_room_for(&key("b"), &Sized(6000)), None);
        assert!(store.put(key("b"), "3", Sized(6000)), "an object that exists comes first");
        assert_eq!(store.keys(), [key("a"), key("b")]);
    }

    #[test]
    fn the_deletions_of_a_hostile_cluster_are_few() {
        let store = within(&Budget::new(usize::MAX));
        for number in 0..2 * MOST_DELETIONS {
            store.deleted(&key(&format!("invented-{number}")), "2");
        }
        assert!(store.lock().deletions.len() <= MOST_DELETIONS_WITHIN_ROOM);
    }
}
