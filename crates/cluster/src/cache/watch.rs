//! Watches that fill shelves.

use crate::cache::store::{Failure, FailureKind, Scope, Shelf};
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

/// How long a watch that fails waits at first, and at most. With the deadline of an answer, which may have to pass first,
/// that is less than a minute: so soon after any trouble everything is at work again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// How long a watch has to go well before a failure counts as the first again.
const WELL: Duration = Duration::from_mins(1);

/// How long a watch goes on from where it was, however often it is opened, before it begins afresh with everything that
/// there is. A watch loses nothing by design; what lies between it and us may, and an object at rest asks for nothing.
const AFRESH_AFTER: Duration = Duration::from_hours(1);

/// How much earlier some of them do so, that not all ask at once.
const SPREAD_SECONDS: u64 = 600;

/// How many objects a list brings at a time. All that is kept of one is a fraction of it, but until then a page is in memory
/// as a whole, and what an allocator has once taken it seldom gives back: with `kube`'s 500 the program held 86 MB after a start
/// with a thousand objects, and 35 MB when it had seen them come one by one.
const PAGE: u32 = 50;

/// The cluster that a watch is of: its name in log lines, the warnings that were logged of it lately, and how many objects
/// of one kind are kept. Clones are the same cluster.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    cluster: Arc<str>,
    warnings: Arc<Repeats>,
    most_objects: usize,
}

impl Origin {
    /// The management cluster, which is trusted.
    pub(crate) fn management() -> Self {
        Self { cluster: "management".into(), warnings: Arc::default(), most_objects: usize::MAX }
    }

    /// The workload cluster that a Secret leads to, with no more objects of one kind than a list may have.
    pub(crate) fn workload(cluster: &str) -> Self {
        let most_objects = Limits::WORKLOAD.pages_per_list as usize * PAGE as usize;
        Self { cluster: cluster.into(), warnings: Arc::default(), most_objects }
    }

    /// The same with fewer objects.
    pub(crate) fn with_most_objects(&self, most_objects: usize) -> Self {
        Self { most_objects: self.most_objects.min(most_objects), ..self.clone() }
    }

    /// Whether an object can be kept. One that is not what an API server would have accepted is left out.
    fn accepts(&self, path: &str, object: &impl Resource, kept: usize) -> bool {
        if !identifies(object) {
            self.warn(path, "an object has a name or version that Kubernetes does not permit: it is ignored");
            return false;
        }
        if kept >= self.most_objects {
            self.warn(
                path,
                &format!("there are more than {} objects: the others are ignored", self.most_objects),
            );
            return false;
        }
        true
    }

    fn warn(&self, path: &str, error: &str) {
        if let Some(repeated) = self.warnings.note(&format!("{path}: {error}")) {
            tracing::warn!(cluster = %self.cluster, watch = path, error, repeated, "Watch failed, and is tried again");
        }
    }
}

/// What a watch has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The view of this object has changed.
    Changed(ObjectKey),
    /// Whether the shelf can be relied upon has changed.
    Condition,
    /// The server does not serve this kind, or no longer in this version. Told at every attempt.
    NotServed,
}

/// Fills a shelf for as long as it is polled.
pub(crate) async fn fill<K, V>(
    origin: &Origin,
    api: Api<K>,
    config: watcher::Config,
    scope: Scope,
    shelf: &Shelf<V>,
    project: impl Fn(&K) -> V,
    tell: impl Fn(News),
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
        let following = follow(origin, events, &path, &scope, shelf, beginning, &project, &tell);
        beginning = match timeout(lasting(&path), following).await {
            // What was going on is cut off at the next await, and told again by what begins now.
            Err(_) => Beginning::Stream,
            Ok(()) => Beginning::List,
        };
    }
}

/// How a watch begins.
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

/// How long the watch of a path lasts before it begins afresh: the same for the same path.
fn lasting(path: &str) -> Duration {
    let earlier = path.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    AFRESH_AFTER.saturating_sub(Duration::from_secs(earlier % SPREAD_SECONDS))
}

/// Fills a shelf with what is told of the objects under a path, for as long as it is polled.
pub(crate) async fn fill_from<K, V>(
    origin: &Origin,
    events: impl futures::Stream<Item = Result<Event<K>, watcher::Error>>,
    path: &str,
    scope: Scope,
    shelf: &Shelf<V>,
    project: impl Fn(&K) -> V,
    tell: impl Fn(News),
) where
    K: Resource + Lookup,
    V: Clone + PartialEq,
{
    let events = Box::pin(events.backoff(Pauses::default()));
    follow(origin, events, path, &scope, shelf, Beginning::List, &project, &tell).await;
}

/// The pauses between attempts: longer and longer, without the jitter of kube's own, for there is one of us and the
/// same run must show the same times.
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

/// Follows a watch for as long as it goes on. One that was to begin with its first events, and failed before they were
/// complete, is not tried again: a server may not know how.
#[allow(clippy::too_many_arguments)]
async fn follow<K, V>(
    origin: &Origin,
    events: impl futures::Stream<Item = Result<Event<K>, watcher::Error>>,
    path: &str,
    scope: &Scope,
    shelf: &Shelf<V>,
    beginning: Beginning,
    project: &impl Fn(&K) -> V,
    tell: &impl Fn(News),
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
                shelf.begin(scope);
            }
            Ok(Event::InitApply(object)) => {
                if !origin.accepts(path, &object, listed) {
                    continue;
                }
                listed += 1;
                let version = object.resource_version().unwrap_or_default();
                let (key, view) = (ObjectKey::of(&object), project(&object));
                match beginning {
                    Beginning::Stream if !has_begun => shelf.listed_afresh(scope, key, &version, view),
                    Beginning::List | Beginning::Stream => shelf.listed(scope, key, &version, view),
                }
            }
            Ok(Event::InitDone) => {
                let (changed, filled) = shelf.complete(scope);
                has_begun = true;
                for key in changed {
                    tell(News::Changed(key));
                }
                if filled {
                    tell(News::Condition);
                }
            }
            Ok(Event::Apply(object)) => {
                let key = ObjectKey::of(&object);
                let kept = if shelf.has(&key) { 0 } else { shelf.len() };
                if !origin.accepts(path, &object, kept) {
                    continue;
                }
                let version = object.resource_version().unwrap_or_default();
                if shelf.put(key.clone(), &version, project(&object)) {
                    tell(News::Changed(key));
                }
            }
            Ok(Event::Delete(object)) => {
                if !origin.accepts(path, &object, 0) {
                    continue;
                }
                let key = ObjectKey::of(&object);
                if shelf.deleted(&key, &object.resource_version().unwrap_or_default()) {
                    tell(News::Changed(key));
                }
            }
            Err(error) => {
                let failure = why(&error);
                if failure.kind == FailureKind::NoSuchKind {
                    tell(News::NotServed);
                }
                origin.warn(path, &failure.message);
                if shelf.fail(failure) {
                    tell(News::Condition);
                }
                if beginning == Beginning::Stream && !has_begun {
                    return;
                }
            }
        }
    }
}

fn why(error: &watcher::Error) -> Failure {
    match error {
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => Failure::of(source),
        watcher::Error::WatchError(status) => Failure::of(&kube::Error::Api(status.clone())),
        watcher::Error::NoResourceVersion => {
            Failure { kind: FailureKind::Unreachable, message: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::Door;
    use five_spot_apiserver::faults::{
        Fault, FaultPlan, FaultyService, RequestKind, Rule, Trigger, WatchFault,
    };
    use five_spot_apiserver::{Api as Embedded, ApiConfig, Clock};
    use http::StatusCode;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use serde_json::json;
    use tokio::task::JoinHandle;

    struct World {
        embedded: Embedded,
        plan: FaultPlan,
        shelf: Shelf<String>,
        filling: JoinHandle<()>,
    }

    /// A shelf of config maps, filled through a door at which one event, that of the first one made, is lost.
    fn begin() -> World {
        let start = "2026-11-16T08:00:00Z".parse().expect("a timestamp");
        let clock = Clock::starting_at(start);
        let embedded = Embedded::new(ApiConfig::new(clock.clone()));
        let plan = FaultPlan::new(clock, 1);
        let fault = Fault::Watch(WatchFault::LoseEvent(0));
        plan.add(Rule { kind: RequestKind::Watch, path: String::new(), trigger: Trigger::Nth(0), fault });
        let service = FaultyService::new(embedded.service(), plan.clone());
        let api: Api<ConfigMap> = Api::namespaced(Door::new("test").client_over(service), "default");
        let shelf = Shelf::new([None]);
        let filled = shelf.clone();
        let filling = tokio::spawn(async move {
            let origin = Origin::management();
            fill(&origin, api, watcher::Config::default(), None, &filled, ResourceExt::name_any, |_| {})
                .await;
        });
        World { embedded, plan, shelf, filling }
    }

    impl World {
        async fn after(&self, minutes: u64) -> Vec<String> {
            tokio::time::sleep(Duration::from_mins(minutes)).await;
            self.shelf.select(|_, name| Some(name.clone()))
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
    async fn an_event_that_was_lost_is_made_good_for_within_the_hour_and_nothing_is_listed() {
        let world = begin();
        world.after(1).await;
        let before = world.shelf.select(|_, name| Some(name.clone()));
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
        serde_json::from_value(
            json!({"metadata": {"name": name, "namespace": "default", "resourceVersion": "7"}}),
        )
        .expect("a config map")
    }

    #[tokio::test(start_paused = true)]
    async fn objects_with_impossible_names_and_those_beyond_the_bound_are_ignored() {
        let listed = ["a", "../../secrets/b", "B", "c", "d"].map(|name| Ok(Event::InitApply(named(name))));
        let later = ["e/..", "f", "a"].map(|name| Ok(Event::Apply(named(name))));
        let events = [Ok(Event::Init)].into_iter().chain(listed).chain([Ok(Event::InitDone)]).chain(later);
        let shelf = Shelf::new([None]);
        let (told, origin) =
            (std::sync::Mutex::new(Vec::new()), Origin::workload("shop/demo").with_most_objects(2));
        let tell = |news: News| told.lock().expect("no panic").push(news);
        // It ends with an error that never comes.
        let events = futures::stream::iter(events).chain(futures::stream::pending());
        let filling = fill_from(&origin, events, "/path", None, &shelf, ResourceExt::name_any, tell);
        assert!(timeout(Duration::from_secs(1), filling).await.is_err());
        assert_eq!(shelf.select(|_, name| Some(name.clone())), ["a", "c"]);
        let changed = |news: &News| matches!(news, News::Changed(_));
        assert_eq!(told.lock().expect("no panic").iter().filter(|news| changed(news)).count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_watch_cannot_begin_with_what_there_is_it_is_listed() {
        let world = begin();
        world.after(1).await;
        world.make("lost");
        assert!(!world.after(1).await.contains(&"lost".to_owned()));
        let start: jiff::Timestamp = "2026-11-16T08:45:00Z".parse().expect("a timestamp");
        let during = Trigger::Between(start, start + jiff::SignedDuration::from_mins(20));
        let fault = Fault::Refuse(StatusCode::UNPROCESSABLE_ENTITY, None);
        world.plan.add(Rule { kind: RequestKind::Watch, path: String::new(), trigger: during, fault });
        assert!(world.after(60).await.contains(&"lost".to_owned()));
        assert_eq!(world.lists(), 2);
        world.make("later");
        assert!(world.after(10).await.contains(&"later".to_owned()), "and the watch goes on");
        world.filling.abort();
    }
}
