//! `explain` for a machine whose workload cluster does not answer, in virtual time.

use super::{Explained, explain_one};
use crate::doctor::tests::fixture::{DoctorFixture, START, fleet, machine};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use five_spot_apiserver::faults::{FaultPlan, FaultRule, FaultyService, InjectedFault, RequestKind, Trigger};
use five_spot_cluster::{ObjectKey, Raw};
use five_spot_diagnose::explain::Blocker;
use five_spot_standins::node_name;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The bound of one look at a cluster that hangs, in seconds.
const BOUND: u64 = 4;

/// A Secret with the kubeconfig of a workload cluster.
pub(crate) fn kubeconfig_secret(name: &str) -> Value {
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
        clusters: [{name: a, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: a, user: {token: t}}]\n\
        contexts: [{name: a, context: {cluster: a, user: a}}]\n";
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"},
        "data": {"value": STANDARD.encode(kubeconfig)},
    })
}

/// A pod on the node of the machine that a budget keeps there.
fn kept_pod() -> Vec<Value> {
    let labels = json!({"app": "web"});
    let node = node_name("shop", &five_spot_api::names::infrastructure("desk"));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "labels": labels},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "main", "image": "example.org/app:1"}],
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    });
    vec![pod, budget]
}

/// A machine that is lent to a cluster with a kubeconfig of its own.
async fn lent(others: Vec<Value>) -> DoctorFixture {
    let objects =
        [machine("desk", &json!({"killIfCommands": ["java"]})), kubeconfig_secret("shop-kubeconfig")];
    let world = DoctorFixture::new(START, fleet(objects.into_iter().chain(others).collect())).await;
    world.phase("desk", "Active").await;
    world.pass(Duration::from_mins(5)).await;
    world
}

/// Explains the machine while reads of a path in the workload cluster have a fault. Returns the time that it took.
async fn explained(world: &DoctorFixture, path: &str, fault: InjectedFault) -> (Duration, Explained) {
    let plan = FaultPlan::new(world.environment.clock.clone(), 0);
    let trigger = Trigger::Between(Timestamp::MIN, Timestamp::MAX);
    plan.add(FaultRule { kind: RequestKind::Read, path: path.to_owned(), trigger, fault });
    let workload = FaultyService::new(world.environment.api.service(), plan.clone());
    let access = world.access_to(Raw::new(workload));
    let began = Instant::now();
    let explained = explain_one(&access, &ObjectKey::new("shop", "desk")).await;
    let explained = explained.expect("an answer").expect("the object exists");
    assert!(!plan.seen().is_empty(), "the workload cluster was asked");
    (began.elapsed(), explained)
}

fn says(explained: &Explained, words: &str) -> bool {
    let has = |blocker: &Blocker| blocker.evidence.iter().any(|line| line.contains(words));
    explained.explanation.blockers.iter().any(has)
}

#[tokio::test(start_paused = true)]
async fn a_hung_workload_cluster_costs_four_seconds() {
    let world = lent(Vec::new()).await;
    let (took, explained) = explained(&world, "", InjectedFault::Hang).await;
    assert!(took.as_secs() <= BOUND, "{took:?}");
    assert!(says(&explained, "no answer within 4 s"), "{:#?}", explained.explanation);
    assert_eq!(explained.explanation.phase.as_str(), "Active", "the controller reports no problem");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_hangs_costs_no_more() {
    let world = lent(Vec::new()).await;
    let (took, explained) = explained(&world, "/configmaps", InjectedFault::Hang).await;
    assert!(took.as_secs() <= BOUND, "{took:?}");
    assert!(explained.explanation.node.is_some(), "{:#?}", explained.explanation);
    assert_eq!(explained.explanation.phase.as_str(), "Active");
}

#[tokio::test(start_paused = true)]
async fn pods_that_cannot_be_read_are_named() {
    let world = lent(kept_pod()).await;
    world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":false}}}'").await;
    world.phase("desk", "ShuttingDown").await;
    let forbidden = InjectedFault::RefuseSaying(StatusCode::FORBIDDEN, "pods is forbidden".to_owned());
    for (fault, words) in [(InjectedFault::Hang, "no answer within 4 s"), (forbidden, "pods is forbidden")] {
        let (took, explained) = explained(&world, "/pods", fault).await;
        assert!(took.as_secs() <= BOUND, "{took:?}");
        assert!(says(&explained, words), "{:#?}", explained.explanation);
        assert_eq!(explained.explanation.phase.as_str(), "ShuttingDown");
    }
}
