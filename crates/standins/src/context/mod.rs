//! The access of an actor to the clusters: watches, a cache, and writes.
//!
//! The responses to the actor's own writes update the cache too, so that a decision always includes the
//! earlier ones. The cache is ordered, and the watches are polled in a fixed order: the order in which the
//! runtime wakes them makes no difference.

mod cache;
mod write;

pub(super) use write::Eviction;

use super::errors::ErrorRecorder;
use super::kinds::{Kind, ObjectKey};
use cache::ObjectCache;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An object that was created, changed or deleted.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: ObjectKey,
    /// The cached object before the change.
    pub(super) before: Option<Arc<DynamicObject>>,
    /// The object after the change; `None` if it was deleted.
    pub(super) after: Option<Arc<DynamicObject>>,
}

impl Change {
    /// The object after the change, or its last state.
    pub(super) fn object(&self) -> Option<&DynamicObject> {
        self.after.as_deref().or(self.before.as_deref())
    }
}

/// The time after which a watch is restarted.
const WATCH_SECONDS: u32 = 24 * 60 * 60;

/// The predicate for the custom kinds that an actor watches, by group and kind.
type Wanted = fn(&str, &str) -> bool;

/// The clusters as one actor sees them.
pub(super) struct ActorContext {
    management: Client,
    workload: Client,
    wanted: Wanted,
    recorder: ErrorRecorder,
    watches: Vec<Watch>,
    cache: ObjectCache,
    news: VecDeque<Change>,
}

struct Watch {
    kind: Kind,
    client: Client,
    events: BoxStream<'static, watcher::Result<Event<DynamicObject>>>,
    /// During a list: the objects received so far.
    listed: BTreeSet<ObjectKey>,
}

impl ActorContext {
    /// Watches the selected custom kinds, as soon as the management cluster has their CRDs.
    pub(super) fn new(management: Client, workload: Client, wanted: Wanted, recorder: ErrorRecorder) -> Self {
        let mut context = Self {
            management: management.clone(),
            workload,
            wanted,
            recorder,
            watches: Vec::new(),
            cache: ObjectCache::default(),
            news: VecDeque::new(),
        };
        context.watch(Kind::definition(), management);
        context
    }

    /// Watches a kind of the workload cluster too.
    #[must_use]
    pub(super) fn with_workload(mut self, kind: Kind) -> Self {
        self.watch(kind, self.workload.clone());
        self
    }

    /// A client of the workload cluster, for occasional reads.
    pub(super) fn workload(&self) -> Client {
        self.workload.clone()
    }

    /// The error log of this actor.
    pub(super) fn recorder(&self) -> &ErrorRecorder {
        &self.recorder
    }

    /// The next change of a watched object.
    pub(super) async fn change(&mut self) -> Change {
        std::future::poll_fn(|task| self.poll_change(task)).await
    }

    /// All cached objects, in order.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.cache.keys()
    }

    /// Returns an object from the cache.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<DynamicObject>> {
        self.cache.get(key)
    }

    /// All objects of a kind, in order; only those of the namespace if it is not empty.
    pub(super) fn list<'a>(
        &'a self,
        kind: &Kind,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<DynamicObject>)> + use<'a> {
        self.cache.list(kind, namespace)
    }

    /// The watched kind with this name.
    pub(super) fn kind(&self, group: &str, kind: &str) -> Option<Kind> {
        self.watches.iter().map(|watch| &watch.kind).find(|one| one.is(group, kind)).cloned()
    }

    /// The first watched kind of a group, by name.
    pub(super) fn kind_of_group(&self, group: &str) -> Option<Kind> {
        self.watches.iter().map(|watch| &watch.kind).filter(|kind| kind.group() == group).min().cloned()
    }

    fn watch(&mut self, kind: Kind, client: Client) {
        if self.watches.iter().any(|watch| watch.kind == kind) {
            return;
        }
        // A day without bookmarks: watches that restart every five minutes would be most of the cost of an
        // idle week.
        let config =
            watcher::Config { bookmarks: false, ..watcher::Config::default() }.timeout(WATCH_SECONDS);
        let events = watcher(kind.everywhere(&client), config).backoff(Steady).boxed();
        self.watches.push(Watch { kind, client, events, listed: BTreeSet::new() });
    }

    fn poll_change(&mut self, task: &mut Context<'_>) -> Poll<Change> {
        loop {
            if let Some(change) = self.news.pop_front() {
                self.follow_definition(&change);
                return Poll::Ready(change);
            }
            for watch in &mut self.watches {
                while let Poll::Ready(Some(event)) = watch.events.poll_next_unpin(task) {
                    match event {
                        Ok(event) => self.news.extend(watch.read(event, &mut self.cache)),
                        // The watch waits and restarts.
                        Err(error) => self.recorder.watch(watch.kind.kind(), error),
                    }
                }
            }
            if self.news.is_empty() {
                return Poll::Pending;
            }
        }
    }

    /// Starts watching the kind of a new CRD, and stops for a deleted one.
    fn follow_definition(&mut self, change: &Change) {
        if change.key.kind != Kind::definition() {
            return;
        }
        let Some(kind) = change.object().and_then(Kind::defined_by) else {
            return;
        };
        if !(self.wanted)(kind.group(), kind.kind()) {
            return;
        }
        if change.after.is_some() {
            self.watch(kind, self.management.clone());
        } else {
            self.watches.retain(|watch| watch.kind != kind);
        }
    }
}

impl Watch {
    fn read(&mut self, event: Event<DynamicObject>, cache: &mut ObjectCache) -> Vec<Change> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(self.kind.key_of(&object));
                cache.learn(&self.kind, object).into_iter().collect()
            }
            Event::InitDone => {
                let gone: Vec<ObjectKey> = cache
                    .list(&self.kind, "")
                    .filter(|(key, _)| !self.listed.contains(key))
                    .map(|(key, _)| key.clone())
                    .collect();
                gone.iter().filter_map(|key| cache.forget(key)).collect()
            }
            Event::Apply(object) => cache.learn(&self.kind, object).into_iter().collect(),
            Event::Delete(object) => cache.lose(&self.kind, &object).into_iter().collect(),
        }
    }
}

/// The same delay after every failed watch: that of `kube` has a random part, so runs would differ.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_secs(5))
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}
