//! Pods that do not end, and pods that do not start.

use super::fixture::{
    ClusterFixture, ago, cluster_scoped, deleting, event, namespaced, node, only_cause, pod_id,
};
use crate::why::DeletionState;
use serde_json::{Value, json};

fn pod(rest: Value) -> Value {
    namespaced("v1", "Pod", "web-0", rest)
}

fn on(node: &str) -> Value {
    pod(json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}}))
}

#[test]
fn a_pod_within_its_grace_period_is_busy() {
    let mut pod = deleting(on("desk"), -20, &[]);
    pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    let answer = ClusterFixture::default().with(pod).with(node("desk", "True")).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert_eq!(cause.cause, "its grace period ends in 20s");
    assert!(cause.fix.is_empty());
    assert!(answer.steps[0].evidence[0].contains("10s ago"), "{answer:#?}");
}

#[test]
fn a_pod_on_a_dead_node_needs_a_forced_deletion() {
    for ready in ["False", "Unknown"] {
        let answer = ClusterFixture::default()
            .with(deleting(on("desk"), 60, &[]))
            .with(node("desk", ready))
            .why(pod_id("web-0"));
        let cause = only_cause(&answer, DeletionState::Stuck);
        assert_eq!(cause.object.to_string(), "Pod shop/web-0");
        assert!(cause.cause.contains("Node desk, which is not Ready"), "{cause:#?}");
        assert!(cause.evidence[0].contains("Kubelet stopped posting node status"), "{cause:#?}");
        let fix = &cause.fix[0];
        assert_eq!(fix.command, "kubectl delete pod web-0 -n shop --grace-period=0 --force");
        assert!(!fix.safe);
        assert!(
            fix.warning
                .as_deref()
                .is_some_and(|it| it.contains("may continue to run on the cluster indefinitely"))
        );
        assert!(cause.fix[1].command.contains("out-of-service"), "{cause:#?}");
    }
}

#[test]
fn a_pod_that_never_started_on_a_dead_node_says_why() {
    let pod = deleting(on("desk"), 60, &[]);
    let event = event(&pod, "FailedCreatePodSandBox", "stat /var/lib/calico/nodename");
    let answer =
        ClusterFixture::default().with(pod).with(event).with(node("desk", "Unknown")).why(pod_id("web-0"));
    let evidence = &only_cause(&answer, DeletionState::Stuck).evidence;
    assert!(evidence.iter().any(|it| it.contains("event FailedCreatePodSandBox, 3 times")), "{evidence:#?}");
}

/// Removing the finalizer alone would not end such a pod.
#[test]
fn a_finalizer_hides_no_dead_node() {
    let mut pod = deleting(on("desk"), 600, &["example.org/hold"]);
    pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    let answer =
        ClusterFixture::default().with(pod.clone()).with(node("desk", "Unknown")).why(pod_id("web-0"));
    let causes: Vec<&str> = answer.causes.iter().map(|it| it.cause.as_str()).collect();
    assert_eq!((answer.state, causes.len()), (DeletionState::Stuck, 2), "{causes:#?}");
    assert!(causes[0].contains("example.org/hold") && causes[1].contains("not Ready"), "{causes:#?}");
    // The kubelet has confirmed the end of this one.
    pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    let answer = ClusterFixture::default().with(pod).with(node("desk", "Unknown")).why(pod_id("web-0"));
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("example.org/hold"), "{answer:#?}");
}

#[test]
fn a_kubelet_that_reports_gets_time() {
    let world =
        |ready| ClusterFixture::default().with(deleting(on("desk"), 5, &[])).with(node("desk", ready));
    let answer = world("False").why(pod_id("web-0"));
    assert!(
        only_cause(&answer, DeletionState::Deleting).cause.contains("the kubelet of desk"),
        "{answer:#?}"
    );
    let answer = world("Unknown").why(pod_id("web-0"));
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("not Ready"), "{answer:#?}");
}

#[test]
fn a_node_that_never_reported_counts_as_dead() {
    let silent = cluster_scoped("v1", "Node", "desk", json!({}));
    let answer =
        ClusterFixture::default().with(deleting(on("desk"), 60, &[])).with(silent).why(pod_id("web-0"));
    assert!(only_cause(&answer, DeletionState::Stuck).evidence[0].contains("no kubelet has ever reported"));
}

#[test]
fn a_pod_of_a_missing_node_is_left_to_garbage_collection() {
    let answer = ClusterFixture::default().with(deleting(on("desk"), 40, &[])).why(pod_id("web-0"));
    assert!(only_cause(&answer, DeletionState::Deleting).cause.contains("pod garbage collector"));
    let answer = ClusterFixture::default().with(deleting(on("desk"), 400, &[])).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.fix[0].command.ends_with("--force") && !cause.fix[0].safe);
    assert_eq!(answer.steps[1].object.to_string(), "Node desk");
}

#[test]
fn a_kubelet_that_is_ready_gets_time_and_then_the_blame() {
    let world = |seconds| {
        ClusterFixture::default().with(deleting(on("desk"), seconds, &[])).with(node("desk", "True"))
    };
    assert!(
        only_cause(&world(10).why(pod_id("web-0")), DeletionState::Deleting)
            .cause
            .contains("the kubelet of desk")
    );
    let answer = world(600).why(pod_id("web-0"));
    assert!(
        only_cause(&answer, DeletionState::Stuck).cause.contains("has not removed it 10m after"),
        "{answer:#?}"
    );
}

#[test]
fn a_pod_that_was_never_scheduled_can_be_forced_safely() {
    let answer = ClusterFixture::default().with(deleting(pod(json!({})), 600, &[])).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.fix[0].safe && cause.fix[0].command.ends_with("--force"), "{cause:#?}");
}

#[test]
fn an_owner_that_is_gone_is_evidence() {
    let mut orphan = deleting(on("desk"), 60, &[]);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1f9b"}]);
    orphan["metadata"]["ownerReferences"] = owner;
    let mut world = ClusterFixture::default().with(orphan).with(node("desk", "Unknown"));
    let answer = world.why(pod_id("web-0"));
    assert!(
        answer.steps[0].evidence.iter().any(|it| it == "its owner StatefulSet web does not exist any more")
    );
    let answer = world.with(namespaced("apps/v1", "StatefulSet", "web", json!({}))).why(pod_id("web-0"));
    assert!(
        answer.steps[0].evidence.iter().any(|it| it.contains("one of that name exists again")),
        "{answer:#?}"
    );
}

#[test]
fn a_pod_without_a_node_shows_the_words_of_the_scheduler() {
    let pending = pod(json!({"status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/16 nodes are available"},
    ]}}));
    let event = event(&pending, "FailedScheduling", "0/16 nodes are available: 12 Insufficient cpu");
    let answer = ClusterFixture::default().with(pending).with(event).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::NotDeleting);
    assert_eq!(cause.cause, "the scheduler finds no node for it: 0/16 nodes are available");
    assert!(cause.evidence[0].starts_with("event FailedScheduling, 3 times"), "{cause:#?}");
}

#[test]
fn events_show_why_a_pod_does_not_start() {
    for (reason, message) in [
        ("FailedMount", "MountVolume.SetUp failed for volume \"data\""),
        ("FailedCreatePodSandBox", "Failed to create pod sandbox: stat /var/lib/calico/nodename"),
        ("NodeNotReady", "Node is not ready"),
    ] {
        let pending = pod(json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Pending"}}));
        let event = event(&pending, reason, message);
        let answer = ClusterFixture::default()
            .with(pending)
            .with(event)
            .with(node("desk", "True"))
            .why(pod_id("web-0"));
        let cause = only_cause(&answer, DeletionState::NotDeleting);
        assert_eq!(cause.cause, format!("it does not start: {reason}: {message}"));
    }
}

#[test]
fn a_node_that_is_ready_and_runs_nothing_is_the_cause() {
    let pending = pod(json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Pending"}}));
    let mut other = namespaced(
        "v1",
        "Pod",
        "calico-node-w899p",
        json!({
            "spec": {"nodeName": "desk"}, "status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {}}}]},
        }),
    );
    let world = |other: &Value| {
        ClusterFixture::default().with(pending.clone()).with(other.clone()).with(node("desk", "True"))
    };
    let answer = world(&other).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::NotDeleting);
    assert_eq!(cause.object.to_string(), "Node desk");
    assert!(cause.cause.contains("is Ready and runs nothing"), "{cause:#?}");
    assert_eq!(cause.fix[0].command, "kubectl cordon desk");
    other["status"]["phase"] = "Running".into();
    let answer = world(&other).why(pod_id("web-0"));
    assert!(
        only_cause(&answer, DeletionState::NotDeleting).cause.contains("no recent event says why"),
        "{answer:#?}"
    );
}

#[test]
fn a_pod_of_a_node_that_is_not_ready_says_so() {
    let mut pending = pod(json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Pending"}}));
    pending["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1"}]);
    let answer = ClusterFixture::default().with(pending).with(node("desk", "Unknown")).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::NotDeleting);
    assert_eq!(cause.cause, "its Node desk is not Ready");
    assert_eq!(cause.fix[0].command, "kubectl delete pod web-0 -n shop");
}

#[test]
fn a_pod_of_a_missing_node_needs_a_controller_to_return() {
    let mut pending = pod(json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Pending"}}));
    let cause = |pod: &Value| {
        let answer = ClusterFixture::default().with(pod.clone()).why(pod_id("web-0"));
        only_cause(&answer, DeletionState::NotDeleting).clone()
    };
    let alone = cause(&pending);
    assert_eq!(alone.cause, "its Node desk does not exist");
    assert!(!alone.fix[0].safe, "nobody makes another one: {alone:#?}");
    pending["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1"}]);
    assert!(cause(&pending).fix[0].safe);
}

#[test]
fn a_pod_that_was_just_created_waits_for_the_scheduler() {
    let young = pod(json!({"metadata": {"creationTimestamp": ago(5)}, "status": {"phase": "Pending"}}));
    let answer = ClusterFixture::default().with(young).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::NotDeleting);
    assert_eq!((cause.cause.as_str(), cause.needs_a_person), ("it has not been scheduled yet", false));
}

#[test]
fn a_container_that_waits_says_why() {
    let waiting = pod(
        json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Pending", "containerStatuses": [
            {"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}}},
        ]}}),
    );
    let answer = ClusterFixture::default().with(waiting).with(node("desk", "True")).why(pod_id("web-0"));
    let cause = only_cause(&answer, DeletionState::NotDeleting);
    assert!(cause.evidence.iter().any(|it| it.contains("Back-off pulling image")), "{cause:#?}");
}

#[test]
fn a_running_pod_and_a_starting_one_have_no_trouble() {
    let running = pod(json!({"spec": {"nodeName": "desk"}, "status": {"phase": "Running"}}));
    let answer = ClusterFixture::default().with(running).why(pod_id("web-0"));
    assert_eq!((answer.state, answer.causes.len()), (DeletionState::NotDeleting, 0));
    let young = pod(json!({
        "metadata": {"creationTimestamp": ago(5)}, "spec": {"nodeName": "desk"}, "status": {"phase": "Pending"},
    }));
    let answer = ClusterFixture::default().with(young).with(node("desk", "True")).why(pod_id("web-0"));
    assert_eq!(only_cause(&answer, DeletionState::NotDeleting).cause, "it is starting");
}
