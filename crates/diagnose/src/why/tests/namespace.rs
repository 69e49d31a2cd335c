//! Namespaces that do not go away.

use super::fixture::{
    ClusterFixture, ago, cluster_scoped, deleting, merge, namespaced, node, only_cause, shop, terminating,
};
use crate::why::DeletionState;
use serde_json::{Value, json};

/// The namespace of a blog post: four days of following finalizers by hand.
#[test]
fn the_chain_leads_to_the_pod_on_the_dead_node() {
    let namespace = terminating(
        394_440,
        "persistentvolumeclaims. has 1 resource instances, pods. has 1 resource instances",
    );
    let claim = namespaced("v1", "PersistentVolumeClaim", "data", json!({"spec": {"volumeName": "pv-1"}}));
    let volume = cluster_scoped(
        "v1",
        "PersistentVolume",
        "pv-1",
        json!({
            "spec": {"claimRef": {"namespace": "shop", "name": "data"}}, "status": {"phase": "Bound"},
        }),
    );
    let pod = namespaced(
        "v1",
        "Pod",
        "sts-0",
        json!({
            "metadata": {"ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "sts", "uid": "1f9b", "blockOwnerDeletion": true},
            ]},
            "spec": {"nodeName": "vmss000005", "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Pending", "containerStatuses": [
                {"name": "planet9", "state": {"waiting": {"reason": "ContainerCreating"}}},
            ]},
        }),
    );
    let mut world = ClusterFixture::default()
        .with(namespace)
        .with(deleting(claim, 394_440, &["kubernetes.io/pvc-protection"]))
        .with(deleting(volume, 394_440, &["kubernetes.io/pv-protection"]))
        .with(deleting(pod, 394_400, &[]))
        .with(node("vmss000005", "Unknown"));
    let answer = world.why(shop());
    let chain: Vec<String> = answer.steps.iter().map(|step| step.object.to_string()).collect();
    assert_eq!(
        chain,
        [
            "Namespace shop",
            "PersistentVolumeClaim shop/data",
            "PersistentVolume pv-1",
            "Pod shop/sts-0",
            "Node vmss000005",
        ]
    );
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "Pod shop/sts-0");
    assert_eq!(cause.fix[0].command, "kubectl delete pod sts-0 -n shop --grace-period=0 --force");
    assert!(cause.evidence.iter().any(|it| it.contains("planet9 waiting (ContainerCreating)")), "{cause:#?}");
    assert!(answer.steps[3].evidence.iter().any(|it| it.contains("StatefulSet sts does not exist any more")));
    assert!(world.asked <= 8, "{}", world.asked);
}

#[test]
fn a_namespace_that_was_just_deleted_is_busy() {
    let namespace = deleting(cluster_scoped("v1", "Namespace", "shop", json!({})), 5, &[]);
    let answer = ClusterFixture::default().with(namespace.clone()).why(shop());
    assert!(only_cause(&answer, DeletionState::Deleting).cause.contains("is deleting its contents"));
    let lease = |renewed| {
        let mut lease = namespaced(
            "coordination.k8s.io/v1",
            "Lease",
            "kube-controller-manager",
            json!({
                "spec": {"renewTime": ago(renewed), "leaseDurationSeconds": 15},
            }),
        );
        lease["metadata"]["namespace"] = "kube-system".into();
        lease
    };
    let answer = ClusterFixture::default().with(namespace.clone()).with(lease(3)).why(shop());
    assert_eq!(answer.state, DeletionState::Deleting);
    let answer = ClusterFixture::default().with(namespace).with(lease(300)).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.evidence[0].contains("5m ago"), "{cause:#?}");
}

#[test]
fn an_unavailable_api_blocks_every_namespace() {
    let mut namespace = terminating(600, "");
    namespace["status"]["conditions"] = json!([{
        "type": "NamespaceDeletionDiscoveryFailure", "status": "True", "reason": "DiscoveryFailed",
        "message": "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
                    metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1",
    }]);
    let api = |name: &str, status: &str| {
        cluster_scoped(
            "apiregistration.k8s.io/v1",
            "APIService",
            name,
            json!({
                "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "service": {"namespace": "kube-system", "name": "metrics"}},
                "status": {"conditions": [
                    {"type": "Available", "status": status, "reason": "ServiceNotFound", "message": "service/metrics is not present"},
                ]},
            }),
        )
    };
    let world = ClusterFixture::default().with(namespace).with(api("v1.apps", "True"));
    let answer = world.clone().with(api("v1beta1.metrics.k8s.io", "False")).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "APIService v1beta1.metrics.k8s.io");
    assert!(cause.evidence.iter().any(|it| it == "Service kube-system/metrics does not exist"), "{cause:#?}");
    assert!(
        cause.fix[0]
            .command
            .ends_with("kubectl delete apiservice.apiregistration.k8s.io v1beta1.metrics.k8s.io")
    );
    assert!(!cause.fix[0].safe && cause.fix[0].warning.is_some());
    let answer = world.clone().why(shop());
    assert!(only_cause(&answer, DeletionState::Deleting).cause.contains("retries"));
}

fn refused(message: &str) -> Value {
    let mut namespace = terminating(600, "configmaps. has 1 resource instances");
    merge(
        &mut namespace["status"]["conditions"][0],
        json!({
            "type": "NamespaceDeletionContentFailure", "status": "True", "reason": "ContentDeletionFailed", "message": message,
        }),
    );
    namespace
}

#[test]
fn a_webhook_that_refuses_is_named_with_its_configuration() {
    let hooks = cluster_scoped(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "guard",
        json!({
            "webhooks": [{"name": "keep.example.org"}],
        }),
    );
    let world = |message: &str| ClusterFixture::default().with(refused(message)).with(hooks.clone());
    let denied = "admission webhook \"keep.example.org\" denied the request: this is production";
    let answer = world(denied).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert_eq!(cause.object.to_string(), "MutatingWebhookConfiguration guard");
    assert!(cause.evidence[0].contains("this is production") && cause.fix.is_empty(), "{cause:#?}");
    let unreachable = "failed calling webhook \"keep.example.org\": connection refused";
    let answer = world(unreachable).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.fix[0].command.contains("&& kubectl delete mutatingwebhookconfiguration"), "{cause:#?}");
}

#[test]
fn contents_that_are_not_deleted_yet_are_busy_at_first() {
    let world = |seconds| {
        ClusterFixture::default()
            .with(terminating(seconds, "configmaps. has 1 resource instances"))
            .with(namespaced("v1", "ConfigMap", "a", json!({})))
    };
    let answer = world(30).why(shop());
    assert!(
        only_cause(&answer, DeletionState::Deleting)
            .cause
            .contains("has not deleted 1 object of kind ConfigMap yet")
    );
    let answer = world(900).why(shop());
    assert!(only_cause(&answer, DeletionState::Stuck).fix[0].safe);
}

#[test]
fn foreign_finalizers_of_the_namespace_itself_are_found() {
    let mut namespace = terminating(600, "");
    namespace["spec"]["finalizers"] = json!(["kubernetes", "example.org/keep"]);
    let answer = ClusterFixture::default().with(namespace).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(cause.cause.contains("example.org/keep"), "{cause:#?}");
    assert!(cause.fix[0].command.contains("/api/v1/namespaces/shop/finalize"), "{cause:#?}");
    assert!(cause.fix[0].warning.is_some());
}

#[test]
fn unreadable_objects_are_listed_and_the_rest_still_works() {
    let pod = namespaced("v1", "Pod", "web-0", json!({"spec": {"nodeName": "desk"}}));
    let mut world = ClusterFixture::default()
        .with(terminating(600, "pods. has 1 resource instances, secrets. has 2 resource instances"))
        .with(deleting(pod, 600, &[]))
        .with(node("desk", "Unknown"));
    world.forbidden = vec!["secrets"];
    let answer = world.why(shop());
    assert_eq!(only_cause(&answer, DeletionState::Stuck).object.to_string(), "Pod shop/web-0");
    let evidence = &answer.steps[0].evidence;
    assert!(
        evidence.iter().any(|it| it == "secrets could not be read: you may not list secrets"),
        "{evidence:#?}"
    );
}

/// Seen on v1.36: pods are deleted first, and the other conditions are those of an empty namespace meanwhile.
#[test]
fn pods_are_found_while_the_conditions_say_that_all_is_removed() {
    let pod = namespaced("v1", "Pod", "web-0", json!({"spec": {"nodeName": "desk"}}));
    let mut namespace = terminating(600, "");
    merge(
        &mut namespace["status"]["conditions"],
        json!([
            {"type": "NamespaceContentRemaining", "status": "False", "message": "All content successfully removed"},
        ]),
    );
    let mut world =
        ClusterFixture::default().with(namespace).with(deleting(pod, 600, &[])).with(node("desk", "Unknown"));
    assert_eq!(only_cause(&world.why(shop()), DeletionState::Stuck).object.to_string(), "Pod shop/web-0");
    world.objects[0]["status"]["conditions"] = json!([{
        "type": "NamespaceDeletionContentFailure", "status": "True", "reason": "ContentDeletionFailed",
        "message": "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: \
                    /v1, Resource=pods",
    }]);
    assert_eq!(only_cause(&world.why(shop()), DeletionState::Stuck).object.to_string(), "Pod shop/web-0");
}

#[test]
fn contents_that_may_not_be_read_are_known_from_conditions() {
    let world = |seconds| ClusterFixture {
        forbidden: vec!["configmaps", "pods"],
        ..ClusterFixture::default().with(terminating(seconds, "configmaps. has 3 resource instances"))
    };
    let answer = world(3600).why(shop());
    let cause = only_cause(&answer, DeletionState::Stuck);
    assert!(
        cause.cause.contains("that you may not read") && cause.evidence[0].contains("configmaps."),
        "{cause:#?}"
    );
    assert_eq!(world(30).why(shop()).state, DeletionState::Deleting);
}
