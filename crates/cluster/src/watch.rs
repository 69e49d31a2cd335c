//! Watches that fill shelves.

use crate::key::ObjectKey;
use crate::shelf::{Failure, Scope, Shelf};
use futures::{StreamExt, TryStreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector::Lookup};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// How long a watch that fails waits at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long a watch has to go well before a failure counts as the first again.
const WELL: Duration = Duration::from_mins(1);

/// What a watch has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The view of this object has changed.
    Changed(ObjectKey),
    /// Whether the shelf can be relied upon has changed.
    Condition,
}

/// Fills a shelf for as long as it is polled.
pub(crate) async fn fill<K, V>(
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
    let events = Box::pin(watcher::watcher(api, config).backoff(Pauses::default()));
    follow(events, &path, scope, shelf, project, tell).await;
}

/// Fills a shelf with what is told of the objects under a path, for as long as it is polled.
pub(crate) async fn fill_from<K, V>(
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
    follow(events, path, scope, shelf, project, tell).await;
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

async fn follow<K, V>(
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
    let mut events = std::pin::pin!(events.into_stream());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => shelf.begin(&scope),
            Ok(Event::InitApply(object)) => {
                let version = object.resource_version().unwrap_or_default();
                shelf.listed(&scope, ObjectKey::of(&object), &version, project(&object));
            }
            Ok(Event::InitDone) => {
                let (changed, filled) = shelf.complete(&scope);
                for key in changed {
                    tell(News::Changed(key));
                }
                if filled {
                    tell(News::Condition);
                }
            }
            Ok(Event::Apply(object)) => {
                let key = ObjectKey::of(&object);
                let version = object.resource_version().unwrap_or_default();
                if shelf.put(key.clone(), &version, project(&object)) {
                    tell(News::Changed(key));
                }
            }
            Ok(Event::Delete(object)) => {
                let key = ObjectKey::of(&object);
                shelf.see(&object.resource_version().unwrap_or_default());
                if shelf.remove(&key) {
                    tell(News::Changed(key));
                }
            }
            Err(error) => {
                let failure = why(&error);
                tracing::warn!(error = %failure.message, watch = path, "Watch failed, and is tried again");
                if shelf.fail(failure) {
                    tell(News::Condition);
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
            Failure { kind: crate::shelf::FailureKind::Unreachable, message: error.to_string() }
        }
    }
}
