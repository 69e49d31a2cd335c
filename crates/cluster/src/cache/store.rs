//! A cache of projections: of every object only what decisions need.
//!
//! A shelf is filled by watches and, so that we never act on a state before our own last write, by the answers to our
//! writes. Both may come late; of two versions of an object the newer stays.

use crate::transport::key::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is kept of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item<V> {
    /// The version that was read.
    pub(crate) version: String,
    /// What decisions need of it.
    pub(crate) view: V,
}

/// Whether a shelf can be relied upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The first list has not come yet.
    Filling,
    /// It was complete once; what a watch misses meanwhile it makes good for.
    Filled,
    /// It has never been complete, and this is why.
    Failing(Failure),
}

/// Why a shelf cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

/// The kinds of [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// There is no such kind of object, in any version.
    NoSuchKind,
    /// The kind is served in another version only: there may be objects, which cannot be seen in this one.
    OtherVersion,
    /// We are not allowed to look.
    Forbidden,
    /// The server does not answer as it should.
    Unreachable,
}

/// The part of a shelf that one watch fills: a namespace, or everything.
pub(crate) type Scope = Option<String>;

/// A cache. Clones are the same shelf.
#[derive(Debug)]
pub(crate) struct Shelf<V> {
    inner: Arc<Mutex<Inner<V>>>,
}

impl<V> Clone for Shelf<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// Boxed, because a map has room for nearly twice as many as it holds.
type Items<V> = BTreeMap<ObjectKey, Box<Item<V>>>;

#[derive(Debug)]
struct Inner<V> {
    items: Items<V>,
    listing: BTreeMap<Scope, Items<V>>,
    unfilled: BTreeSet<Scope>,
    failure: Option<Failure>,
    /// Reads of single objects ask for the latest state, and not for one that is only as new as what is here.
    reads_latest: bool,
    /// The newest version of anything that was ever here.
    latest: Option<String>,
    /// What is gone, and at which version: an answer from before that may still be on its way to us.
    gone: BTreeMap<ObjectKey, String>,
}

/// More than this has not gone unnoticed in one hour.
const MOST_GONE: usize = 10_000;

impl<V: Clone + PartialEq> Shelf<V> {
    /// An empty shelf that these watches fill.
    pub(crate) fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let inner = Inner {
            items: BTreeMap::new(),
            listing: BTreeMap::new(),
            unfilled: scopes.into_iter().collect(),
            failure: None,
            reads_latest: false,
            latest: None,
            gone: BTreeMap::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(crate) fn condition(&self) -> Condition {
        let inner = self.lock();
        match &inner.failure {
            _ if inner.unfilled.is_empty() => Condition::Filled,
            Some(failure) => Condition::Failing(failure.clone()),
            None => Condition::Filling,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Item<V>> {
        self.lock().items.get(key).map(|item| (**item).clone())
    }

    pub(crate) fn view(&self, key: &ObjectKey) -> Option<V> {
        self.lock().items.get(key).map(|item| item.view.clone())
    }

    /// Whether everything has been read, and there is no such object.
    pub(crate) fn is_known_to_lack(&self, key: &ObjectKey) -> bool {
        let inner = self.lock();
        inner.unfilled.is_empty() && !inner.items.contains_key(key)
    }

    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.lock().items.contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// The version of which at least an answer about this object has to be: its own, or that of the last thing that
    /// was seen here, so that what is gone does not come back.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<String> {
        let inner = self.lock();
        if inner.reads_latest {
            return None;
        }
        inner.items.get(key).map(|item| item.version.clone()).or_else(|| inner.latest.clone())
    }

    /// Lets reads of single objects ask for the latest state from now on. A read that is only as new as what is here
    /// may be older than the last write of another leader.
    pub(crate) fn read_latest(&self) {
        self.lock().reads_latest = true;
    }

    /// The version of the last thing that was seen here.
    pub(crate) fn latest(&self) -> Option<String> {
        self.lock().latest.clone()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.lock().items.keys().cloned().collect()
    }

    /// Everything that `pick` makes something of, in the order of keys.
    pub(crate) fn select<R>(&self, mut pick: impl FnMut(&ObjectKey, &V) -> Option<R>) -> Vec<R> {
        self.lock().items.iter().filter_map(|(key, item)| pick(key, &item.view)).collect()
    }

    /// Puts a version of an object on the shelf. True if that changes the view of it.
    pub(crate) fn put(&self, key: ObjectKey, version: &str, view: V) -> bool {
        let mut inner = self.lock();
        if let Some(known) = inner.items.get(&key)
            && is_older(version, &known.version)
        {
            return false;
        }
        // The answer to a DELETE carries the version of the deletion itself.
        if inner.gone.get(&key).is_some_and(|gone| !is_older(gone, version)) {
            return false;
        }
        inner.gone.remove(&key);
        let item = Box::new(Item { version: version.to_owned(), view });
        let changed = inner.items.get(&key).is_none_or(|known| known.view != item.view);
        inner.see(version);
        inner.items.insert(key, item);
        changed
    }

    /// Something happened at this version.
    pub(crate) fn see(&self, version: &str) {
        self.lock().see(version);
    }

    /// A watch tells that an object is gone, at this version. True if it was there. The answer to the request that
    /// deleted it may come later, and must not bring it back.
    pub(crate) fn deleted(&self, key: &ObjectKey, version: &str) -> bool {
        let mut inner = self.lock();
        inner.see(version);
        inner.bury(key, version);
        inner.items.remove(key).is_some()
    }

    /// The API server has said that an object is gone. Its watch may be late, and tell of its last days yet.
    pub(crate) fn remove(&self, key: &ObjectKey) {
        let mut inner = self.lock();
        if let (Some(_), Some(latest)) = (inner.items.remove(key), inner.latest.clone()) {
            inner.bury(key, &latest);
        }
    }

    /// A list begins.
    pub(crate) fn begin(&self, scope: &Scope) {
        self.lock().listing.insert(scope.clone(), BTreeMap::new());
    }

    /// The list goes on with this.
    pub(crate) fn listed(&self, scope: &Scope, key: ObjectKey, version: &str, view: V) {
        let item = Box::new(Item { version: version.to_owned(), view });
        self.lock().listing.entry(scope.clone()).or_default().insert(key, item);
    }

    /// The list goes on with this, unless a newer version is known: then with that one.
    pub(crate) fn listed_afresh(&self, scope: &Scope, key: ObjectKey, version: &str, view: V) {
        let known = self.get(&key).filter(|known| is_older(version, &known.version));
        match known {
            Some(known) => self.listed(scope, key, &known.version, known.view),
            None => self.listed(scope, key, version, view),
        }
    }

    /// The list is complete: what it does not have is gone. Returns what has changed by that, and whether the whole
    /// shelf can be relied upon only now.
    pub(crate) fn complete(&self, scope: &Scope) -> (Vec<ObjectKey>, bool) {
        let mut inner = self.lock();
        let listed = inner.listing.remove(scope).unwrap_or_default();
        inner.gone.clear();
        let in_scope = |key: &ObjectKey| scope.as_ref().is_none_or(|namespace| *key.namespace == **namespace);
        let mut changed: Vec<ObjectKey> =
            inner.items.keys().filter(|key| in_scope(key) && !listed.contains_key(*key)).cloned().collect();
        for key in &changed {
            inner.items.remove(key);
        }
        for (key, item) in listed {
            inner.see(&item.version);
            if inner.items.get(&key).is_none_or(|known| known.view != item.view) {
                changed.push(key.clone());
            }
            inner.items.insert(key, item);
        }
        changed.sort();
        let was_unfilled = inner.unfilled.remove(scope) || inner.failure.is_some();
        inner.failure = None;
        (changed, was_unfilled && inner.unfilled.is_empty())
    }

    /// The watch has failed. True if that is news to those who wait for the first list.
    pub(crate) fn fail(&self, failure: Failure) -> bool {
        let mut inner = self.lock();
        let news = !inner.unfilled.is_empty() && inner.failure.as_ref() != Some(&failure);
        inner.failure = Some(failure);
        news
    }

    fn lock(&self) -> MutexGuard<'_, Inner<V>> {
        // A panic can leave at worst one item missing, which the next list brings back.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Inner<V> {
    fn bury(&mut self, key: &ObjectKey, version: &str) {
        if version.parse::<u64>().is_err() {
            return;
        }
        if self.gone.len() >= MOST_GONE {
            self.gone.clear();
        }
        self.gone.insert(key.clone(), version.to_owned());
    }

    fn see(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        if self.latest.as_deref().is_none_or(|latest| is_older(latest, version)) {
            self.latest = Some(version.to_owned());
        }
    }
}

/// Versions grow within the life of a server. What does not look like a number is taken as it comes.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    fn filled() -> Shelf<&'static str> {
        let shelf = Shelf::new([None]);
        shelf.begin(&None);
        shelf.listed(&None, key("one"), "5", "first");
        assert_eq!(shelf.condition(), Condition::Filling);
        assert_eq!(shelf.complete(&None), (vec![key("one")], true));
        shelf
    }

    #[test]
    fn a_list_becomes_visible_as_a_whole() {
        let shelf = filled();
        assert_eq!(shelf.condition(), Condition::Filled);
        shelf.begin(&None);
        shelf.listed(&None, key("two"), "7", "second");
        assert_eq!(
            shelf.view(&key("one")),
            Some("first"),
            "the old list counts until the new one is complete"
        );
        assert_eq!(shelf.complete(&None), (vec![key("one"), key("two")], false));
        assert_eq!(shelf.keys(), [key("two")]);
    }

    #[test]
    fn the_same_view_is_no_change_and_an_older_version_is_none_either() {
        let shelf = filled();
        assert!(!shelf.put(key("one"), "6", "first"));
        assert!(!shelf.put(key("one"), "5", "an echo from before"));
        assert_eq!(shelf.get(&key("one")), Some(Item { version: "6".into(), view: "first" }));
        assert!(shelf.put(key("one"), "10", "second"), "versions are numbers, not words");
    }

    #[test]
    fn what_is_gone_does_not_come_back_when_its_watch_is_late() {
        let shelf = filled();
        shelf.see("9");
        shelf.remove(&key("one"));
        assert!(!shelf.put(key("one"), "8", "in its last days"));
        assert_eq!(shelf.view(&key("one")), None);
        assert!(shelf.put(key("two"), "8", "another that is late"));
        assert!(!shelf.deleted(&key("one"), "9"), "and then its watch tells that it is gone");
        assert!(shelf.put(key("one"), "10", "another life"));
    }

    #[test]
    fn the_answer_to_a_delete_that_its_watch_has_overtaken_brings_nothing_back() {
        let shelf = filled();
        assert!(shelf.deleted(&key("one"), "8"));
        assert!(!shelf.put(key("one"), "7", "terminating"));
        assert!(!shelf.put(key("one"), "8", "its last state, as the answer shows it"));
        assert_eq!(shelf.keys(), []);
        assert!(shelf.put(key("one"), "9", "another life"));
    }

    #[test]
    fn a_list_that_begins_a_watch_afresh_may_lag_behind() {
        let shelf = filled();
        shelf.begin(&None);
        shelf.listed_afresh(&None, key("one"), "4", "an echo from before");
        shelf.listed_afresh(&None, key("two"), "3", "missed");
        assert_eq!(shelf.complete(&None), (vec![key("two")], false), "what was missed is found");
        assert_eq!(shelf.view(&key("one")), Some("first"));
    }

    #[test]
    fn a_list_of_one_namespace_leaves_the_others_alone() {
        let scope = |name: &str| Some(name.to_owned());
        let shelf = Shelf::new([scope("a"), scope("b")]);
        shelf.begin(&scope("a"));
        shelf.listed(&scope("a"), key("one"), "1", "first");
        assert_eq!(shelf.complete(&scope("a")), (vec![key("one")], false));
        assert_eq!(shelf.condition(), Condition::Filling);
        shelf.begin(&scope("b"));
        assert_eq!(shelf.complete(&scope("b")), (vec![], true));
        assert_eq!(shelf.keys(), [key("one")]);
    }

    #[test]
    fn a_failure_counts_until_the_first_list_and_is_said_once() {
        let failure = Failure { kind: FailureKind::Forbidden, message: "no".into() };
        let shelf: Shelf<()> = Shelf::new([None]);
        assert!(shelf.fail(failure.clone()));
        assert!(!shelf.fail(failure.clone()));
        assert_eq!(shelf.condition(), Condition::Failing(failure.clone()));
        shelf.begin(&None);
        assert_eq!(shelf.complete(&None), (vec![], true));
        assert!(!shelf.fail(failure));
        assert_eq!(shelf.condition(), Condition::Filled);
    }
}
