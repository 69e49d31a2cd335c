//! Providers that hang and fail, Nodes that never join or become silent.

use crate::fixture::{StandInFixture, condition};
use five_spot_standins::{STOPS_AFTER_ANNOTATION, StepBehaviour};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_failing_provider_reports_why_and_recovers() {
    let world = StandInFixture::new();
    world.settings.in_namespace("default", |it| {
        it.provision = StepBehaviour::Fails("no route to host".to_owned());
    });
    world.machine("m", &json!({}), &json!({}));
    tokio::time::sleep(Duration::from_mins(10)).await;
    let machine = world.get("Machine", "m").await;
    assert_eq!(machine["status"]["phase"], "Provisioning");
    let infrastructure = condition(&machine, "InfrastructureReady");
    assert_eq!(
        (&infrastructure["status"], &infrastructure["message"]),
        (&json!("False"), &json!("no route to host"))
    );
    world.settings.in_namespace("default", |it| it.provision = StepBehaviour::Works);
    world.until("Machine", "m", |machine| condition(machine, "Ready")["status"] == "True").await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_never_joins_stays_provisioned() {
    let world = StandInFixture::new();
    world.settings.in_namespace("default", |it| it.join = StepBehaviour::Hangs);
    world.machine("m", &json!({}), &json!({}));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(world.get("Machine", "m").await["status"]["phase"], "Provisioned");
    assert!(world.list("Node").await.is_empty());
    world.delete("Machine", "m").await;
    world.until_gone("Machine", "m").await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_keeps_the_machine() {
    let world = StandInFixture::new();
    world.running("m", &json!({}), &json!({})).await;
    world.settings.in_namespace("default", |it| it.release = StepBehaviour::Hangs);
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let deleting = condition(&world.get("Machine", "m").await, "Deleting");
    assert_eq!(deleting["reason"], "WaitingForInfrastructureDeletion");
    world.settings.in_namespace("default", |it| it.release = StepBehaviour::Works);
    world.until_gone("Machine", "m").await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_lost_after_a_while_and_found_again() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    world.settings.set_silent(&node, true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(condition(&world.get("Node", &node).await, "Ready")["status"], "True");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let lost = world.get("Node", &node).await;
    assert_eq!(condition(&lost, "Ready")["status"], "Unknown");
    assert_eq!(lost["spec"]["taints"][0]["key"], "node.kubernetes.io/unreachable");
    assert_eq!(condition(&world.get("Machine", "m").await, "NodeReady")["status"], "Unknown");
    world.delete("Pod", "web").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!world.get("Pod", "web").await.is_null(), "no kubelet can stop it");
    world.settings.set_silent(&node, false);
    world.until_gone("Pod", "web").await;
    world.until("Node", &node, |node| condition(node, "Ready")["status"] == "True").await;
    assert_eq!(world.get("Node", &node).await["spec"]["taints"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_pod_takes_as_long_to_stop_as_it_says() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.pod(&node, "slow", &json!({"annotations": {STOPS_AFTER_ANNOTATION: "20s"}}));
    world.until("Pod", "slow", |pod| pod["status"]["phase"] == "Running").await;
    world.delete("Pod", "slow").await;
    tokio::time::sleep(Duration::from_secs(18)).await;
    assert!(!world.get("Pod", "slow").await.is_null());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(world.get("Pod", "slow").await.is_null());
}
