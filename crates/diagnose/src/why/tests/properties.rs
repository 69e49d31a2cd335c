//! Properties of every walk, whatever the objects look like.

use super::fixture::{ClusterFixture, ago, namespaced, terminating};
use crate::why::{MAX_FACTS, MAX_OBJECTS, ObjectId, WalkProgress};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const KINDS: [(&str, &str); 9] = [
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("example.org/v1", "Widget"),
    ("cluster.x-k8s.io/v1beta2", "Machine"),
    ("cluster.x-k8s.io/v1beta2", "Cluster"),
    ("5spot.finos.org/v1alpha1", "ScheduledMachine"),
];

const FINALIZERS: [&str; 8] = [
    "foregroundDeletion",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/pv-protection",
    "customresourcecleanup.apiextensions.k8s.io",
    "machine.cluster.x-k8s.io",
    "cluster.cluster.x-k8s.io",
    "5spot.finos.org/scheduledmachine",
    "example.org/cleanup",
];

/// An object that may refer to any other by every reference there is, itself included.
fn object() -> impl Strategy<Value = Value> {
    let names = 0..6_usize;
    let parts = (
        select(&KINDS[..]),
        names.clone(),
        vec((select(&KINDS[..]), names.clone(), any::<bool>()), 0..3),
        vec(select(&FINALIZERS[..]), 0..3),
        names,
        proptest::option::of(-100..10_000_i64),
        select(&["Bound", "Pending", "Running", ""][..]),
    );
    parts.prop_map(|((api_version, kind), name, owners, finalizers, other, deleted, phase)| {
        let owners: Vec<Value> = owners
            .into_iter()
            .map(|((api_version, kind), name, blocks)| {
                json!({
                    "apiVersion": api_version, "kind": kind, "name": format!("o{name}"),
                    "uid": format!("uid-{kind}-o{name}"), "blockOwnerDeletion": blocks,
                })
            })
            .collect();
        let other = format!("o{other}");
        let mut object = namespaced(
            api_version,
            kind,
            &format!("o{name}"),
            json!({
                "metadata": {
                    "ownerReferences": owners, "finalizers": finalizers,
                    "labels": {"cluster.x-k8s.io/cluster-name": other},
                },
                "spec": {
                    "nodeName": other, "volumeName": other, "clusterName": other,
                    "claimRef": {"namespace": "shop", "name": other},
                    "volumes": [{"persistentVolumeClaim": {"claimName": other}}],
                    "infrastructureRef": {"apiGroup": "cluster.x-k8s.io", "kind": "Machine", "name": other},
                    "controlPlaneRef": {"apiGroup": "cluster.x-k8s.io", "kind": "Cluster", "name": other},
                },
                "status": {"phase": phase, "machineRef": {"name": other}},
            }),
        );
        if let Some(seconds) = deleted {
            object["metadata"]["deletionTimestamp"] = ago(seconds).into();
        }
        object
    })
}

proptest! {
    #[test]
    fn every_walk_ends_within_its_limits(objects in vec(object(), 1..40), start in 0..40_usize) {
        let target = &objects[start % objects.len()];
        let id = ObjectId::namespaced(
            super::super::live::group_of(target["apiVersion"].as_str().expect("text")),
            target["kind"].as_str().expect("text"), "shop", target["metadata"]["name"].as_str().expect("text"),
        );
        let mut world = ClusterFixture { objects: objects.clone(), ..ClusterFixture::default() };
        // Fails by itself if the walk asks twice for a fact, or does not end.
        let progress = world.examine(id);
        prop_assert!(world.asked <= MAX_FACTS);
        let WalkProgress::Answer(answer) = progress else { panic!("{progress:?}") };
        prop_assert!(answer.steps.len() <= 3 * MAX_OBJECTS);
        for fix in answer.causes.iter().flat_map(|cause| &cause.fix) {
            // Whatever is not safe says what it leaves behind.
            prop_assert!(fix.safe || fix.warning.is_some(), "{fix:?}");
        }
    }

    #[test]
    fn any_condition_of_a_namespace_is_survived(message in ".{0,200}") {
        let mut world = ClusterFixture::default().with(terminating(600, &message));
        let id = ObjectId::cluster_scoped("", "Namespace", "shop");
        prop_assert!(matches!(world.examine(id), WalkProgress::Answer(_)));
    }
}
