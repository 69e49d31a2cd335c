//! Faults that the real controller meets and reports in its own words, and the fixes that end them.

use super::fixes::{command, lent, node};
use super::fixture::{DoctorFixture, START, fleet, machine};
use super::kubectl::get;
use five_spot_diagnose::doctor::FindingId;
use five_spot_standins::STOPS_AFTER_ANNOTATION;
use serde_json::{Value, json};
use std::time::Duration;

const ENABLE: &str = "kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":true}}}'";
const DISABLE: &str = "kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":false}}}'";

/// Merges finalizers into the Machine, or removes all of them.
async fn hold_machine(world: &DoctorFixture, finalizers: Value) {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    world
        .run(&format!(
            "kubectl patch machines.cluster.x-k8s.io desk-machine -n shop --type=merge -p '{patch}'"
        ))
        .await;
}

/// Waits until the node has joined, and asks for it back.
async fn reclaim(world: &DoctorFixture) {
    world.phase("desk", "Active").await;
    let path = format!("/api/v1/nodes/{}", node());
    for _ in 0..60 {
        let joined = get(&world.client, &path).await;
        if joined["metadata"]["deletionTimestamp"].is_null() && !joined.is_null() {
            break;
        }
        world.pass(Duration::from_secs(5)).await;
    }
    // The status names the node.
    world.pass(Duration::from_secs(20)).await;
    let request =
        "5spot.finos.org/reclaim-requested=true '5spot.finos.org/reclaim-reason=process-match: java'";
    world.run(&format!("kubectl annotate node {} {request}", node())).await;
}

/// A pod on the node of the machine.
fn pod(name: &str, metadata: &Value, grace: u32) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node()}, "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "example.org/app:1"}],
        },
    });
    for (field, value) in metadata.as_object().into_iter().flatten() {
        pod["metadata"][field] = value.clone();
    }
    pod
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_does_not_exist_is_named() {
    let world = lent(&json!({}), Vec::new()).await;
    let kind = |kind: &str| {
        let patch = json!({"spec": {"infrastructureSpec": {"kind": kind}}});
        format!("kubectl patch scheduledmachine desk -n shop --type=merge -p '{patch}'")
    };
    world.run(&kind("Absent")).await;
    let found = world.finds(FindingId::ReferenceNotFound).await;
    assert!(found.evidence.iter().any(|words| words.contains("Absent")), "{found:#?}");
    world.run(&kind("RemoteMachine")).await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_is_missing_is_named() {
    let named = json!({"kubeconfigSecretRef": {"name": "lab"}});
    let world = DoctorFixture::new(START, fleet(vec![machine("desk", &named)])).await;
    let found = world.finds(FindingId::KubeconfigUnusable).await;
    let look = "kubectl get secret lab -n shop";
    assert_eq!(command(&found, "kubectl get secret"), look);
    let kubeconfig = crate::explain::tests::kubeconfig_secret("lab");
    world.environment.api.create("/api/v1/namespaces/shop/secrets", &kubeconfig);
    world.phase("desk", "Active").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_needs_longer_gets_more_time() {
    let world = DoctorFixture::new(START, fleet(vec![machine("desk", &json!({"joinTimeout": "30s"}))])).await;
    let found = world.finds(FindingId::JoinFailed).await;
    world.run(command(&found, "kubectl patch scheduledmachine")).await;
    world.phase("desk", "Active").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn two_objects_of_one_machine_are_reported() {
    let mut twin = machine("twin", &json!({"priority": 10}));
    twin["spec"]["infrastructureSpec"]["spec"]["address"] = json!("desk.example.org");
    let world = lent(&json!({"priority": 90}), vec![twin]).await;
    let found = world.finds(FindingId::MachineInUse).await;
    let holder = other_of(&found.object.name);
    assert_eq!(command(&found, "5spot explain"), format!("5spot explain {holder} -n shop"));
    world.run(&DISABLE.replace(" desk ", &format!(" {holder} "))).await;
    world.phase(&found.object.name, "Active").await;
    world.is_well().await;
}

fn other_of(name: &str) -> &'static str {
    if name == "twin" { "desk" } else { "twin" }
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_is_reported_until_it_is_replaced() {
    let world = lent(&json!({"joinTimeout": "5m"}), Vec::new()).await;
    world.is_well().await;
    world.run(&format!("kubectl delete node {}", node())).await;
    let found = world.finds(FindingId::NodeLost).await;
    assert!(found.evidence.iter().any(|words| words.contains("NodeLost")), "{found:#?}");
    world.is_well().await;
    world.phase("desk", "Active").await;
}

#[tokio::test(start_paused = true)]
async fn a_long_grace_period_gets_a_longer_drain() {
    let slow = json!({"annotations": {STOPS_AFTER_ANNOTATION: "20m"}});
    let world = lent(&json!({}), vec![pod("slow", &slow, 1800)]).await;
    world.run(DISABLE).await;
    let found = world.finds(FindingId::LongGracePeriod).await;
    world.run(command(&found, "kubectl patch scheduledmachine")).await;
    world.is_well().await;
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_finalizer_is_released() {
    let held = json!({"finalizers": ["example.org/hold"]});
    let world = lent(&json!({}), vec![pod("held", &held, 30)]).await;
    world.run(DISABLE).await;
    let found = world.finds(FindingId::PodStuckTerminating).await;
    assert!(found.evidence.iter().any(|words| words.contains("example.org/hold")), "{found:#?}");
    world.run(command(&found, "kubectl patch pod held")).await;
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_does_not_go_is_found() {
    let world = lent(&json!({}), Vec::new()).await;
    hold_machine(&world, json!(["machine.cluster.x-k8s.io", "example.org/hold"])).await;
    world.run(DISABLE).await;
    let found = world.finds(FindingId::MachineStuckDeleting).await;
    assert!(found.evidence.iter().any(|words| words.contains("example.org/hold")), "{found:#?}");
    hold_machine(&world, Value::Null).await;
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_reclaim_that_does_not_end_is_found() {
    let world = lent(&json!({"killIfCommands": ["java"]}), Vec::new()).await;
    hold_machine(&world, json!(["machine.cluster.x-k8s.io", "example.org/hold"])).await;
    reclaim(&world).await;
    let found = world.finds(FindingId::EmergencyStuck).await;
    assert!(found.evidence.iter().any(|words| words.contains("example.org/hold")), "{found:#?}");
    hold_machine(&world, Value::Null).await;
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn reclaims_in_a_row_and_in_every_window_are_distinguished() {
    for (between, id) in [
        (Duration::from_secs(1), FindingId::RapidReReclaim),
        (Duration::from_hours(2), FindingId::EjectedEveryWindow),
    ] {
        let world = lent(&json!({"killIfCommands": ["java"]}), Vec::new()).await;
        for round in 0..3 {
            if round > 0 {
                world.pass(between).await;
                world.run(ENABLE).await;
            }
            reclaim(&world).await;
            world.phase("desk", "Disabled").await;
        }
        let found = world.finds(id).await;
        assert!(found.evidence.iter().any(|words| words.contains("process-match: java")), "{found:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_without_a_controller_is_removed() {
    let world = lent(&json!({}), Vec::new()).await;
    world.stop_controller();
    world.run("kubectl delete scheduledmachine desk -n shop").await;
    let found = world.finds(FindingId::FinalizerOverdue).await;
    world.run(command(&found, "kubectl patch scheduledmachine")).await;
    let path = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/desk";
    assert!(get(&world.client, path).await.is_null());
    let report = world.report().await;
    assert!(report.findings.iter().all(|one| one.id != FindingId::FinalizerOverdue), "{report:#?}");
}
