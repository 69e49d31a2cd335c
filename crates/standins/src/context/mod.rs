//! The access of an actor to the clusters: watches, a cache filled by them, and writes.
//!
//! The cache also learns from the answers to the actor's own writes, so that it never decides on less than it did
//! itself. It is ordered, and the watches are asked in a fixed order: in which order the runtime wakes them up makes no
//! difference.

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

/// An object that is new, changed or gone.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: ObjectKey,
    /// The cached object before the change.
    pub(super) before: Option<Arc<DynamicObject>>,
    /// The object after the change; `None` if it is gone.
    pub(super) after: Option<Arc<DynamicObject>>,
}

impl Change {
    /// The object, or what it last was.
    pub(super) fn object(&self) -> Option<&DynamicObject> {
        self.after.as_deref().or(self.before.as_deref())
    }
}

/// The time after which a watch is restarted.
const WATCH_SECONDS: u32 = 24 * 60 * 60;

/// Which custom kinds an actor wants to see, by group and kind.
type Wanted = fn(&str, &str) -> bool;

/// The world of one actor.
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
    /// While a list is being read: what it had so far.
    listed: BTreeSet<ObjectKey>,
}

impl ActorContext {
    /// Sees the custom kinds that are wanted, as soon as the management cluster defines them.
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

    /// Sees a kind of the workload cluster as well.
    #[must_use]
    pub(super) fn with_workload(mut self, kind: Kind) -> Self {
        self.watch(kind, self.workload.clone());
        self
    }

    /// A client of the workload cluster, for what is read only now and then.
    pub(super) fn workload(&self) -> Client {
        self.workload.clone()
    }

    /// The record of this actor's errors.
    pub(super) fn recorder(&self) -> &ErrorRecorder {
        &self.recorder
    }

    /// The next change of anything that is watched.
    pub(super) async fn change(&mut self) -> Change {
        std::future::poll_fn(|task| self.poll_change(task)).await
    }

    /// Everything that is known, in order.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.cache.keys()
    }

    /// Returns an object from the cache.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<DynamicObject>> {
        self.cache.get(key)
    }

    /// All objects of a kind, in order; of one namespace if it is not empty.
    pub(super) fn list<'a>(
        &'a self,
        kind: &Kind,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<DynamicObject>)> + use<'a> {
        self.cache.list(kind, namespace)
    }

    /// The kind that goes by this name, if it is watched.
    pub(super) fn kind(&self, group: &str, kind: &str) -> Option<Kind> {
        self.watches.iter().map(|watch| &watch.kind).find(|one| one.is(group, kind)).cloned()
    }

    /// The first kind of a group that is watched, by name.
    pub(super) fn kind_of_group(&self, group: &str) -> Option<Kind> {
        self.watches.iter().map(|watch| &watch.kind).filter(|kind| kind.group() == group).min().cloned()
    }

    fn watch(&mut self, kind: Kind, client: Client) {
        if self.watches.iter().any(|watch| watch.kind == kind) {
            return;
        }
        // Whole days, and no bookmarks: a watch that begins anew every five minutes is most of what a quiet week costs.
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
                        // The watch waits and begins anew.
                        Err(error) => self.recorder.watch(watch.kind.kind(), error),
                    }
                }
            }
            if self.news.is_empty() {
                return Poll::Pending;
            }
        }
    }

    /// A CRD that appears is watched, one that is gone is not.
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

/// The same pause after every failed watch: `kube`'s own adds a random part, and two runs would differ.
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
