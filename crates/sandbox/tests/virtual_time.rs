//! Time and faults: a month in seconds, a machine's life, and what a client sees when things go wrong.

use five_spot_sandbox::actors::{
    Capi, CapiConfig, Kubelet, KubeletConfig, Provider, ProviderConfig, cluster_api_definitions, drive,
    resource,
};
use five_spot_sandbox::faults::{
    Fault, FaultPlan, FaultyService, Outcome, RequestKind, Rule, Trigger, WatchFault,
};
use five_spot_sandbox::{Api, ApiConfig, Clock};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use serde_json::{Value, json};
use std::time::Duration;

fn start() -> jiff::Timestamp {
    "2026-03-02T08:00:00Z".parse().expect("a timestamp")
}

fn new_api(clock: &Clock) -> Api {
    let api = Api::new(ApiConfig::new(clock.clone()));
    for definition in cluster_api_definitions() {
        api.create(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        );
    }
    api
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"value": value}}))
        .expect("a config map")
}

/// Waits, in virtual time, until an object is as it should be; null if it is not there.
async fn eventually(
    client: &kube::Client,
    kind: &kube::api::ApiResource,
    namespace: &str,
    name: &str,
    is_so: impl Fn(&Value) -> bool,
) {
    let api: kube::Api<DynamicObject> = if namespace.is_empty() {
        kube::Api::all_with(client.clone(), kind)
    } else {
        kube::Api::namespaced_with(client.clone(), namespace, kind)
    };
    for _ in 0..600 {
        let found = api
            .get_opt(name)
            .await
            .expect("the API answers")
            .map(|one| serde_json::to_value(one).expect("JSON"));
        if is_so(&found.unwrap_or_default()) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{} {name} never was as it should be", kind.kind);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_follows_a_month_of_changes() {
    let clock = Clock::starting_at(start());
    let api = Api::new(ApiConfig::new(clock.clone()));
    let config_maps: kube::Api<ConfigMap> = kube::Api::namespaced(api.client("default"), "default");
    let (reader, writer) = reflector::store();
    let follow = watcher(config_maps.clone(), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let following = tokio::spawn(follow.for_each(|_| async {}));
    config_maps
        .create(&PostParams::default(), &config_map("ticker", "0"))
        .await
        .expect("created");
    for hour in 1..=720 {
        tokio::time::sleep(Duration::from_hours(1)).await;
        let patch = json!({"data": {"value": hour.to_string()}});
        config_maps
            .patch("ticker", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    let ticker = reader
        .find(|one| one.metadata.name.as_deref() == Some("ticker"))
        .expect("the reflector has it");
    assert_eq!(
        ticker
            .data
            .as_ref()
            .and_then(|data| data.get("value"))
            .map(String::as_str),
        Some("720")
    );
    assert_eq!(clock.now().duration_since(start()).as_hours(), 720);
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_machine_comes_up_and_goes_down_in_order() {
    let clock = Clock::starting_at(start());
    let api = new_api(&clock);
    let client = api.client("default");
    let actors = [
        tokio::spawn(drive(
            client.clone(),
            Capi::new(client.clone(), clock.clone(), CapiConfig::default()),
        )),
        tokio::spawn(drive(
            client.clone(),
            Provider::new(client.clone(), clock.clone(), ProviderConfig::default()),
        )),
        tokio::spawn(drive(
            client.clone(),
            Kubelet::new(client.clone(), clock.clone(), KubeletConfig::default()),
        )),
    ];
    let bootstrap = "/apis/bootstrap.cluster.x-k8s.io/v1beta1/namespaces/default/k0sworkerconfigs";
    let infrastructure = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/remotemachines";
    api.create(bootstrap, &json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig", "metadata": {"name": "m-bootstrap"}, "spec": {}}));
    api.create(infrastructure, &json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine", "metadata": {"name": "m-infra"}, "spec": {"address": "10.0.0.7"}}));
    api.create(
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines",
        &json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m"},
            "spec": {
                "clusterName": "prod",
                "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "K0sWorkerConfig", "name": "m-bootstrap"}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "m-infra"},
            },
        }),
    );
    let machines = resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines");
    eventually(&client, &machines, "default", "m", |machine| {
        machine["status"]["phase"] == "Running"
    })
    .await;
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    let node = nodes.get("m").await.expect("the node joined");
    assert_eq!(
        node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()),
        Some("remote-machine://10.0.0.7:22")
    );
    let took = clock.now().duration_since(start()).as_secs();
    assert!(
        (65..=75).contains(&took),
        "30 s to provision, 15 to join, 20 to be ready: {took}"
    );

    api.create("/api/v1/namespaces/default/pods", &json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"nodeName": "m", "containers": [{"name": "c", "image": "x:1"}]}}));
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    api.create(budgets, &json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}));
    let pods = resource("", "v1", "Pod", "pods");
    eventually(&client, &pods, "default", "p", |pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    let dynamic: kube::Api<DynamicObject> = kube::Api::namespaced_with(client.clone(), "default", &machines);
    dynamic
        .delete("m", &DeleteParams::default())
        .await
        .expect("the machine can be deleted");
    tokio::time::sleep(Duration::from_mins(5)).await;
    let held = dynamic.get("m").await.expect("the budget holds the drain");
    assert!(
        held.data["status"]["conditions"]
            .to_string()
            .contains("DrainingNode")
    );
    let typed: kube::Api<Pod> = kube::Api::namespaced(client.clone(), "default");
    typed.get("p").await.expect("the pod is held");
    let pdb: kube::Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> =
        kube::Api::namespaced(client.clone(), "default");
    pdb.delete("b", &DeleteParams::default()).await.expect("deleted");
    eventually(&client, &machines, "default", "m", Value::is_null).await;
    assert!(
        nodes.get_opt("m").await.expect("an answer").is_none(),
        "the node goes with its machine"
    );
    let infra = resource(
        "infrastructure.cluster.x-k8s.io",
        "v1beta1",
        "RemoteMachine",
        "remotemachines",
    );
    eventually(&client, &infra, "default", "m-infra", Value::is_null).await;
    actors.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn every_fault_shows_as_it_should() {
    let clock = Clock::starting_at(start());
    let api = Api::new(ApiConfig::new(clock.clone()));
    let plan = FaultPlan::new(clock.clone(), 7);
    let client = kube::Client::new(FaultyService::new(api.service(), plan.clone()), "default");
    let config_maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client.clone());
    let on_write = |number, fault| Rule {
        kind: RequestKind::Write,
        path: "/configmaps".to_owned(),
        trigger: Trigger::Nth(number),
        fault,
    };
    plan.add(on_write(0, Fault::DropBefore));
    plan.add(on_write(1, Fault::DropAfter));
    plan.add(on_write(
        2,
        Fault::Refuse(http::StatusCode::TOO_MANY_REQUESTS, Some(3)),
    ));
    plan.add(on_write(3, Fault::Delay(Duration::from_secs(30))));
    let create = async |name: &str| {
        config_maps
            .create(&PostParams::default(), &config_map(name, "1"))
            .await
    };

    assert!(create("lost").await.is_err());
    assert!(
        config_maps.get_opt("lost").await.expect("an answer").is_none(),
        "it was never sent"
    );
    assert!(create("applied").await.is_err());
    assert!(
        config_maps.get_opt("applied").await.expect("an answer").is_some(),
        "only the answer was lost"
    );
    let refused = create("refused").await.expect_err("refused");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
    let before = clock.now();
    create("late").await.expect("created");
    assert_eq!(clock.now().duration_since(before).as_secs(), 30);

    config_maps
        .patch(
            "late",
            &PatchParams::default(),
            &Patch::Merge(json!({"data": {"value": "2"}})),
        )
        .await
        .expect("patched");
    plan.clear();
    plan.add(Rule {
        kind: RequestKind::Read,
        path: "/late".to_owned(),
        trigger: Trigger::Nth(0),
        fault: Fault::StaleRead(1),
    });
    let value = async || config_maps.get("late").await.expect("there").data.expect("data")["value"].clone();
    assert_eq!((value().await, value().await), ("1".to_owned(), "2".to_owned()));

    let outcomes: Vec<Outcome> = plan
        .seen()
        .into_iter()
        .filter(|one| one.is_write())
        .map(|one| one.outcome)
        .collect();
    assert_eq!(outcomes[0], Outcome::Faulted(Fault::DropBefore));
    assert_eq!(outcomes.last(), Some(&Outcome::Answered(http::StatusCode::OK)));
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
        let api = Api::new(ApiConfig::new(clock.clone()));
        let plan = FaultPlan::new(clock.clone(), 7);
        plan.add(Rule {
            kind: RequestKind::Watch,
            path: String::new(),
            trigger: Trigger::Nth(0),
            fault: Fault::Watch(fault),
        });
        let client = kube::Client::new(FaultyService::new(api.service(), plan), "default");
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
        following.abort();
    }
}
