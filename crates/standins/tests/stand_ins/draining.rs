//! Deletion of a Machine: drained in passes, part by part, blocked by hooks.

use crate::fixture::{StandInFixture, condition};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn deletion_drains_and_cascades_in_order() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    for (kind, name) in [("Pod", "web"), ("RemoteMachine", "m-infra"), ("K0sWorkerConfig", "m-bootstrap")] {
        assert!(world.get(kind, name).await.is_null(), "{kind}");
    }
    assert!(world.get("Node", &node).await.is_null());
    assert!(
        world.get("Secret", "m-bootstrap-data").await.is_null(),
        "the bootstrap data go with their owner"
    );
    let writes = world.writes();
    let first = |what: &str| {
        let found = writes.iter().position(|write| write.contains(what));
        found.unwrap_or_else(|| panic!("no {what} in {writes:#?}"))
    };
    let last_delete = |path: &str| {
        let found = writes.iter().rposition(|write| write.contains("DELETE") && write.contains(path));
        found.unwrap_or_else(|| panic!("no deletion of {path} in {writes:#?}"))
    };
    let order = [
        first("eviction"),
        last_delete("remotemachines"),
        last_delete("k0sworkerconfigs"),
        last_delete("nodes"),
    ];
    assert!(order.is_sorted(), "pods, infrastructure, bootstrap, Node: {order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_blocks_the_drain_with_a_pass_every_20_s() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.budget("web");
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    let machine = world.get("Machine", "m").await;
    let deleting = condition(&machine, "Deleting");
    assert_eq!((&deleting["status"], &deleting["reason"]), (&json!("True"), &json!("DrainingNode")));
    assert!(deleting["message"].as_str().is_some_and(|text| text.contains("default/web")), "{deleting}");
    assert_eq!(world.get("Node", &node).await["spec"]["unschedulable"], true);
    let attempts = world.writes().iter().filter(|write| write.contains("eviction")).count();
    assert_eq!(attempts, 3, "one at once and two retries");
    world.delete("PodDisruptionBudget", "web").await;
    world.until_gone("Machine", "m").await;
    assert!(world.get("Pod", "web").await.is_null());
}

#[tokio::test(start_paused = true)]
async fn at_the_timeout_the_drain_ends_and_the_pod_stays() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({"deletion": {"nodeDrainTimeoutSeconds": 1}})).await;
    world.running_pod(&node, "web").await;
    world.budget("web");
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!world.get("Node", &node).await.is_null(), "the next pass looks at the timeout");
    world.until_gone("Machine", "m").await;
    assert_eq!(world.get("Pod", "web").await["metadata"]["deletionTimestamp"], json!(null));
    // Until the pod garbage collector deletes it.
    world.until_gone("Pod", "web").await;
}

#[tokio::test(start_paused = true)]
async fn excluding_the_drain_defeats_a_budget() {
    let world = StandInFixture::new();
    let annotations = json!({"machine.cluster.x-k8s.io/exclude-node-draining": ""});
    let node = world.running("m", &annotations, &json!({})).await;
    world.running_pod(&node, "web").await;
    world.budget("web");
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.get("Machine", "m").await.is_null());
    assert!(world.get("Node", &node).await.is_null());
    assert!(!world.get("Pod", "web").await.is_null(), "the pod stays on a Node that is gone");
    assert!(!world.writes().iter().any(|write| write.contains("eviction")));
}

#[tokio::test(start_paused = true)]
async fn deleting_the_infrastructure_in_mid_drain_abandons_it() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.budget("web");
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!world.get("Node", &node).await.is_null());
    world.delete("RemoteMachine", "m-infra").await;
    world.until_gone("Machine", "m").await;
    assert!(world.get("Node", &node).await.is_null(), "gone although the budget did not allow it");
}

#[tokio::test(start_paused = true)]
async fn hooks_hold_the_drain_and_the_infrastructure() {
    let world = StandInFixture::new();
    let (before, after) = (
        "pre-drain.delete.hook.machine.cluster.x-k8s.io/test",
        "pre-terminate.delete.hook.machine.cluster.x-k8s.io/test",
    );
    let node = world.running("m", &json!({before: "", after: ""}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let reason = |machine: &serde_json::Value| condition(machine, "Deleting")["reason"].clone();
    assert_eq!(reason(&world.get("Machine", "m").await), "WaitingForPreDrainHook");
    assert_eq!(world.get("Pod", "web").await["metadata"]["deletionTimestamp"], json!(null));
    world.patch("Machine", "m", json!({"metadata": {"annotations": {before: null}}})).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(reason(&world.get("Machine", "m").await), "WaitingForPreTerminateHook");
    assert!(world.get("Pod", "web").await.is_null(), "drained");
    assert_eq!(world.get("RemoteMachine", "m-infra").await["metadata"]["deletionTimestamp"], json!(null));
    world.patch("Machine", "m", json!({"metadata": {"annotations": {after: null}}})).await;
    world.until_gone("Machine", "m").await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_to_be_skipped_are_not_evicted() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.pod(&node, "skipped", &json!({"labels": {"cluster.x-k8s.io/drain": "skip"}}));
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    let writes = world.writes();
    let evicted = |pod: &str| writes.iter().any(|write| write.contains(&format!("pods/{pod}/eviction")));
    assert!(evicted("web") && !evicted("skipped"));
}
