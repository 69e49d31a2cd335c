//! A `ReplicaSet` has as many pods as it says. Where they go is the scheduler's business.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use super::actor::is_owned_by;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

pub(super) async fn reconcile(
    key: &ObjectKey,
    set: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<()> {
    let replicas = usize::try_from(set.data["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or_default();
    let pods = active_pods(key, set, context);
    for _ in pods.len()..replicas {
        let pod = pod(set, &set.data["spec"]["template"]);
        context.create(&Kind::pod().key(&key.namespace, ""), pod).await?;
    }
    for (surplus, pod) in pods.iter().skip(replicas) {
        context.delete(surplus, pod).await?;
    }
    let pods = active_pods(key, set, context);
    let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": set.metadata.generation, "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "fullyLabeledReplicas": pods.len(),
    });
    context.merge_status(key, status).await
}

/// The pods of a set that are neither ending nor ended; those with a Node first, as they are the last to be given up.
fn active_pods(
    key: &ObjectKey,
    set: &DynamicObject,
    context: &ActorContext,
) -> Vec<(ObjectKey, DynamicObject)> {
    let mut pods: Vec<(ObjectKey, DynamicObject)> = context
        .list(&Kind::pod(), &key.namespace)
        .filter(|(_, pod)| is_owned_by(pod, set) && pod.metadata.deletion_timestamp.is_none())
        .filter(|(_, pod)| !matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .map(|(key, pod)| (key.clone(), (**pod).clone()))
        .collect();
    pods.sort_by_key(|(_, pod)| pod.data["spec"]["nodeName"].is_null());
    pods
}

fn is_ready(pod: &DynamicObject) -> bool {
    let mut conditions = pod.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn pod(set: &DynamicObject, template: &Value) -> Value {
    json!({
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
    })
}
