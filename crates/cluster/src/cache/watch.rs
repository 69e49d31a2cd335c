//! Watches: each fills one store for as long as it is polled.

use crate::cache::store::{Scope, Store};
use crate::transport::error::{ReadFailure, ReadFailureKind};
use crate::transport::http::Limits;
use crate::transport::key::ObjectKey;
use crate::transport::repeat::Repeats;
use crate::transport::valid_name::identifies;
use futures::{StreamExt, TryStreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, reflector::Lookup};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The pause after a failed watch: the first and the longest. With the deadline of an answer, which may have to pass first,
/// that is less than a minute: so soon after any trouble everything is at work again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// The time without failures after which the next one counts as the first again.
const WELL: Duration = Duration::from_mins(1);

/// The time after which a watch is restarted with a list of everything that
/// there is. A watch loses nothing by design; what lies between it and us may, and an idle object asks for nothing.
const AFRESH_AFTER: Duration = Duration::from_hours(1);

/// The most by which some watches do so earlier, so that not all do so at once.
const SPREAD_SECONDS: u64 = 600;

/// The objects of one page of a list. All that is kept of one is a fraction of it, but until then a page is in memory
/// as a whole, and what an allocator has once taken it seldom gives back: with `kube`'s 500 the program held 86 MB after a start
/// with a thousand objects, and 35 MB when it had seen them come one by one.
const PAGE: u32 = 50;

/// The cluster that a watch is of: its name in log lines, the warnings that were logged of it lately, and how many objects
/// of one kind are kept. Clones are the same cluster.
#[derive(Clone, Debug)]
pub(crate) struct WatchSource {
    cluster: Arc<str>,
    warnings: Arc<Repeats>,
    /// Refused evictions that were logged lately: a thousand pods that are blocked are tried again every few seconds.
    refused_evictions: Arc<Repeats>,
    most_objects: usize,
}

impl WatchSource {
    /// The management cluster, which is trusted.
    pub(crate) fn management() -> Self {
        Self {
            cluster: "management".into(),
            warnings: Arc::default(),
            refused_evictions: Arc::default(),
            most_objects: usize::MAX,
        }
    }

    /// The workload cluster that a Secret leads to, with no more objects of one kind than a list may have. The clusters of a
    /// namespace share `warnings`.
    pub(crate) fn workload(cluster: &str, warnings: Arc<Repeats>) -> Self {
        let most_objects = Limits::WORKLOAD.pages_per_list as usize * PAGE as usize;
        Self { cluster: cluster.into(), warnings, refused_evictions: Arc::default(), most_objects }
    }

    /// The same with refused evictions that the clusters of a namespace share.
    pub(crate) fn with_refused_evictions(self, refused_evictions: Arc<Repeats>) -> Self {
        Self { refused_evictions, ..self }
    }

    /// The same with fewer objects.
    pub(crate) fn with_most_objects(&self, most_objects: usize) -> Self {
        Self { most_objects: self.most_objects.min(most_objects), ..self.clone() }
    }

    /// True if an object can be kept. One that no API server would have accepted is ignored.
    fn accepts(&self, path: &str, object: &impl Resource, kept: usize) -> bool {
        if !identifies(object) {
            self.warn(path, "ignoring an object with a name or version that Kubernetes does not permit");
            return false;
        }
        if kept >= self.most_objects {
            self.warn(
                path,
                &format!("there are more than {} objects; ignoring the others", self.most_objects),
            );
            return false;
        }
        true
    }

    /// Notes a refused eviction. Returns how often it came since it was last logged, if it is to be logged now.
    pub(super) fn note_refused_eviction(&self, refusal: &str) -> Option<u64> {
        self.refused_evictions.note(&format!("{}: {refusal}", self.cluster))
    }

    /// Notes a warning about the cluster. Returns how often it came since it was last logged, if it is to be logged now.
    pub(super) fn note(&self, warning: &str) -> Option<u64> {
        self.warnings.note(&format!("{}: {warning}", self.cluster))
    }

    fn warn(&self, path: &str, error: &str) {
        if let Some(repeated) = self.note(&format!("{path}: {error}")) {
            tracing::warn!(cluster = %self.cluster, watch = path, error, repeated, "Watch failed; retrying");
        }
    }
}

/// A signal of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchSignal {
    /// The projection of this object has changed.
    Changed(ObjectKey),
    /// The sync state of the store has changed.
    SyncState,
    /// The server does not serve this kind, or no longer in this version. Sent at every attempt.
    NotServed,
    /// The watch has failed, and is opened again.
    Failed,
}

/// Fills a store from a list and a watch, for as long as it is polled.
pub(crate) async fn fill<K, V>(
    source: &WatchSource,
    api: Api<K>,
    config: watcher::Config,
    scope: Scope,
    store: &Store<V>,
    project: impl Fn(&K) -> V,
    notify: impl Fn(WatchSignal),
) where
    K: Resource + Lookup + Clone + DeserializeOwned + Debug + Send + 'static,
    V: Clone + PartialEq,
{
    let path = api.resource_url().to_owned();
    let mut beginning = Beginning::List;
    loop {
        let config = watcher::Config {
            initial_list_strategy: beginning.strategy(),
            page_size: Some(PAGE),
            ..config.clone()
        };
        let events = Box::pin(watcher::watcher(api.clone(), config).backoff(Pauses::default()));
        let following = follow(source, events, &path, &scope, store, beginning, &project, &notify);
        beginning = match timeout(lasting(&path), following).await {
            // Events that are cut off here come again with the list of the next watch.
            Err(_) => Beginning::Stream,
            Ok(()) => Beginning::List,
        };
    }
}

/// The start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// With a list, page by page, which is the truth at that moment.
    List,
    /// With what there is as its first events, which costs no request beside the watch. It may come from a server that
    /// lags behind the one before.
    Stream,
}

impl Beginning {
    const fn strategy(self) -> InitialListStrategy {
        match self {
            Self::List => InitialListStrategy::ListWatch,
            Self::Stream => InitialListStrategy::StreamingList,
        }
    }
}

/// The time after which the watch of a path is restarted: always the same for the same path.
fn lasting(path: &str) -> Duration {
    let earlier = path.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    AFRESH_AFTER.saturating_sub(Duration::from_secs(earlier % SPREAD_SECONDS))
}

/// Fills a store from a stream of events, for as long as it is polled.
pub(crate) async fn fill_from<K, V>(
    source: &WatchSource,
    events: impl futures::Stream<Item = Result<Event<K>, watcher::Error>>,
    path: &str,
    scope: Scope,
    store: &Store<V>,
    project: impl Fn(&K) -> V,
    notify: impl Fn(WatchSignal),
) where
    K: Resource + Lookup,
    V: Clone + PartialEq,
{
    let events = Box::pin(events.backoff(Pauses::default()));
    follow(source, events, path, &scope, store, Beginning::List, &project, &notify).await;
}

/// The growing pauses between attempts. There is no jitter as in kube's own: only one instance watches, and the same run
/// must show the same times.
#[derive(Debug, Default)]
struct Pauses {
    next: Option<Duration>,
    failed_at: Option<Instant>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.failed_at.is_none_or(|failed| failed.elapsed() > WELL) {
            self.next = None;
        }
        let pause = self.next.unwrap_or(PAUSE.0);
        self.next = Some((pause * 2).min(PAUSE.1));
        self.failed_at = Some(Instant::now());
        Some(pause)
    }
}

impl Backoff for Pauses {
    /// Asked for at every event, the first of a list that is then refused among them: what counts is the time since
    /// the last failure.
    fn reset(&mut self) {}
}

/// Follows a watch for as long as it lasts. One that was to begin with its first events, and failed before they were
/// complete, is not retried: a server may not know how.
#[allow(clippy::too_many_arguments)]
async fn follow<K, V>(
    source: &WatchSource,
    events: impl futures::Stream<Item = Result<Event<K>, watcher::Error>>,
    path: &str,
    scope: &Scope,
    store: &Store<V>,
    beginning: Beginning,
    project: &impl Fn(&K) -> V,
    notify: &impl Fn(WatchSignal),
) where
    K: Resource + Lookup,
    V: Clone + PartialEq,
{
    let mut has_begun = false;
    let mut listed = 0;
    let mut events = std::pin::pin!(events.into_stream());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => {
                listed = 0;
                store.begin(scope);
            }
            Ok(Event::InitApply(object)) => {
                if !source.accepts(path, &object, listed) {
                    continue;
                }
                listed += 1;
                let version = object.resource_version().unwrap_or_default();
                let (key, view) = (ObjectKey::of(&object), project(&object));
                if let Some(reason) = store.no_room_for(&key, &view) {
                    source.warn(path, &reason);
                }
                match beginning {
                    Beginning::Stream if !has_begun => store.listed_afresh(scope, key, &version, view),
                    Beginning::List | Beginning::Stream => store.listed(scope, key, &version, view),
                }
            }
            Ok(Event::InitDone) => {
                let (changed, filled) = store.complete(scope);
                has_begun = true;
                for key in changed {
                    notify(WatchSignal::Changed(key));
                }
                if filled {
                    notify(WatchSignal::SyncState);
                }
            }
            Ok(Event::Apply(object)) => {
                let key = ObjectKey::of(&object);
                let kept = if store.has(&key) { 0 } else { store.len() };
                if !source.accepts(path, &object, kept) {
                    continue;
                }
                let version = object.resource_version().unwrap_or_default();
                // The answer to our own write has brought it already.
                if store.has_version(&key, &version) {
                    continue;
                }
                let view = project(&object);
                if let Some(reason) = store.no_room_for(&key, &view) {
                    source.warn(path, &reason);
                }
                if store.put(key.clone(), &version, view) {
                    notify(WatchSignal::Changed(key));
                }
            }
            Ok(Event::Delete(object)) => {
                if !source.accepts(path, &object, 0) {
                    continue;
                }
                let key = ObjectKey::of(&object);
                if store.deleted(&key, &object.resource_version().unwrap_or_default()) {
                    notify(WatchSignal::Changed(key));
                }
            }
            Err(error) => {
                let failure = why(&error);
                if failure.kind == ReadFailureKind::NoSuchKind {
                    notify(WatchSignal::NotServed);
                }
                source.warn(path, &failure.message);
                notify(WatchSignal::Failed);
                if store.fail(failure) {
                    notify(WatchSignal::SyncState);
                }
                if beginning == Beginning::Stream && !has_begun {
                    return;
                }
            }
        }
    }
}

fn why(error: &watcher::Error) -> ReadFailure {
    match error {
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => ReadFailure::of(source),
        watcher::Error::WatchError(status) => ReadFailure::of(&kube::Error::Api(status.clone())),
        watcher::Error::NoResourceVersion => {
            ReadFailure { kind: ReadFailureKind::Unreachable, message: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::Transport;
    use five_spot_apiserver::faults::{
        FaultPlan, FaultRule, FaultyService, InjectedFault, RequestKind, Trigger, WatchFault,
    };
    use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
    use http::StatusCode;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use serde_json::json;
    use tokio::task::JoinHandle;

    struct WatchFixture {
        embedded: ApiServer,
        plan: FaultPlan,
        store: Store<String>,
        filling: JoinHandle<()>,
    }

    /// A store of config maps, filled through a transport at which one event, that of the first one made, is lost.
    fn begin() -> WatchFixture {
        let start = "2026-11-16T08:00:00Z".parse().expect("a timestamp");
        let clock = Clock::starting_at(start);
        let embedded = ApiServer::new(ApiServerConfig::new(clock.clone()));
        let plan = FaultPlan::new(clock, 1);
        let fault = InjectedFault::Watch(WatchFault::LoseEvent(0));
        plan.add(FaultRule {
            kind: RequestKind::Watch,
            path: String::new(),
            trigger: Trigger::Nth(0),
            fault,
        });
        let service = FaultyService::new(embedded.service(), plan.clone());
        let api: Api<ConfigMap> = Api::namespaced(Transport::new("test").client_over(service), "default");
        let store = Store::new([None]);
        let filled = store.clone();
        let filling = tokio::spawn(async move {
            let source = WatchSource::management();
            fill(&source, api, watcher::Config::default(), None, &filled, ResourceExt::name_any, |_| {})
                .await;
        });
        WatchFixture { embedded, plan, store, filling }
    }

    impl WatchFixture {
        async fn after(&self, minutes: u64) -> Vec<String> {
            tokio::time::sleep(Duration::from_mins(minutes)).await;
            self.store.select(|_, name| Some(name.clone()))
        }

        fn make(&self, name: &str) {
            let path = "/api/v1/namespaces/default/configmaps";
            self.embedded.create(path, &json!({"metadata": {"name": name}}));
        }

        fn lists(&self) -> usize {
            self.plan.seen().iter().filter(|one| one.kind() == RequestKind::Read).count()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_event_is_recovered_within_an_hour_without_a_list() {
        let world = begin();
        world.after(1).await;
        let before = world.store.select(|_, name| Some(name.clone()));
        world.make("lost");
        world.make("seen");
        assert_eq!(world.after(30).await, [before.clone(), vec!["seen".to_owned()]].concat());
        let all = [before, vec!["lost".to_owned(), "seen".to_owned()]].concat();
        assert_eq!(world.after(30).await, all);
        assert_eq!(world.lists(), 1, "what there is came as events of a watch");
        world.make("later");
        assert!(world.after(1).await.contains(&"later".to_owned()), "and the watch goes on");
        world.filling.abort();
    }

    fn named(name: &str) -> ConfigMap {
        at_version(name, "7")
    }

    fn at_version(name: &str, version: &str) -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": name, "namespace": "default", "resourceVersion": version}}),
        )
        .expect("a config map")
    }

    #[tokio::test(start_paused = true)]
    async fn the_event_of_a_known_version_is_not_projected() {
        let (sender, receiver) = futures::channel::mpsc::unbounded();
        let store = Store::new([None]);
        let projected = std::sync::Mutex::new(Vec::new());
        let changed = std::sync::Mutex::new(0);
        let project = |object: &ConfigMap| {
            let version = object.metadata.resource_version.clone().unwrap_or_default();
            projected.lock().expect("no panic").push(version.clone());
            version
        };
        let notify = |signal: WatchSignal| {
            *changed.lock().expect("no panic") += i32::from(matches!(signal, WatchSignal::Changed(_)));
        };
        let source = WatchSource::management();
        let mut filling =
            std::pin::pin!(fill_from(&source, receiver, "/path", None, &store, project, notify));
        let key = ObjectKey::new("default", "a");
        let mut after = async |events: Vec<Event<ConfigMap>>| {
            for event in events {
                sender.unbounded_send(Ok(event)).expect("it is open");
            }
            assert!(timeout(Duration::from_secs(1), &mut filling).await.is_err());
            let projected = std::mem::take(&mut *projected.lock().expect("no panic"));
            (projected, std::mem::take(&mut *changed.lock().expect("no panic")), store.view(&key))
        };
        let seen = |version: &str| Some(version.to_owned());
        let apply = |version: &str| Event::Apply(at_version("a", version));
        let list =
            |version: &str| vec![Event::Init, Event::InitApply(at_version("a", version)), Event::InitDone];

        assert_eq!(after(list("7")).await, (vec!["7".to_owned()], 1, seen("7")));
        assert_eq!(after(vec![apply("7")]).await, (Vec::new(), 0, seen("7")));
        store.put(ObjectKey::new("default", "a"), "8", "8".to_owned());
        assert_eq!(after(vec![apply("8")]).await, (Vec::new(), 0, seen("8")), "our own write");
        assert_eq!(after(vec![apply("9")]).await, (vec!["9".to_owned()], 1, seen("9")), "another's");
        assert_eq!(after(vec![Event::Delete(at_version("a", "10"))]).await, (Vec::new(), 1, None));
        assert_eq!(after(vec![apply("9")]).await.2, None, "a late answer does not bring it back");
        assert_eq!(after(vec![apply("11")]).await, (vec!["11".to_owned()], 1, seen("11")), "another life");
        assert_eq!(after(list("11")).await.1, 0, "listed again as it was");
        assert_eq!(after(vec![Event::Init, Event::InitDone]).await, (Vec::new(), 1, None), "gone meanwhile");
        assert_eq!(after(vec![apply("11")]).await.1, 1, "and back");
        // Versions are compared only if there are any.
        store.put(ObjectKey::new("default", "b"), "", String::new());
        assert!(!store.has_version(&ObjectKey::new("default", "b"), ""));
    }

    #[tokio::test(start_paused = true)]
    async fn impossible_names_and_excess_objects_are_ignored() {
        let listed = ["a", "../../secrets/b", "B", "c", "d"].map(|name| Ok(Event::InitApply(named(name))));
        let later = ["e/..", "f", "a"].map(|name| Ok(Event::Apply(named(name))));
        let events = [Ok(Event::Init)].into_iter().chain(listed).chain([Ok(Event::InitDone)]).chain(later);
        let store = Store::new([None]);
        let (signals, source) = (
            std::sync::Mutex::new(Vec::new()),
            WatchSource::workload("shop/demo", Arc::default()).with_most_objects(2),
        );
        let notify = |signal: WatchSignal| signals.lock().expect("no panic").push(signal);
        // It ends with an error that never comes.
        let events = futures::stream::iter(events).chain(futures::stream::pending());
        let filling = fill_from(&source, events, "/path", None, &store, ResourceExt::name_any, notify);
        assert!(timeout(Duration::from_secs(1), filling).await.is_err());
        assert_eq!(store.select(|_, name| Some(name.clone())), ["a", "c"]);
        let changed = |signal: &WatchSignal| matches!(signal, WatchSignal::Changed(_));
        assert_eq!(signals.lock().expect("no panic").iter().filter(|signal| changed(signal)).count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_watch_cannot_begin_with_what_there_is_it_is_listed() {
        let world = begin();
        world.after(1).await;
        world.make("lost");
        assert!(!world.after(1).await.contains(&"lost".to_owned()));
        let start: jiff::Timestamp = "2026-11-16T08:45:00Z".parse().expect("a timestamp");
        let during = Trigger::Between(start, start + jiff::SignedDuration::from_mins(20));
        let fault = InjectedFault::Refuse(StatusCode::UNPROCESSABLE_ENTITY, None);
        world.plan.add(FaultRule { kind: RequestKind::Watch, path: String::new(), trigger: during, fault });
        assert!(world.after(60).await.contains(&"lost".to_owned()));
        assert_eq!(world.lists(), 2);
        world.make("later");
        assert!(world.after(10).await.contains(&"later".to_owned()), "and the watch goes on");
        world.filling.abort();
    }
}
