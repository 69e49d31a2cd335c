//! A Machine goes to Running with a Ready Node.

use crate::fixture::{StandInFixture, condition};
use five_spot_standins::Contract;
use kube::CustomResourceExt as _;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_machine_runs_with_its_node() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.until("Machine", "m", |machine| condition(machine, "Available")["status"] == "True").await;
    let machine = world.get("Machine", "m").await;
    assert_eq!(machine["status"]["nodeRef"], json!({"name": node}));
    assert_eq!(machine["status"]["initialization"]["bootstrapDataSecretCreated"], true);
    assert_eq!(machine["status"]["initialization"]["infrastructureProvisioned"], true);
    for kind in ["BootstrapConfigReady", "InfrastructureReady", "NodeReady", "NodeHealthy", "Ready"] {
        assert_eq!(condition(&machine, kind)["status"], "True", "{kind}: {machine:#}");
    }
    assert_eq!(machine["spec"]["providerID"], "remote-machine://10.0.0.1:22");
    assert_eq!(machine["metadata"]["finalizers"], json!(["machine.cluster.x-k8s.io"]));
    let node = world.get("Node", &node).await;
    assert_eq!(node["spec"]["providerID"], machine["spec"]["providerID"]);
    assert_eq!(node["spec"]["taints"], json!(null), "no taint keeps pods away");
    assert!(node["status"]["nodeInfo"]["machineID"].is_string());
    for (kind, name) in [("K0sWorkerConfig", "m-bootstrap"), ("RemoteMachine", "m-infra")] {
        let owners = world.get(kind, name).await["metadata"]["ownerReferences"].clone();
        assert_eq!(
            (&owners[0]["kind"], &owners[0]["controller"]),
            (&json!("Machine"), &json!(true)),
            "{kind}"
        );
    }
    assert!(world.get("Secret", "m-bootstrap-data").await["data"]["value"].is_string());
}

#[tokio::test(start_paused = true)]
async fn the_older_version_reports_the_same_in_its_own_format() {
    let world = StandInFixture::of(Contract::V1Beta1);
    let node = world.running("m", &json!({}), &json!({})).await;
    world.until("Machine", "m", |machine| condition(machine, "Ready")["status"] == "True").await;
    let machine = world.get("Machine", "m").await;
    assert_eq!(machine["status"]["nodeRef"]["name"], node.as_str());
    assert_eq!(machine["status"]["nodeRef"]["kind"], "Node");
    assert_eq!(machine["status"]["bootstrapReady"], true);
    assert_eq!(machine["status"]["infrastructureReady"], true);
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    world.until_gone("Node", &node).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_for_every_name() {
    let world = StandInFixture::new();
    world.machine("m", &json!({}), &json!({"clusterName": "somewhere"}));
    world.until("Cluster", "somewhere", |cluster| cluster["status"]["phase"] == "Provisioned").await;
    world
        .until("Machine", "m", |machine| machine["metadata"]["ownerReferences"][0]["kind"] == "Cluster")
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_machine_is_left_alone() {
    let world = StandInFixture::new();
    world.machine("m", &json!({"cluster.x-k8s.io/paused": ""}), &json!({}));
    tokio::time::sleep(std::time::Duration::from_mins(10)).await;
    let machine = world.get("Machine", "m").await;
    assert_eq!(machine["metadata"]["finalizers"], json!(null));
    assert_eq!(condition(&machine, "Paused")["status"], "True");
    world
        .patch("Machine", "m", json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}}))
        .await;
    world.until("Machine", "m", |machine| machine["status"]["phase"] == "Running").await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_machine_names_a_cluster_too() {
    let world = StandInFixture::new();
    let crd = serde_json::to_value(five_spot_api::ScheduledMachine::crd()).expect("JSON");
    world.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    let spec = json!({
        "clusterName": "prod",
        "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
        "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {}},
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
            "spec": {"address": "10.0.0.9"},
        },
    });
    world.api.create(
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines",
        &json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": {"name": "s"}, "spec": spec,
        }),
    );
    world.until("Cluster", "prod", |cluster| cluster["status"]["phase"] == "Provisioned").await;
    let secret = world.get("Secret", "prod-kubeconfig").await;
    assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
    assert_eq!(secret["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "prod");
}

#[tokio::test(start_paused = true)]
async fn nodes_and_pods_are_in_the_workload_cluster() {
    let world = StandInFixture::of_two_clusters();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
    world.until_gone("Node", &node).await;
    world.until_gone("Pod", "web").await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_provider_kind_is_served() {
    let world = StandInFixture::new();
    let group = "infrastructure.cluster.x-k8s.io";
    world.api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("fancymachines.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": "FancyMachine", "plural": "fancymachines"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }),
    );
    world.api.create(
        &format!("/apis/{group}/v1/namespaces/default/fancymachines"),
        &json!({"apiVersion": format!("{group}/v1"), "kind": "FancyMachine", "metadata": {"name": "f"}}),
    );
    let reference = json!({"apiGroup": group, "kind": "FancyMachine", "name": "f"});
    world.machine("m", &json!({}), &json!({"infrastructureRef": reference}));
    world.until("Machine", "m", |machine| condition(machine, "Ready")["status"] == "True").await;
    assert_eq!(world.get("Machine", "m").await["spec"]["providerID"], "sandbox://default/f");
    world.delete("Machine", "m").await;
    world.until_gone("FancyMachine", "f").await;
    world.until_gone("Machine", "m").await;
}
