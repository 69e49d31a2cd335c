//! Signs of life of controllers, and objects that nobody deletes.

use super::fixture::{ClusterFixture, ago, cluster_scoped, deleting, event, namespaced, node, only_cause};
use crate::why::{DeletionState, ObjectId};
use serde_json::{Value, json};

fn claim() -> Value {
    deleting(
        namespaced("v1", "PersistentVolumeClaim", "data", json!({})),
        600,
        &["kubernetes.io/pvc-protection"],
    )
}

fn claim_id() -> ObjectId {
    ObjectId::namespaced("", "PersistentVolumeClaim", "shop", "data")
}

fn lease(renewed: &Value) -> Value {
    let spec = json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 15}});
    let mut lease = namespaced("coordination.k8s.io/v1", "Lease", "kube-controller-manager", spec);
    lease["metadata"]["namespace"] = "kube-system".into();
    lease
}

#[test]
fn the_lease_of_a_controller_is_evidence() {
    let cause = |world: ClusterFixture| {
        let mut world = world;
        let answer = world.why(claim_id());
        only_cause(&answer, DeletionState::Stuck).clone()
    };
    let running = cause(ClusterFixture::default().with(claim()).with(lease(&ago(3).into())));
    assert!(
        running.evidence[0].contains("was renewed") && running.cause.contains("nothing has happened"),
        "{running:#?}"
    );
    let away = cause(ClusterFixture::default().with(claim()).with(lease(&ago(3600).into())));
    assert!(away.cause.ends_with("and it is not running"), "{away:#?}");
    let never = cause(ClusterFixture::default().with(claim()).with(lease(&Value::Null)));
    assert!(never.evidence[0].contains("was never renewed"), "{never:#?}");
    let absent = cause(ClusterFixture::default().with(claim()));
    assert!(absent.evidence[0].contains("there is no Lease"), "{absent:#?}");
    let unread =
        cause(ClusterFixture { forbidden: vec!["Lease"], ..ClusterFixture::default() }.with(claim()));
    assert!(unread.evidence[0].contains("you may not get Lease"), "{unread:#?}");
}

#[test]
fn a_controller_without_a_ready_pod_is_away() {
    let object = namespaced("5spot.finos.org/v1alpha1", "ScheduledMachine", "desk", json!({}));
    let object = deleting(object, 10, &["5spot.finos.org/scheduledmachine"]);
    let mut pod = namespaced("v1", "Pod", "c", json!({"metadata": {"labels": {"app": "5spot-controller"}}}));
    pod["metadata"]["namespace"] = "5spot-system".into();
    let id = ObjectId::namespaced("5spot.finos.org", "ScheduledMachine", "shop", "desk");
    let answer = ClusterFixture::default().with(object).with(pod).why(id);
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.evidence[0].contains("none of them Ready"), "{cause:#?}");
}

#[test]
fn an_admission_policy_that_refuses_is_named() {
    let object = deleting(namespaced("v1", "ConfigMap", "a", json!({})), 600, &["example.org/x"]);
    let message = "ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: it is needed";
    let warning = event(&object, "FailedUpdate", message);
    let answer = ClusterFixture::default().with(object).with(warning).why(ObjectId::namespaced(
        "",
        "ConfigMap",
        "shop",
        "a",
    ));
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "ValidatingAdmissionPolicy keep");
    assert!(cause.fix.is_empty());
}

#[test]
fn nodes_and_apis_that_were_not_deleted_show_their_state() {
    let answer = ClusterFixture::default()
        .with(node("desk", "False"))
        .why(ObjectId::cluster_scoped("", "Node", "desk"));
    assert_eq!(answer.state, DeletionState::NotDeleting);
    assert!(answer.steps[0].evidence[0].starts_with("Ready=False"), "{answer:#?}");
    let api = cluster_scoped(
        "apiregistration.k8s.io/v1",
        "APIService",
        "v1.x.io",
        json!({
            "spec": {"group": "x.io", "version": "v1"},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no route"}]},
        }),
    );
    let answer = ClusterFixture::default().with(api).why(ObjectId::cluster_scoped(
        "apiregistration.k8s.io",
        "APIService",
        "v1.x.io",
    ));
    assert!(only_cause(&answer, DeletionState::NotDeleting).evidence[0].contains("no route"), "{answer:#?}");
}
