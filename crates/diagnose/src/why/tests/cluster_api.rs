//! Machines, Clusters and `ScheduledMachines`.

use super::fixture::{ClusterFixture, ago, deleting, merge, namespaced, only_cause};
use crate::why::{DeletionState, ObjectId};
use serde_json::{Value, json};

fn machine(rest: Value) -> Value {
    let mut machine =
        namespaced("cluster.x-k8s.io/v1beta2", "Machine", "m", json!({"spec": {"clusterName": "edge"}}));
    merge(&mut machine, rest);
    deleting(machine, 1200, &["machine.cluster.x-k8s.io"])
}

fn machine_id() -> ObjectId {
    ObjectId::namespaced("cluster.x-k8s.io", "Machine", "shop", "m")
}

fn cluster(rest: Value) -> Value {
    namespaced("cluster.x-k8s.io/v1beta2", "Cluster", "edge", rest)
}

fn draining(since: i64, limit: i64) -> Value {
    machine(json!({
        "spec": {"deletion": {"nodeDrainTimeoutSeconds": limit}},
        "status": {"conditions": [{
            "type": "Deleting", "status": "True", "reason": "DrainingNode", "lastTransitionTime": ago(since),
            "message": "Drain not completed yet:\n* Pod shop/web-0: cannot evict pod as it would violate the pod's disruption budget",
        }]},
    }))
}

#[test]
fn a_paused_machine_is_released_by_removing_the_annotation() {
    let paused = machine(json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}}));
    let answer = ClusterFixture::default().with(paused).with(cluster(json!({}))).why(machine_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(
        cause.fix[0].command,
        "kubectl annotate machine.cluster.x-k8s.io m -n shop cluster.x-k8s.io/paused-"
    );
    assert!(cause.fix[0].safe && cause.fix[0].warning.is_some());
}

#[test]
fn a_paused_cluster_holds_up_its_machines() {
    let answer = ClusterFixture::default()
        .with(machine(json!({})))
        .with(cluster(json!({"spec": {"paused": true}})))
        .why(machine_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "Cluster shop/edge");
    assert!(cause.fix[0].command.ends_with("--type=merge -p '{\"spec\":{\"paused\":false}}'"), "{cause:#?}");
}

#[test]
fn hooks_are_named_with_their_owner() {
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup";
    let answer = ClusterFixture::default()
        .with(machine(json!({"metadata": {"annotations": {hook: "backup-operator"}}})))
        .why(machine_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.cause.contains("backup-operator has to remove the annotation"), "{cause:#?}");
    assert!(!cause.fix[0].safe && cause.fix[0].command.ends_with("backup-"), "{cause:#?}");
}

#[test]
fn a_drain_is_busy_until_its_limit() {
    let answer = ClusterFixture::default().with(draining(100, 300)).why(machine_id());
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert!(cause.cause.contains("at most until 2026-11-17T12:03:20Z"), "{cause:#?}");
    for (since, limit) in [(400, 300), (400, 0)] {
        let answer = ClusterFixture::default().with(draining(since, limit)).why(machine_id());
        let cause = only_cause(&answer, DeletionState::Stuck);
        assert!(cause.evidence.iter().any(|it| it.contains("disruption budget")), "{cause:#?}");
        assert!(
            cause.fix[0].command.contains("exclude-node-draining=true") && !cause.fix[0].safe,
            "{cause:#?}"
        );
    }
    assert_eq!(
        ClusterFixture::default().with(draining(100, 0)).why(machine_id()).state,
        DeletionState::Deleting
    );
}

#[test]
fn volumes_that_stay_attached_are_the_cause_after_a_while() {
    let waiting = |since| {
        machine(json!({"status": {"conditions": [{
            "type": "Deleting", "status": "True", "reason": "WaitingForVolumeDetach", "lastTransitionTime": ago(since), "message": "x",
        }]}}))
    };
    assert_eq!(ClusterFixture::default().with(waiting(30)).why(machine_id()).state, DeletionState::Deleting);
    let answer = ClusterFixture::default().with(waiting(600)).why(machine_id());
    assert!(
        only_cause(&answer, DeletionState::Stuck).fix[0]
            .command
            .contains("exclude-wait-for-node-volume-detach")
    );
}

#[test]
fn the_infrastructure_object_is_followed() {
    let reference =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "r"});
    let machine = machine(json!({"spec": {"infrastructureRef": reference}}));
    let remote = namespaced(
        "infrastructure.cluster.x-k8s.io/v1beta2",
        "RemoteMachine",
        "r",
        json!({"status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "SSHFailed", "message": "no route to host"},
        ]}}),
    );
    let remote = deleting(remote, 1100, &["remotemachine.infrastructure.cluster.x-k8s.io"]);
    let answer = ClusterFixture::default().with(machine).with(remote).why(machine_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "RemoteMachine shop/r");
    assert!(cause.evidence.iter().any(|it| it.contains("no route to host")), "{cause:#?}");
}

#[test]
fn cluster_api_that_does_not_run_is_started_first() {
    let mut lease = namespaced(
        "coordination.k8s.io/v1",
        "Lease",
        "controller-leader-election-capi",
        json!({
            "spec": {"renewTime": ago(7200), "leaseDurationSeconds": 60},
        }),
    );
    lease["metadata"]["namespace"] = "capi-system".into();
    let answer = ClusterFixture::default().with(machine(json!({}))).with(lease).why(machine_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.cause.ends_with("and it is not running"), "{cause:#?}");
    assert!(
        cause.fix[0].safe
            && cause.fix[0].command.contains("rollout restart deployment/capi-controller-manager")
    );
    assert!(!cause.fix[1].safe, "{cause:#?}");
}

#[test]
fn a_cluster_waits_for_its_machines_and_its_parts() {
    let labelled = json!({"metadata": {
        "labels": {"cluster.x-k8s.io/cluster-name": "edge"}, "annotations": {"cluster.x-k8s.io/paused": ""},
    }});
    let id = || ObjectId::namespaced("cluster.x-k8s.io", "Cluster", "shop", "edge");
    let going = |rest| deleting(cluster(rest), 1200, &["cluster.cluster.x-k8s.io"]);
    let answer = ClusterFixture::default().with(going(json!({}))).with(machine(labelled)).why(id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Machine shop/m");
    let answer = ClusterFixture::default().with(going(json!({"spec": {"paused": true}}))).why(id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Cluster shop/edge");
    let answer = ClusterFixture::default().with(going(json!({}))).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("Cluster API"), "{answer:#?}");
}

fn scheduled(seconds: i64, rest: Value) -> Value {
    let mut object = namespaced(
        "5spot.finos.org/v1alpha1",
        "ScheduledMachine",
        "desk-17",
        json!({
            "status": {"phase": "ShuttingDown", "message": "draining"},
        }),
    );
    merge(&mut object, rest);
    deleting(object, seconds, &["5spot.finos.org/scheduledmachine"])
}

fn controller() -> Value {
    let mut pod = namespaced(
        "v1",
        "Pod",
        "5spot-controller-0",
        json!({
            "metadata": {"labels": {"app": "5spot-controller"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    pod["metadata"]["namespace"] = "5spot-system".into();
    pod
}

fn scheduled_id() -> ObjectId {
    ObjectId::namespaced("5spot.finos.org", "ScheduledMachine", "shop", "desk-17")
}

#[test]
fn a_scheduled_machine_drains_within_its_time() {
    let alive = || namespaced("cluster.x-k8s.io/v1beta2", "Machine", "desk-17-machine", json!({}));
    let drain =
        json!({"status": {"drain": {"blocked": [{"pod": "shop/web-0", "reason": "disruption budget web"}]}}});
    let world = |seconds| {
        ClusterFixture::default().with(scheduled(seconds, drain.clone())).with(alive()).with(controller())
    };
    let answer = world(100).why(scheduled_id());
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert!(cause.cause.contains("it has 8m 20s left"), "{cause:#?}");
    assert!(cause.evidence.iter().any(|it| it.contains("pod shop/web-0 blocks the drain")), "{cause:#?}");
    let answer = world(700).why(scheduled_id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).fix[0].command, "5spot explain desk-17 -n shop");
}

/// The time is that of the controller which runs, not the default.
#[test]
fn the_time_for_a_cleanup_is_that_of_the_controller() {
    let alive = || namespaced("cluster.x-k8s.io/v1beta2", "Machine", "desk-17-machine", json!({}));
    let world = |seconds| {
        let mut pod = controller();
        pod["spec"]["containers"] = json!([{
            "args": ["--force-finalizer-on-timeout=false"], "envFrom": [{"configMapRef": {"name": "5spot-controller"}}],
        }]);
        let data = json!({"data": {"FINALIZER_CLEANUP_TIMEOUT_SECS": "1200"}});
        let mut map = namespaced("v1", "ConfigMap", "5spot-controller", data);
        map["metadata"]["namespace"] = "5spot-system".into();
        let objects = [scheduled(seconds, json!({})), alive(), pod, map];
        objects.into_iter().fold(ClusterFixture::default(), ClusterFixture::with)
    };
    let answer = world(700).why(scheduled_id());
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert!(cause.cause.contains("it has 8m 20s left"), "{cause:#?}");
    let answer = world(1300).why(scheduled_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    let words =
        "timeout of 20m ended 1m 40s ago; with --force-finalizer-on-timeout=false the finalizer stays";
    assert!(cause.evidence.iter().any(|line| line.contains(words)), "{cause:#?}");
}

#[test]
fn a_scheduled_machine_leads_to_its_machine() {
    let mut machine = machine(json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}));
    machine["metadata"]["name"] = "desk-17-machine".into();
    let answer = ClusterFixture::default()
        .with(scheduled(100, json!({})))
        .with(machine)
        .with(controller())
        .why(scheduled_id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Machine shop/desk-17-machine");
}

#[test]
fn without_its_controller_a_scheduled_machine_is_stuck() {
    let answer = ClusterFixture::default().with(scheduled(10, json!({}))).why(scheduled_id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.cause.ends_with("and it is not running"), "{cause:#?}");
    assert_eq!(cause.fix[0].command, "kubectl rollout restart deployment/5spot-controller -n 5spot-system");
    assert!(
        cause.fix[1].warning.as_deref().is_some_and(|it| it.contains("not drained by 5-Spot")),
        "{cause:#?}"
    );
}

#[test]
fn a_paused_scheduled_machine_says_so() {
    let paused = scheduled(10, json!({"metadata": {"annotations": {"5spot.finos.org/paused": "all"}}}));
    let answer = ClusterFixture::default().with(paused).with(controller()).why(scheduled_id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("5spot.finos.org/paused"));
}

#[test]
fn a_pause_of_the_namespace_is_the_cause() {
    let paused = |reason: &str, message: &str| {
        let condition = json!({"type": "Paused", "status": "True", "reason": reason, "message": message});
        let object = scheduled(10, json!({"status": {"conditions": [condition]}}));
        let alive = namespaced("cluster.x-k8s.io/v1beta2", "Machine", "desk-17-machine", json!({}));
        ClusterFixture::default().with(object).with(alive).with(controller()).why(scheduled_id())
    };
    let answer = paused("NamespaceAnnotation", "held back: cordon node desk");
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "Namespace shop");
    assert_eq!(cause.fix[0].command, "kubectl annotate namespace shop 5spot.finos.org/paused-");
    let answer = paused("ClusterPaused", "held back: cordon node desk");
    let evidence = &only_cause(&answer, DeletionState::Deleting).evidence;
    assert!(evidence.iter().any(|it| it.contains("ClusterPaused")), "{evidence:#?}");
}

#[test]
fn a_scheduled_machine_in_use_points_to_explain() {
    let mut object = scheduled(10, json!({}));
    object["metadata"].as_object_mut().expect("metadata").remove("deletionTimestamp");
    let answer = ClusterFixture::default().with(object).why(scheduled_id());
    assert_eq!((answer.state, answer.causes.len()), (DeletionState::NotDeleting, 0));
    assert!(
        answer.steps[0].evidence.iter().any(|it| it.contains("5spot explain desk-17 -n shop")),
        "{answer:#?}"
    );
}
