//! A watch of one namespace by its name, for a controller that watches chosen namespaces only.
//!
//! A list of namespaces, even one that selects a single name, takes a permission for the whole cluster. To get a namespace,
//! and to watch it by the path of its own, takes one in that namespace: a Role is enough.

use crate::transport::error::or_absent;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use http::{Request, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PartialObjectMeta;
use kube::core::WatchEvent;
use kube::runtime::watcher::{Error, Event};
use kube::{Api, Client, ResourceExt};
use std::collections::VecDeque;

/// The metadata of a namespace.
type Meta = PartialObjectMeta<Namespace>;

/// Answers hold no more than the metadata.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The path of the watch of a namespace by its name.
pub(crate) fn watch_path(name: &str) -> String {
    format!("/api/v1/watch/namespaces/{name}")
}

/// The events of a namespace, in the order of a watcher: the current state first, then the changes.
pub(crate) fn events(client: Client, name: String) -> impl Stream<Item = Result<Event<Meta>, Error>> {
    stream::unfold(WatchStep::Read, move |step| {
        let (client, name) = (client.clone(), name.clone());
        async move { Some(next(&client, &name, step).await) }
    })
}

/// The events of an open watch.
type Events = BoxStream<'static, kube::Result<WatchEvent<Meta>>>;

/// The progress of a watch.
enum WatchStep {
    /// Nothing is known, or too little.
    Read,
    /// The events of the current state that are still to be sent, and the watch that was opened before it was read.
    Emit(VecDeque<Event<Meta>>, Events),
    /// Everything up to this version is known.
    Reopen(String),
    /// A watch is open, and has brought everything up to this version.
    Open(Events, Option<String>),
}

async fn next(client: &Client, name: &str, mut step: WatchStep) -> (Result<Event<Meta>, Error>, WatchStep) {
    loop {
        step = match step {
            // The version of the namespace says when it was last changed. A server that has started since then knows no
            // events of that time, and refuses to watch from there. So the watch begins now, and the state is read after that:
            // no change falls between the two.
            WatchStep::Read => match open(client, name, None).await {
                Ok(events) => match read(client, name).await {
                    Ok(state) => WatchStep::Emit(state, events),
                    Err(error) => return (Err(Error::InitialListFailed(error)), WatchStep::Read),
                },
                Err(error) => return (Err(Error::WatchStartFailed(error)), WatchStep::Read),
            },
            WatchStep::Emit(mut rest, events) => match rest.pop_front() {
                Some(event) => return (Ok(event), WatchStep::Emit(rest, events)),
                None => WatchStep::Open(events, None),
            },
            WatchStep::Reopen(version) => match open(client, name, Some(&version)).await {
                Ok(events) => WatchStep::Open(events, Some(version)),
                Err(error) => return (Err(Error::WatchStartFailed(error)), WatchStep::Read),
            },
            WatchStep::Open(mut events, version) => match events.next().await {
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    let version = object.resource_version();
                    return (Ok(Event::Apply(object)), WatchStep::Open(events, version));
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    let version = object.resource_version();
                    return (Ok(Event::Delete(object)), WatchStep::Open(events, version));
                }
                Some(Ok(WatchEvent::Bookmark(mark))) => {
                    WatchStep::Open(events, Some(mark.metadata.resource_version))
                }
                // The version is too old, most of all: begin again.
                Some(Ok(WatchEvent::Error(status))) => {
                    return (Err(Error::WatchError(status)), WatchStep::Read);
                }
                Some(Err(error)) => {
                    return (
                        Err(Error::WatchFailed(error)),
                        version.map_or(WatchStep::Read, WatchStep::Reopen),
                    );
                }
                // The server ends every watch within the hour. Reading again also recovers events that were lost.
                None => WatchStep::Read,
            },
        };
    }
}

/// The current state, as the first events of a watcher.
async fn read(client: &Client, name: &str) -> kube::Result<VecDeque<Event<Meta>>> {
    let api: Api<Namespace> = Api::all(client.clone());
    let found = or_absent(api.get_metadata(name).await)?;
    let there = found.map(Event::InitApply);
    Ok([Event::Init].into_iter().chain(there).chain([Event::InitDone]).collect())
}

async fn open(client: &Client, name: &str, version: Option<&str>) -> kube::Result<Events> {
    let from = version.map(|version| format!("&resourceVersion={version}")).unwrap_or_default();
    let request = Request::get(format!("{}?watch=true&allowWatchBookmarks=true{from}", watch_path(name)))
        .header(header::ACCEPT, METADATA_ONLY)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    Ok(client.request_events::<Meta>(request).await?.boxed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::store::{Store, SyncState};
    use crate::cache::watch::{WatchSource, fill_from};
    use crate::transport::http::Transport;
    use five_spot_apiserver::faults::{
        FaultPlan, FaultRule, FaultyService, InjectedFault, RequestKind, Trigger, WatchFault,
    };
    use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
    use http::StatusCode;
    use kube::api::{DeleteParams, Patch, PatchParams};
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::time::Duration;

    /// The requests so far, in the words of an audit log.
    #[derive(Default)]
    struct Asked(Mutex<Vec<String>>);

    impl crate::transport::http::RequestObserver for Asked {
        fn answered(&self, exchange: &crate::transport::http::Exchange) {
            let call = &exchange.call;
            let name = call.name.as_deref().unwrap_or("*");
            self.0.lock().expect("a list").push(format!("{} {} {name}", call.verb, call.resource));
        }
    }

    fn described(event: Option<Result<Event<Meta>, Error>>) -> String {
        let text = |object: &Meta| {
            format!("{} {}", object.name_any(), object.annotations().get("a").map_or("-", String::as_str))
        };
        match event.expect("it goes on").expect("no failure") {
            Event::Init => "begins".to_owned(),
            Event::InitApply(object) => format!("has {}", text(&object)),
            Event::InitDone => "complete".to_owned(),
            Event::Apply(object) => format!("now {}", text(&object)),
            Event::Delete(object) => format!("gone {}", object.name_any()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_is_watched_and_nothing_is_listed() {
        let embedded = ApiServer::new(ApiServerConfig::new(Clock::system()));
        let asked = Arc::new(Asked::default());
        let client = Transport::new("test").with_observer(asked.clone()).client_over(embedded.service());
        let namespaces: Api<Namespace> = Api::all(Transport::new("other").client_over(embedded.service()));
        let mut events = std::pin::pin!(events(client, "shop".to_owned()));
        assert_eq!(described(events.next().await), "begins");
        assert_eq!(described(events.next().await), "complete", "there is none yet");
        for name in ["shop", "other"] {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a namespace");
            namespaces.create(&kube::api::PostParams::default(), &namespace).await.expect("it is new");
        }
        assert_eq!(described(events.next().await), "now shop -");
        for name in ["other", "shop"] {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
            namespaces.patch(name, &PatchParams::default(), &patch).await.expect("it is there");
        }
        assert_eq!(described(events.next().await), "now shop b");
        namespaces.delete("shop", &DeleteParams::default()).await.expect("it is there");
        let mut last = described(events.next().await);
        while last == "now shop b" {
            last = described(events.next().await);
        }
        assert_eq!(last, "gone shop");
        let asked = asked.0.lock().expect("a list").clone();
        assert!(
            asked.iter().all(|call| call == "get namespaces shop" || call == "watch namespaces shop"),
            "{asked:?}"
        );
    }

    /// A server that was restarted has forgotten the time at which the namespace was last changed.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_older_than_the_server_is_watched() {
        let embedded = ApiServer::new(ApiServerConfig::new(Clock::system()));
        for name in ["shop", "other"] {
            embedded.create("/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        embedded.compact();
        let client = Transport::new("test").client_over(embedded.service());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut events = std::pin::pin!(events(client, "shop".to_owned()));
        for expected in ["begins", "has shop -", "complete", "now shop -"] {
            assert_eq!(described(events.next().await), expected);
        }
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
        namespaces.patch("shop", &PatchParams::default(), &patch).await.expect("it is there");
        assert_eq!(described(events.next().await), "now shop b");
    }

    /// A namespace that does not exist, and whose watch is refused, falls silent and is refused again.
    #[tokio::test(start_paused = true)]
    async fn an_absent_namespace_is_synced_whatever_its_watch_meets() {
        let clock = Clock::starting_at("2026-11-16T08:00:00Z".parse().expect("a timestamp"));
        let embedded = ApiServer::new(ApiServerConfig::new(clock.clone()));
        let plan = FaultPlan::new(clock, 1);
        let refused = InjectedFault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None);
        for (kind, number, fault) in [
            (RequestKind::Read, 0, refused.clone()),
            (RequestKind::Watch, 0, refused.clone()),
            (RequestKind::Watch, 1, InjectedFault::Watch(WatchFault::HangBefore(0))),
            (RequestKind::Watch, 2, refused.clone()),
            (RequestKind::Read, 2, refused),
            (RequestKind::Watch, 3, InjectedFault::Watch(WatchFault::HangBefore(0))),
        ] {
            plan.add(FaultRule { kind, path: String::new(), trigger: Trigger::Nth(number), fault });
        }
        let service = FaultyService::new(embedded.service(), plan.clone());
        let client = Transport::new("test").client_over(service);
        let scope = Some("later".to_owned());
        let store = Store::new([scope.clone()]);
        let filled = store.clone();
        let filling = tokio::spawn(async move {
            let (source, events) = (WatchSource::management(), events(client, "later".to_owned()));
            fill_from(&source, events, "/path", scope, &filled, ResourceExt::name_any, |_| {}).await;
        });
        let names = || store.select(|_, name| Some(name.clone()));
        tokio::time::sleep(Duration::from_secs(10)).await;
        for minute in 0..10 {
            assert_eq!((store.sync_state(), names()), (SyncState::Synced, vec![]), "minute {minute}");
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        assert!(plan.seen().len() >= 8, "every fault was met: {:?}", plan.seen());
        embedded.create("/api/v1/namespaces", &json!({"metadata": {"name": "later"}}));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(names(), ["later"]);
        filling.abort();
    }
}
