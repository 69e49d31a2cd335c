//! A `ReplicaSet` has as many pods as it says, on Nodes that take them.

use super::super::kinds::{Kind, Place};
use super::super::stage::Stage;
use super::actor::is_owned_by;
use super::placement;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) async fn attend(place: &Place, set: &DynamicObject, stage: &mut Stage) -> kube::Result<()> {
    let replicas = usize::try_from(set.data["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or_default();
    let mut pods = active_pods(place, set, stage);
    let template = &set.data["spec"]["template"];
    // A waiting pod is exchanged once there is a place for it.
    if let Some((waiting, pod)) = pods.iter().find(|(_, pod)| pod.data["spec"]["nodeName"].is_null())
        && pods.len() <= replicas
        && choose(&template["spec"], stage).is_some()
    {
        stage.delete(waiting, pod).await?;
        pods = active_pods(place, set, stage).into_iter().filter(|(one, _)| one != waiting).collect();
    }
    for _ in pods.len()..replicas {
        let node = choose(&template["spec"], stage);
        stage.create(&Kind::pod().place(&place.namespace, ""), pod(set, template, node)).await?;
    }
    for (surplus, pod) in pods.iter().skip(replicas) {
        stage.delete(surplus, pod).await?;
    }
    let pods = active_pods(place, set, stage);
    let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": set.metadata.generation, "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "fullyLabeledReplicas": pods.len(),
    });
    stage.merge_status(place, status).await
}

/// The pods of a set that are neither ending nor ended; those with a Node first, as they are the last to be given up.
fn active_pods(place: &Place, set: &DynamicObject, stage: &Stage) -> Vec<(Place, DynamicObject)> {
    let mut pods: Vec<(Place, DynamicObject)> = stage
        .list(&Kind::pod(), &place.namespace)
        .filter(|(_, pod)| is_owned_by(pod, set) && pod.metadata.deletion_timestamp.is_none())
        .filter(|(_, pod)| !matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .map(|(place, pod)| (place.clone(), (**pod).clone()))
        .collect();
    pods.sort_by_key(|(_, pod)| pod.data["spec"]["nodeName"].is_null());
    pods
}

fn is_ready(pod: &DynamicObject) -> bool {
    let mut conditions = pod.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn choose(pod_spec: &Value, stage: &Stage) -> Option<String> {
    let mut pods_on: BTreeMap<String, usize> = BTreeMap::new();
    for (_, pod) in stage.list(&Kind::pod(), "") {
        if let Some(node) = pod.data["spec"]["nodeName"].as_str() {
            *pods_on.entry(node.to_owned()).or_default() += 1;
        }
    }
    placement::choose(pod_spec, stage.list(&Kind::node(), "").map(|(_, node)| &**node), &pods_on)
}

fn pod(set: &DynamicObject, template: &Value, node: Option<String>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", set.name_any()),
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set.name_any(), "uid": set.metadata.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}
