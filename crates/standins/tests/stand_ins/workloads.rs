//! Pods of Deployments are replaced on other Nodes; those of DaemonSets stay on their Nodes.

use crate::fixture::StandInFixture;
use serde_json::{Value, json};
use std::time::Duration;

fn deploy(world: &StandInFixture, replicas: u32) {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
    });
    let spec =
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    world.api.create(
        "/apis/apps/v1/namespaces/default/deployments",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}),
    );
}

async fn nodes_of_pods(world: &StandInFixture) -> Vec<Value> {
    let mut nodes: Vec<Value> =
        world.list("Pod").await.iter().map(|pod| pod["spec"]["nodeName"].clone()).collect();
    nodes.sort_by_key(Value::to_string);
    nodes
}

async fn uids_of_pods(world: &StandInFixture) -> Vec<Value> {
    world.list("Pod").await.iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_are_spread_and_replaced_on_other_nodes() {
    let world = StandInFixture::new();
    let first = world.running("m", &json!({}), &json!({})).await;
    let second = world.running("mm", &json!({}), &json!({})).await;
    deploy(&world, 2);
    world.until("Deployment", "web", |it| it["status"]["readyReplicas"] == 2).await;
    assert_eq!(nodes_of_pods(&world).await, [first.as_str(), second.as_str()]);
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    world.until("Deployment", "web", |it| it["status"]["readyReplicas"] == 2).await;
    assert_eq!(nodes_of_pods(&world).await, [second.as_str(), second.as_str()]);
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_node_wait_for_one() {
    let world = StandInFixture::new();
    deploy(&world, 2);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(nodes_of_pods(&world).await, [Value::Null, Value::Null]);
    let waiting = uids_of_pods(&world).await;
    let node = world.running("m", &json!({}), &json!({})).await;
    world.until("Deployment", "web", |it| it["status"]["readyReplicas"] == 2).await;
    assert_eq!(nodes_of_pods(&world).await, [node.as_str(), node.as_str()]);
    assert_eq!(uids_of_pods(&world).await, waiting, "the same pods");
}

#[tokio::test(start_paused = true)]
async fn gated_pods_and_those_of_other_schedulers_are_ignored() {
    let world = StandInFixture::new();
    let pod = |name: &str, scheduler: &str, gates: Value| {
        world.api.create(
            "/api/v1/namespaces/default/pods",
            &json!({
                "metadata": {"name": name},
                "spec": {
                    "schedulerName": scheduler, "schedulingGates": gates,
                    "containers": [{"name": "main", "image": "example.org/app:1"}],
                },
            }),
        );
    };
    pod("plain", "default-scheduler", json!([]));
    pod("others", "another-scheduler", json!([]));
    pod("gated", "default-scheduler", json!([{"name": "example.org/gate"}]));
    let node = world.running("m", &json!({}), &json!({})).await;
    world.until("Pod", "plain", |pod| pod["status"]["phase"] == "Running").await;
    assert_eq!(world.get("Pod", "plain").await["spec"]["nodeName"], node.as_str());
    for name in ["others", "gated"] {
        assert_eq!(world.get("Pod", name).await["spec"]["nodeName"], Value::Null, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_lets_pods_move_one_at_a_time() {
    let world = StandInFixture::new();
    let _first = world.running("m", &json!({}), &json!({})).await;
    deploy(&world, 2);
    world.until("Deployment", "web", |it| it["status"]["readyReplicas"] == 2).await;
    let second = world.running("mm", &json!({}), &json!({})).await;
    world.budget("web");
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    world.until("Deployment", "web", |it| it["status"]["readyReplicas"] == 2).await;
    assert_eq!(nodes_of_pods(&world).await, [second.as_str(), second.as_str()]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_every_node_that_it_selects() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    let other = world.running("mm", &json!({}), &json!({})).await;
    let labels = json!({"app": "agent"});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {
            "nodeSelector": {"agent": "enabled"},
            "containers": [{"name": "main", "image": "example.org/agent:1"}],
        },
    });
    world.api.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        &json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }),
    );
    let select = async |node: &str, value: Value| {
        world.patch("Node", node, json!({"metadata": {"labels": {"agent": value}}})).await;
    };
    let has = async |count: u64| {
        let is_so = |set: &Value| {
            let status = &set["status"];
            status["desiredNumberScheduled"] == count && status["numberReady"] == count
        };
        world.until("DaemonSet", "agent", is_so).await;
    };
    has(0).await;
    // A cordon does not affect pods of a DaemonSet.
    world.patch("Node", &node, json!({"spec": {"unschedulable": true}})).await;
    select(&node, json!("enabled")).await;
    select(&other, json!("enabled")).await;
    has(2).await;
    assert_eq!(nodes_of_pods(&world).await, [node.as_str(), other.as_str()]);
    // The pod is removed with the label, and with the Node.
    select(&other, Value::Null).await;
    has(1).await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    has(0).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(nodes_of_pods(&world).await, [] as [Value; 0]);
}
