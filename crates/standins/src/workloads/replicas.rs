//! A `ReplicaSet`: creates and deletes pods to match its replicas. The scheduler assigns them to Nodes.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use super::pods;
use kube::api::DynamicObject;
use serde_json::json;

pub(super) async fn reconcile(
    key: &ObjectKey,
    set: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<()> {
    let replicas = usize::try_from(set.data["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or_default();
    let mut pods = pods::active(key, set, context);
    // Pods with a Node are deleted last.
    pods.sort_by_key(|(_, pod)| pod.data["spec"]["nodeName"].is_null());
    for _ in pods.len()..replicas {
        let pod = pods::pod(key, set, &set.data["spec"]["template"]["spec"]);
        context.create(&Kind::pod().key(&key.namespace, ""), pod).await?;
    }
    for (surplus, pod) in pods.iter().skip(replicas) {
        context.delete(surplus, pod).await?;
    }
    let pods = pods::active(key, set, context);
    let ready = pods.iter().filter(|(_, pod)| pods::is_ready(pod)).count();
    let status = json!({
        "observedGeneration": set.metadata.generation, "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "fullyLabeledReplicas": pods.len(),
    });
    context.merge_status(key, status).await
}
