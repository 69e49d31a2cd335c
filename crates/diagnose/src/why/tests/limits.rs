//! Thousands of objects, cycles and long chains.

use super::fixture::{ClusterFixture, cluster_scoped, deleting, namespaced, node, shop, terminating};
use crate::why::{DeletionState, MAX_DEPTH, MAX_OBJECTS, ObjectId};
use serde_json::json;

#[test]
fn ten_thousand_objects_are_examined_by_examples() {
    let mut world =
        ClusterFixture::default().with(terminating(600, "configmaps. has 10000 resource instances"));
    for index in 0..10_000 {
        let object = namespaced("v1", "ConfigMap", &format!("c-{index:05}"), json!({}));
        world.objects.push(deleting(object, 600, &["example.org/keep"]));
    }
    let answer = world.why(shop());
    assert_eq!((answer.state, answer.causes.len()), (DeletionState::Stuck, 3), "{answer:#?}");
    let evidence = &answer.steps[0].evidence;
    assert!(
        evidence.iter().any(|it| it.contains("10000 objects, of which the first 50 were examined")),
        "{evidence:#?}"
    );
    assert!(evidence.iter().any(|it| it.contains("47 more objects of kind ConfigMap")), "{evidence:#?}");
    assert!(world.asked < 20, "{}", world.asked);
}

#[test]
fn pods_of_different_nodes_do_not_look_alike() {
    let mut world = ClusterFixture::default()
        .with(terminating(600, "pods. has 20 resource instances"))
        .with(node("a", "True"));
    for index in 0..20 {
        let node = if index == 19 { "b" } else { "a" };
        let pod = namespaced("v1", "Pod", &format!("p-{index:02}"), json!({"spec": {"nodeName": node}}));
        world.objects.push(deleting(pod, 10, &[]));
    }
    let answer = world.with(node("b", "Unknown")).why(shop());
    assert_eq!(answer.causes[0].object.to_string(), "Pod shop/p-19", "{answer:#?}");
    assert!(answer.causes[0].needs_a_person && !answer.causes[1].needs_a_person);
}

#[test]
fn owners_in_a_circle_are_visited_once() {
    let link = |name: &str, owner: &str| {
        let object = namespaced(
            "example.org/v1",
            "Widget",
            name,
            json!({"metadata": {"ownerReferences": [{
                "apiVersion": "example.org/v1", "kind": "Widget", "name": owner, "uid": format!("uid-Widget-{owner}"),
                "blockOwnerDeletion": true,
            }]}}),
        );
        deleting(object, 600, &["foregroundDeletion"])
    };
    let mut world = ClusterFixture::default().with(link("a", "b")).with(link("b", "a"));
    let answer = world.why(ObjectId::namespaced("example.org", "Widget", "shop", "a"));
    assert_eq!(answer.steps.len(), 2, "{answer:#?}");
}

#[test]
fn a_long_chain_ends_at_the_limit_and_says_so() {
    let mut world = ClusterFixture::default();
    for index in 0..100 {
        let object = namespaced(
            "example.org/v1",
            "Widget",
            &format!("w{index}"),
            json!({"metadata": {"ownerReferences": [{
                "apiVersion": "example.org/v1", "kind": "Widget", "name": format!("w{}", index + 1),
                "uid": format!("uid-Widget-w{}", index + 1), "blockOwnerDeletion": true,
            }]}}),
        );
        world.objects.push(deleting(object, 600, &["foregroundDeletion"]));
    }
    let answer = world.why(ObjectId::namespaced("example.org", "Widget", "shop", "w99"));
    assert_eq!(answer.steps.len(), MAX_DEPTH);
    assert!(answer.steps[0].evidence.iter().any(|it| it.contains("more than was examined")), "{answer:#?}");
}

#[test]
fn many_kinds_end_at_the_limit_of_objects() {
    let kinds: Vec<String> =
        (0..20).map(|index| format!("kind{index}s.example.org has 9 resource instances")).collect();
    let mut world = ClusterFixture::default().with(terminating(600, &kinds.join(", ")));
    for index in 0..180 {
        let finalizer = format!("example.org/f{index}");
        let object =
            namespaced("example.org/v1", &format!("Kind{}", index % 20), &format!("o{index}"), json!({}));
        world.objects.push(deleting(object, 600, &[&finalizer]));
    }
    let answer = world.why(shop());
    assert_eq!(answer.steps.len(), MAX_OBJECTS);
}

#[test]
fn a_deletion_in_the_future_is_no_panic() {
    let mut object = deleting(cluster_scoped("v1", "Node", "n", json!({})), -86_400, &["example.org/x"]);
    object["metadata"]["deletionGracePeriodSeconds"] = (-5).into();
    let answer = ClusterFixture::default().with(object).why(ObjectId::cluster_scoped("", "Node", "n"));
    assert_eq!(answer.state, DeletionState::Deleting);
}
