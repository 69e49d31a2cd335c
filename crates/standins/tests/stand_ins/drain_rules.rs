//! Pods that a drain skips, waits for and delays, and Machines that Cluster API does not drain.

use crate::fixture::{StandInFixture, condition};
use serde_json::{Value, json};
use std::time::Duration;

fn rule(world: &StandInFixture, name: &str, spec: &Value) {
    let version = world.contract.version();
    world.api.create(
        &format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/machinedrainrules"),
        &json!({
            "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "MachineDrainRule",
            "metadata": {"name": name}, "spec": spec,
        }),
    );
}

fn app(name: &str) -> Value {
    json!([{"selector": {"matchLabels": {"app": name}}}])
}

fn evictions(world: &StandInFixture, pod: &str) -> usize {
    world.writes().iter().filter(|write| write.contains(&format!("pods/{pod}/eviction"))).count()
}

async fn deleting(world: &StandInFixture) -> Value {
    condition(&world.get("Machine", "m").await, "Deleting")
}

#[tokio::test(start_paused = true)]
async fn pods_that_complete_by_themselves_are_waited_for() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.pod(&node, "job", &json!({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}}));
    world.until("Pod", "job", |pod| pod["status"]["phase"] == "Running").await;
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let deleting = deleting(&world).await;
    assert_eq!(deleting["reason"], "DrainingNode");
    let message = deleting["message"].as_str().expect("a message");
    assert!(message.ends_with("* Pod default/job: waiting for completion"), "{message}");
    assert_eq!(evictions(&world, "job"), 0);
    world.delete("Pod", "job").await;
    world.until_gone("Machine", "m").await;
}

#[tokio::test(start_paused = true)]
async fn a_skip_rule_applies_to_its_machines_only() {
    let world = StandInFixture::new();
    rule(&world, "ours", &json!({"drain": {"behavior": "Skip"}, "pods": app("spared")}));
    let elsewhere = json!([{"clusterSelector": {"matchLabels": {"env": "prod"}}}]);
    rule(
        &world,
        "theirs",
        &json!({"drain": {"behavior": "Skip"}, "machines": elsewhere, "pods": app("web")}),
    );
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "spared").await;
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    assert_eq!((evictions(&world, "spared"), evictions(&world, "web")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn rules_put_pods_in_order() {
    let world = StandInFixture::new();
    rule(&world, "last", &json!({"drain": {"behavior": "Drain", "order": 10}, "pods": app("database")}));
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "database").await;
    world.running_pod(&node, "web").await;
    world.budget("web");
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(evictions(&world, "database"), 0, "pods of a lower order come first");
    let message = deleting(&world).await["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("* Pod default/web: cannot evict pod as it would violate"), "{message}");
    assert!(message.ends_with("the following Pods will be evicted: default/database"), "{message}");
    world.delete("PodDisruptionBudget", "web").await;
    world.until_gone("Machine", "m").await;
    assert_eq!(evictions(&world, "database"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_sets_pod_stays() {
    let world = StandInFixture::new();
    let template = json!({
        "metadata": {"labels": {"app": "logs"}},
        "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "logs"}}, "template": template});
    world.api.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        &json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "logs"}, "spec": spec}),
    );
    let node = world.running("m", &json!({}), &json!({})).await;
    let uid = world.get("DaemonSet", "logs").await["metadata"]["uid"].clone();
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": uid, "controller": true});
    world.pod(&node, "logs", &json!({"ownerReferences": [owner]}));
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    assert_eq!((evictions(&world, "logs"), evictions(&world, "web")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn attached_volumes_hold_the_machine_until_the_next_look() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    let attach = |volumes: Value| world.patch_status("Node", &node, json!({"volumesAttached": volumes}));
    attach(json!([{"name": "disk-1", "devicePath": ""}])).await;
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(65)).await;
    let held = deleting(&world).await;
    assert_eq!(held["reason"], "WaitingForVolumeDetach");
    assert!(
        held["message"].as_str().is_some_and(|text| text.ends_with("PersistentVolume: disk-1")),
        "{held}"
    );
    attach(json!([])).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(deleting(&world).await["reason"], "WaitingForVolumeDetach", "checks are twenty seconds apart");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(deleting(&world).await["reason"], "WaitingForInfrastructureDeletion");
    world.until_gone("Machine", "m").await;
}

#[tokio::test(start_paused = true)]
async fn volumes_can_be_given_up() {
    for (annotations, spec, seconds) in [
        (json!({"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}), json!({}), 10),
        (json!({}), json!({"deletion": {"nodeVolumeDetachTimeoutSeconds": 30}}), 55),
    ] {
        let world = StandInFixture::new();
        let node = world.running("m", &annotations, &spec).await;
        world
            .patch_status("Node", &node, json!({"volumesAttached": [{"name": "v", "devicePath": ""}]}))
            .await;
        world.delete("Machine", "m").await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert!(world.get("Machine", "m").await.is_null(), "{annotations} {spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_of_cluster_api_itself_skips_drain_and_node() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.patch_status("StubControlPlane", "workload", json!({"externalManagedControlPlane": false})).await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    assert_eq!(evictions(&world, "web"), 0);
    let left = world.get("Node", &node).await;
    assert!(left.is_object(), "the Node is left behind");
    assert_eq!(left["spec"]["unschedulable"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_names_no_control_plane_is_not_drained_either() {
    let world = StandInFixture::new();
    let version = world.contract.version();
    world.api.create(
        &format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/clusters"),
        &json!({
            "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster", "metadata": {"name": "workload"},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}},
        }),
    );
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/test";
    let node = world.running("m", &json!({hook: ""}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    assert_eq!(evictions(&world, "web"), 0);
    assert!(world.get("Node", &node).await.is_object(), "the Node is left behind");
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_drained_without_its_pods_going() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.settings.set_silent(&node, true);
    world.until("Node", &node, |node| condition(node, "Ready")["status"] == "Unknown").await;
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let pod = world.get("Pod", "web").await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 1, "no kubelet can stop it gracefully");
    assert_eq!(deleting(&world).await["reason"], "DrainingNode");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(deleting(&world).await["reason"], "WaitingForInfrastructureDeletion");
    world.until_gone("Machine", "m").await;
}
