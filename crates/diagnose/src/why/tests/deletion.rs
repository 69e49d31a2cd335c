//! Finalizers, owners, volumes and CRDs.

use super::fixture::{
    ClusterFixture, ago, cluster_scoped, deleting, event, namespaced, node, only_cause, terminating,
};
use crate::why::{DeletionState, ObjectId, Unreadable, WalkProgress};
use serde_json::{Value, json};

fn widget(finalizers: &[&str], manager: &str, seconds: i64) -> Value {
    let fields: Value = finalizers
        .iter()
        .map(|it| (format!("v:\"{it}\""), json!({})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let object = namespaced(
        "example.org/v1",
        "Widget",
        "w",
        json!({"metadata": {"managedFields": [
            {"manager": manager, "time": ago(100_000), "fieldsV1": {"f:metadata": {"f:finalizers": fields}}},
        ]}}),
    );
    deleting(object, seconds, finalizers)
}

fn id() -> ObjectId {
    ObjectId::namespaced("example.org", "Widget", "shop", "w")
}

#[test]
fn an_absent_controllers_finalizer_is_stuck_after_a_minute() {
    let world = |seconds| {
        ClusterFixture::default().with(widget(&["example.org/cleanup"], "widget-operator", seconds))
    };
    let answer = world(30).why(id());
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert!(
        cause.cause.starts_with("widget-operator has to remove the finalizer example.org/cleanup"),
        "{cause:#?}"
    );
    assert!(cause.fix.is_empty());
    let answer = world(90).why(id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(
        cause.evidence.iter().any(|it| it.contains("no Deployment, StatefulSet or DaemonSet")),
        "{cause:#?}"
    );
    let [fix] = cause.fix.as_slice() else { panic!("{cause:#?}") };
    assert!(
        fix.command.contains("\"op\":\"test\"") && fix.command.contains("widget.example.org w -n shop"),
        "{fix:#?}"
    );
    assert!(!fix.safe && fix.warning.as_deref().is_some_and(|it| it.contains("stays behind")), "{fix:#?}");
}

#[test]
fn a_controller_that_seems_to_exist_gets_more_time() {
    let deployment = namespaced("apps/v1", "Deployment", "widget-operator", json!({}));
    let world = |seconds| {
        ClusterFixture::default()
            .with(widget(&["example.org/cleanup"], "widget-operator", seconds))
            .with(deployment.clone())
    };
    assert_eq!(world(90).why(id()).state, DeletionState::Deleting);
    let answer = world(200).why(id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(
        cause.evidence.iter().any(|it| it.contains("Deployment shop/widget-operator is probably")),
        "{cause:#?}"
    );
}

#[test]
fn a_recent_change_is_progress() {
    let mut object = widget(&["example.org/cleanup"], "kubectl-create", 100_000);
    object["metadata"]["managedFields"][0]["time"] = ago(20).into();
    let answer = ClusterFixture::default().with(object).why(id());
    let cause = only_cause(&answer, DeletionState::Deleting);
    assert!(cause.evidence.iter().any(|it| it.contains("the object last changed")), "{cause:#?}");
}

#[test]
fn conditions_and_warnings_are_evidence() {
    let mut object = widget(&["example.org/cleanup"], "kubectl-create", 3600);
    object["status"] = json!({"conditions": [
        {"type": "Ready", "status": "False", "reason": "CleanupFailed", "message": "bucket is not empty"},
    ]});
    let warning = event(&object, "CleanupFailed", "bucket b-17 has 3 objects");
    let answer = ClusterFixture::default().with(object).with(warning).why(id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(
        cause.evidence.iter().any(|it| it == "Ready=False (CleanupFailed): bucket is not empty"),
        "{cause:#?}"
    );
    assert!(cause.evidence.iter().any(|it| it.contains("bucket b-17 has 3 objects")), "{cause:#?}");
}

#[test]
fn a_known_finalizer_says_who_removes_it_and_what_stays_behind() {
    let service = namespaced("v1", "Service", "lb", json!({}));
    let service = deleting(service, 3600, &["service.kubernetes.io/load-balancer-cleanup"]);
    let answer =
        ClusterFixture::default().with(service).why(ObjectId::namespaced("", "Service", "shop", "lb"));
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.cause.contains("the service controller of the cloud"), "{cause:#?}");
    assert!(cause.fix[0].warning.as_deref().is_some_and(|it| it.contains("load balancer")), "{cause:#?}");
}

#[test]
fn an_object_without_finalizers_is_about_to_go() {
    let answer = ClusterFixture::default().with(widget(&[], "x", 3600)).why(id());
    assert!(only_cause(&answer, DeletionState::Deleting).cause.contains("nothing holds it"));
}

#[test]
fn a_claim_waits_for_the_pods_that_use_it() {
    let claim = deleting(
        namespaced("v1", "PersistentVolumeClaim", "data", json!({})),
        600,
        &["kubernetes.io/pvc-protection"],
    );
    let pod = |phase: &str| {
        namespaced(
            "v1",
            "Pod",
            "web-0",
            json!({
                "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1"}]},
                "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
                "status": {"phase": phase},
            }),
        )
    };
    let id = || ObjectId::namespaced("", "PersistentVolumeClaim", "shop", "data");
    let answer = ClusterFixture::default().with(claim.clone()).with(pod("Running")).why(id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "Pod shop/web-0");
    assert!(
        cause.fix[0].warning.as_deref().is_some_and(|it| it.contains("StatefulSet web creates another one"))
    );
    let answer = ClusterFixture::default().with(claim.clone()).with(pod("Succeeded")).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("the PVC protection controller"));
    let mut ephemeral = pod("Running");
    ephemeral["metadata"]["name"] = "web".into();
    ephemeral["spec"] = json!({"volumes": [{"name": "scratch", "ephemeral": {}}]});
    let mut claim = claim;
    claim["metadata"]["name"] = "web-scratch".into();
    let answer = ClusterFixture::default().with(claim).with(ephemeral).why(ObjectId::namespaced(
        "",
        "PersistentVolumeClaim",
        "shop",
        "web-scratch",
    ));
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Pod shop/web");
}

#[test]
fn a_volume_waits_for_its_claim() {
    let volume = |phase: &str| {
        deleting(
            cluster_scoped(
                "v1",
                "PersistentVolume",
                "pv-1",
                json!({
                    "spec": {"claimRef": {"namespace": "shop", "name": "data"}}, "status": {"phase": phase},
                }),
            ),
            600,
            &["kubernetes.io/pv-protection"],
        )
    };
    let id = || ObjectId::cluster_scoped("", "PersistentVolume", "pv-1");
    let claim = namespaced("v1", "PersistentVolumeClaim", "data", json!({}));
    let answer = ClusterFixture::default().with(volume("Bound")).with(claim).why(id());
    assert_eq!(
        only_cause(&answer, DeletionState::Stuck).object.to_string(),
        "PersistentVolumeClaim shop/data"
    );
    let pod = namespaced("v1", "Pod", "web-0", json!({"spec": {"nodeName": "desk"}}));
    let claim = namespaced("v1", "PersistentVolumeClaim", "data", json!({}));
    let world = ClusterFixture::default().with(volume("Bound")).with(claim).with(terminating(600, ""));
    let answer = world.with(deleting(pod, 600, &[])).with(node("desk", "Unknown")).why(id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Pod shop/web-0");
    let answer = ClusterFixture::default().with(volume("Released")).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("the PV protection controller"));
}

#[test]
fn a_claim_that_is_not_bound_shows_its_events() {
    let claim = namespaced("v1", "PersistentVolumeClaim", "data", json!({"status": {"phase": "Pending"}}));
    let warning = event(&claim, "ProvisioningFailed", "storageclass \"fast\" not found");
    let answer = ClusterFixture::default().with(claim).with(warning).why(ObjectId::namespaced(
        "",
        "PersistentVolumeClaim",
        "shop",
        "data",
    ));
    assert!(only_cause(&answer, DeletionState::NotDeleting).cause.contains("storageclass"), "{answer:#?}");
}

#[test]
fn foreground_deletion_leads_to_the_dependent_that_blocks() {
    let owner = deleting(namespaced("apps/v1", "ReplicaSet", "web", json!({})), 600, &["foregroundDeletion"]);
    let dependent = |blocks: bool| {
        deleting(
            namespaced(
                "v1",
                "Pod",
                "web-x",
                json!({
                    "metadata": {"ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-ReplicaSet-web",
                        "blockOwnerDeletion": blocks,
                    }]},
                    "spec": {"nodeName": "desk"},
                }),
            ),
            600,
            &[],
        )
    };
    let id = || ObjectId::namespaced("apps", "ReplicaSet", "shop", "web");
    let world = |blocks| {
        ClusterFixture::default().with(owner.clone()).with(dependent(blocks)).with(node("desk", "Unknown"))
    };
    let answer = world(true).why(id());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Pod shop/web-x");
    let answer = world(false).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("the garbage collector"), "{answer:#?}");
    let mut alive = dependent(true);
    alive["metadata"].as_object_mut().expect("metadata").remove("deletionTimestamp");
    let answer = ClusterFixture::default().with(owner).with(alive).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("has not deleted this dependent yet"));
}

#[test]
fn a_definition_waits_for_its_instances() {
    let definition = cluster_scoped(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.example.org",
        json!({
            "spec": {"group": "example.org", "names": {"plural": "widgets", "kind": "Widget"}},
            "status": {"conditions": [{"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress", "message": "x"}]},
        }),
    );
    let definition = deleting(definition, 600, &["customresourcecleanup.apiextensions.k8s.io"]);
    let id = || {
        ObjectId::cluster_scoped("apiextensions.k8s.io", "CustomResourceDefinition", "widgets.example.org")
    };
    let answer = ClusterFixture::default()
        .with(definition.clone())
        .with(widget(&["example.org/cleanup"], "kubectl-create", 600))
        .why(id());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "Widget shop/w");
    assert!(answer.steps[0].evidence.iter().any(|it| it == "remaining: 1 instance"));
    let answer = ClusterFixture::default().with(definition).why(id());
    assert!(only_cause(&answer, DeletionState::Stuck).cause.contains("the API server"));
}

#[test]
fn an_object_that_is_gone_is_known_by_its_traces() {
    let id = ObjectId::namespaced("apps", "StatefulSet", "shop", "web");
    let gone = namespaced("apps/v1", "StatefulSet", "web", json!({}));
    let trace = event(&gone, "SuccessfulDelete", "delete Pod web-1 in StatefulSet web successful");
    let orphan = namespaced(
        "v1",
        "Pod",
        "web-0",
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "uid-StatefulSet-web"},
        ]}}),
    );
    let answer = ClusterFixture::default().with(trace).with(orphan.clone()).why(id.clone());
    assert_eq!((answer.state, answer.causes.len()), (DeletionState::Gone, 0));
    assert_eq!(answer.steps[1].object.to_string(), "Pod shop/web-0");
    assert_eq!(ClusterFixture::default().with(orphan).why(id.clone()).state, DeletionState::Gone);
    assert_eq!(ClusterFixture::default().examine(id.clone()), WalkProgress::NeverSeen(id));
}

#[test]
fn an_object_that_may_not_be_read_is_no_answer() {
    let mut world = ClusterFixture { forbidden: vec!["Widget"], ..ClusterFixture::default() };
    assert_eq!(world.examine(id()), WalkProgress::Unreadable(Unreadable::Forbidden("get Widget".to_owned())));
}

#[test]
fn an_object_that_was_not_deleted_has_no_causes() {
    let object = namespaced("v1", "ConfigMap", "a", json!({}));
    let answer =
        ClusterFixture::default().with(object).why(ObjectId::namespaced("", "ConfigMap", "shop", "a"));
    assert_eq!((answer.state, answer.causes.len()), (DeletionState::NotDeleting, 0));
}
