//! Watches over time: the order in which they are woken, bookmarks, their end, and the cost of an idle one.

use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use futures::{StreamExt as _, future};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tower::Service as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn api() -> ApiServer {
    let start = "2026-03-02T08:00:00Z".parse().expect("a timestamp");
    ApiServer::new(ApiServerConfig::new(Clock::starting_at(start)))
}

/// Opens a watch, passes on each of its events, and returns the time for which it was open.
async fn watch(api: ApiServer, path: String, mut on_event: impl FnMut(Value)) -> Duration {
    let begun = Instant::now();
    let request = Request::get(path).body(Full::<bytes::Bytes>::default()).expect("a request");
    let mut body = api.service().call(request).await.expect("an answer").into_body();
    while let Some(frame) = body.frame().await {
        let line = frame.expect("a frame").into_data().expect("data");
        on_event(serde_json::from_slice(&line).expect("an event"));
    }
    begun.elapsed()
}

/// The types of a watch's events with the seconds at which they arrived, and the time of its end.
async fn timetable(api: &ApiServer, path: String) -> (Vec<(String, u64)>, u64) {
    let (begun, mut events) = (Instant::now(), Vec::new());
    let open = watch(api.clone(), path, |event| {
        events.push((event["type"].as_str().expect("a type").to_owned(), begun.elapsed().as_secs()));
    })
    .await;
    (events, open.as_secs())
}

#[tokio::test(start_paused = true)]
async fn watches_are_woken_in_the_order_of_their_opening() {
    let (api, notified) = (api(), Arc::new(Mutex::new(Vec::new())));
    // Enough that a random order would be noticed, and more than are woken in one batch.
    let names: Vec<String> = (0..100).map(|number| format!("watch-{number:03}")).collect();
    for name in &names {
        let (notified, name) = (notified.clone(), name.clone());
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", api.revision());
        tokio::spawn(watch(api.clone(), path, move |_| {
            notified.lock().expect("the list").push(name.clone());
        }));
        tokio::task::yield_now().await;
    }
    for number in 0..3 {
        api.create(CONFIG_MAPS, &json!({"metadata": {"name": format!("c{number}")}}));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(std::mem::take(&mut *notified.lock().expect("the list")), names, "write {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_shortly_before_the_end() {
    let api = api();
    let watch = |options: &str| format!("{CONFIG_MAPS}?watch=1&resourceVersion={}{options}", api.revision());
    let bookmarks = |seconds: &[u64]| -> Vec<(String, u64)> {
        seconds.iter().map(|second| ("BOOKMARK".to_owned(), *second)).collect()
    };
    let wanted = "&allowWatchBookmarks=true";
    let long = timetable(&api, watch(&format!("{wanted}&timeoutSeconds=150"))).await;
    assert_eq!(long, (bookmarks(&[60, 120, 148]), 150));
    let short = timetable(&api, watch(&format!("{wanted}&timeoutSeconds=5"))).await;
    assert_eq!(short, (bookmarks(&[3]), 5));
    let unwanted = timetable(&api, watch("&timeoutSeconds=150")).await;
    assert_eq!(unwanted, (vec![], 150));
    let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=65";
    let listed = timetable(&api, format!("{CONFIG_MAPS}?watch=1{wanted}{initial}")).await;
    // A namespace has one ConfigMap from the start.
    let first = ("ADDED".to_owned(), 0);
    assert_eq!(listed, ([vec![first], bookmarks(&[0, 60, 63])].concat(), 65));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_is_as_new_as_everything_that_happened() {
    let api = api();
    let revision = api.revision();
    let path =
        format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}&allowWatchBookmarks=1&timeoutSeconds=61");
    let versions = Arc::new(Mutex::new(Vec::new()));
    let kept = versions.clone();
    let watching = tokio::spawn(watch(api.clone(), path, move |event| {
        let version = event["object"]["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        kept.lock().expect("the list").push((event["type"].as_str().expect("a type").to_owned(), version));
    }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A change that this watch does not select.
    api.create("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}}));
    let newest = api.revision();
    assert!(newest > revision);
    watching.await.expect("the watch ends");
    assert_eq!(*versions.lock().expect("the list"), [("BOOKMARK".to_owned(), newest.to_string())]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_kind() {
    let api = api();
    let group = "example.org";
    api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({
            "metadata": {"name": format!("things.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        }),
    );
    let watching = tokio::spawn(watch(api.clone(), format!("/apis/{group}/v1/things?watch=1"), |_| {}));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}");
    let request = Request::delete(path).body(Full::<bytes::Bytes>::default()).expect("a request");
    let answer = api.service().call(request).await.expect("an answer");
    assert!(answer.status().is_success());
    assert_eq!(watching.await.expect("the watch ends"), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn ten_idle_watchers_cost_nothing_for_a_week() {
    let (api, week) = (api(), Duration::from_hours(7 * 24));
    let revision = api.revision();
    let watchers = (0..10).map(|_| {
        let config_maps: kube::Api<ConfigMap> = kube::Api::namespaced(api.client("default"), "default");
        watcher(config_maps, watcher::Config::default()).take_until(tokio::time::sleep(week)).count()
    });
    let seen = future::join_all(watchers).await;
    // Only the initial list of each: the watcher does not pass bookmarks on.
    assert_eq!(seen, vec![3; 10]);
    assert_eq!(api.revision(), revision);
}
