//! The same seed gives the same writes, transitions and virtual times in the same order, with faults too.

use crate::fixture::{StandInFixture, faulty_client};
use five_spot_apiserver::faults::{
    FaultRule, InjectedFault, RequestKind, RequestOutcome, Trigger, WatchFault,
};
use five_spot_apiserver::ids::Ids;
use futures::StreamExt as _;
use http::StatusCode;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Everything observable of a run, in order.
#[derive(Debug, PartialEq)]
struct Trace {
    /// The requests, their times and outcomes.
    requests: Vec<String>,
    /// The changes of objects from a watch, and their times.
    transitions: Vec<String>,
    /// The errors of the stand-ins.
    errors: Vec<String>,
}

/// One run in its own runtime, with a clock that starts with it.
fn run(seed: u64) -> (Trace, BTreeSet<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(eventful_hours(seed))
}

async fn eventful_hours(seed: u64) -> (Trace, BTreeSet<String>) {
    let mut world = StandInFixture::seeded(seed);
    world.may_have_errors = true;
    for rule in rules() {
        world.requests.add(rule);
    }
    let transitions = Arc::new(Mutex::new(Vec::new()));
    let begun = tokio::time::Instant::now();
    let note = |who: &'static str| {
        let transitions = transitions.clone();
        move |what: String| {
            let line = format!("{:?} {who}: {what}", begun.elapsed());
            transitions.lock().expect("the list").push(line);
        }
    };
    // Each is a separate task: the runtime determines their order, which must be the same in every run.
    let mut tasks = tokio::task::JoinSet::new();
    for who in ["first", "second"] {
        tasks.spawn(watch_machines(world.api.client("default"), note(who)));
        tasks.spawn(watch_pods(world.api.client("default"), note(who)));
        tasks.spawn(watch_nodes(world.api.client("default"), note(who)));
    }
    tasks.spawn(write(faulty_client(&world.api, &world.requests), Ids::new(seed)));
    for name in ["m", "mm", "mmm"] {
        world.machine(name, &json!({}), &json!({}));
    }
    tokio::time::sleep(Duration::from_mins(20)).await;
    world.delete("Machine", "mm").await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    tasks.shutdown().await;
    let requests = world.requests.seen();
    let met = requests.iter().filter_map(|one| match &one.outcome {
        RequestOutcome::Faulted(fault) => Some(format!("{fault:?}")),
        RequestOutcome::Answered(_) | RequestOutcome::Pending => None,
    });
    let trace = Trace {
        requests: requests.iter().map(|one| format!("{one:?}")).collect(),
        transitions: std::mem::take(&mut *transitions.lock().expect("the list")),
        errors: world.errors.latest().iter().map(ToString::to_string).collect(),
    };
    (trace, met.collect())
}

/// Faults of every kind, random and by number.
fn rules() -> Vec<FaultRule> {
    let rule = |kind, trigger, fault| FaultRule { kind, path: String::new(), trigger, fault };
    let some = Trigger::PerMille(25);
    let mut rules: Vec<FaultRule> = [
        InjectedFault::DropBefore,
        InjectedFault::DropAfter,
        InjectedFault::Delay(Duration::from_millis(2700)),
        InjectedFault::Refuse(StatusCode::CONFLICT, None),
        InjectedFault::Refuse(StatusCode::TOO_MANY_REQUESTS, Some(3)),
        InjectedFault::Refuse(StatusCode::INTERNAL_SERVER_ERROR, None),
        InjectedFault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None),
        InjectedFault::Refuse(StatusCode::GATEWAY_TIMEOUT, None),
    ]
    .map(|fault| rule(RequestKind::Write, some, fault))
    .into();
    rules.push(rule(RequestKind::Read, Trigger::PerMille(100), InjectedFault::StaleRead(5)));
    let on_watches = [
        WatchFault::CloseBefore(3),
        WatchFault::GoneBefore(2),
        WatchFault::DelayEvent(1, Duration::from_secs(7)),
        WatchFault::LoseEvent(40),
    ];
    rules.extend(
        on_watches.map(|fault| rule(RequestKind::Watch, Trigger::PerMille(150), InjectedFault::Watch(fault))),
    );
    rules
}

/// A small controller that creates pods at times that depend on the seed, and retries after a second.
async fn write(client: Client, mut chance: Ids) {
    let pods: Api<Pod> = Api::default_namespaced(client);
    for number in 0..30 {
        tokio::time::sleep(Duration::from_millis(1000 + chance.below(90_000))).await;
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"generateName": format!("pod-{number}-")},
            "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
        }))
        .expect("a pod");
        while pods.create(&PostParams::default(), &pod).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn watch_machines(client: Client, note: impl Fn(String)) {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Machine");
    let machines: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    follow(machines, |machine| machine.data["status"].get("phase").cloned(), note).await;
}

async fn watch_pods(client: Client, note: impl Fn(String)) {
    let pods: Api<Pod> = Api::all(client);
    follow(pods, |pod| json!([pod.spec.as_ref()?.node_name, pod.status.as_ref()?.phase]).into(), note).await;
}

async fn watch_nodes(client: Client, note: impl Fn(String)) {
    let nodes: Api<Node> = Api::all(client);
    follow(nodes, |node| json!(node.spec.as_ref()?.unschedulable).into(), note).await;
}

/// Records every change of every object.
async fn follow<K>(api: Api<K>, seen_of: impl Fn(&K) -> Option<Value>, note: impl Fn(String))
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        match event.expect("no fault for this client") {
            Event::Init | Event::InitDone => {}
            Event::InitApply(object) | Event::Apply(object) => {
                let (name, version) = (object.name_any(), object.resource_version());
                note(format!("{name} {version:?} {:?}", seen_of(&object)));
            }
            Event::Delete(object) => note(format!("{} gone", object.name_any())),
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let mut traces: Vec<Trace> = Vec::new();
    for seed in [1, 2, 3] {
        let ((trace, met), (again, _)) = (run(seed), run(seed));
        assert!(trace.transitions.len() > 300, "{} transitions", trace.transitions.len());
        assert!(!trace.errors.is_empty(), "faults cause errors");
        assert!(met.len() >= 10, "several kinds of faults occur: {met:?}");
        assert_same("requests", &trace.requests, &again.requests);
        assert_same("transitions", &trace.transitions, &again.transitions);
        assert_same("errors", &trace.errors, &again.errors);
        assert!(!traces.contains(&trace), "another seed gives another trace");
        traces.push(trace);
    }
}

/// Reports the first difference of two lists, instead of printing both.
fn assert_same(what: &str, one: &[String], other: &[String]) {
    let parting = one.iter().zip(other).position(|(one, other)| one != other);
    if let Some(number) = parting {
        panic!("{what} differ at {number}:\n{}\n{}", one[number], other[number]);
    }
    assert_eq!(one.len(), other.len(), "{what}");
}
