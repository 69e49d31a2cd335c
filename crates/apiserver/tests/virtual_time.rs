//! Virtual time and faults: a month in seconds, and the effect of faults on a client.

use five_spot_apiserver::faults::{
    FaultPlan, FaultRule, FaultyService, InjectedFault, RequestKind, RequestOutcome, Seen, Trigger,
    WatchFault,
};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use serde_json::json;
use std::time::Duration;

fn start() -> jiff::Timestamp {
    "2026-03-02T08:00:00Z".parse().expect("a timestamp")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"value": value}}))
        .expect("a config map")
}

#[tokio::test(start_paused = true)]
async fn a_reflector_follows_a_month_of_changes() {
    let clock = Clock::starting_at(start());
    let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
    let config_maps: kube::Api<ConfigMap> = kube::Api::namespaced(api.client("default"), "default");
    let (reader, writer) = reflector::store();
    let follow = watcher(config_maps.clone(), watcher::Config::default()).default_backoff().reflect(writer);
    let following = tokio::spawn(follow.for_each(|_| async {}));
    config_maps.create(&PostParams::default(), &config_map("ticker", "0")).await.expect("created");
    for hour in 1..=720 {
        tokio::time::sleep(Duration::from_hours(1)).await;
        let patch = json!({"data": {"value": hour.to_string()}});
        config_maps.patch("ticker", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    let ticker =
        reader.find(|one| one.metadata.name.as_deref() == Some("ticker")).expect("the reflector has it");
    assert_eq!(ticker.data.as_ref().and_then(|data| data.get("value")).map(String::as_str), Some("720"));
    assert_eq!(clock.now().duration_since(start()).as_hours(), 720);
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn every_fault_shows_as_it_should() {
    let clock = Clock::starting_at(start());
    let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
    let plan = FaultPlan::new(clock.clone(), 7);
    let client = kube::Client::new(FaultyService::new(api.service(), plan.clone()), "default");
    let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client.clone());
    let on_write = |number, fault| FaultRule {
        kind: RequestKind::Write,
        path: "/configmaps".to_owned(),
        trigger: Trigger::Nth(number),
        fault,
    };
    plan.add(on_write(0, InjectedFault::DropBefore));
    plan.add(on_write(1, InjectedFault::DropAfter));
    plan.add(on_write(2, InjectedFault::Refuse(http::StatusCode::TOO_MANY_REQUESTS, Some(3))));
    plan.add(on_write(3, InjectedFault::Delay(Duration::from_secs(30))));
    let create = async |name: &str| config_maps.create(&PostParams::default(), &config_map(name, "1")).await;

    assert!(create("lost").await.is_err());
    assert!(config_maps.get_opt("lost").await.expect("an answer").is_none(), "it was never sent");
    assert!(create("applied").await.is_err());
    assert!(config_maps.get_opt("applied").await.expect("an answer").is_some(), "only the answer was lost");
    let refused = create("refused").await.expect_err("refused");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
    let before = clock.now();
    create("late").await.expect("created");
    assert_eq!(clock.now().duration_since(before).as_secs(), 30);

    config_maps
        .patch("late", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "2"}})))
        .await
        .expect("patched");
    plan.clear();
    plan.add(FaultRule {
        kind: RequestKind::Read,
        path: "/late".to_owned(),
        trigger: Trigger::Nth(0),
        fault: InjectedFault::StaleRead(1),
    });
    let value = async || config_maps.get("late").await.expect("there").data.expect("data")["value"].clone();
    assert_eq!((value().await, value().await), ("1".to_owned(), "2".to_owned()));
    plan.add(FaultRule {
        kind: RequestKind::Read,
        path: "/late".to_owned(),
        trigger: Trigger::Nth(0),
        fault: InjectedFault::StaleBeforeOwnWrite,
    });
    // Later changes by other clients are hidden too.
    api.create("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "another"}}));
    assert_eq!((value().await, value().await), ("1".to_owned(), "2".to_owned()));

    let outcomes: Vec<RequestOutcome> =
        plan.seen().into_iter().filter(Seen::is_write).map(|one| one.outcome).collect();
    assert_eq!(outcomes[0], RequestOutcome::Faulted(InjectedFault::DropBefore));
    assert_eq!(outcomes.last(), Some(&RequestOutcome::Answered(http::StatusCode::OK)));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_survives_every_fault_of_its_watch() {
    for fault in [
        WatchFault::CloseBefore(1),
        WatchFault::GoneBefore(1),
        WatchFault::DelayEvent(0, Duration::from_secs(50)),
        WatchFault::HangBefore(1),
    ] {
        let clock = Clock::starting_at(start());
        let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
        let plan = FaultPlan::new(clock.clone(), 7);
        plan.add(FaultRule {
            kind: RequestKind::Watch,
            path: String::new(),
            trigger: Trigger::Nth(0),
            fault: InjectedFault::Watch(fault),
        });
        let client = kube::Client::new(FaultyService::new(api.service(), plan.clone()), "default");
        let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
        let (reader, writer) = reflector::store();
        let follow = watcher(config_maps, watcher::Config::default().labels("kind=mine"))
            .default_backoff()
            .reflect(writer);
        let following = tokio::spawn(follow.for_each(|_| async {}));
        for name in ["a", "b", "c"] {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let labelled = json!({"metadata": {"name": name, "labels": {"kind": "mine"}}});
            api.create("/api/v1/namespaces/default/configmaps", &labelled);
        }
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(reader.len(), 3, "{fault:?}");
        let seen = plan.seen();
        let mut watches = seen.iter().filter(|one| one.kind() == RequestKind::Watch);
        let recorded: usize = watches.by_ref().map(|watch| watch.events.len()).sum();
        assert!(recorded >= 3, "only {recorded} events were recorded with {fault:?}");
        following.abort();
    }
}
