//! A Deployment: one `ReplicaSet` for its current template; all others are scaled down.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use super::actor::is_owned_by;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

const HASH_LABEL: &str = "pod-template-hash";

pub(super) async fn reconcile(
    key: &ObjectKey,
    deployment: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<()> {
    let hash = fingerprint(&deployment.data["spec"]["template"]);
    let replicas = deployment.data["spec"]["replicas"].as_i64().unwrap_or(1);
    let sets: Vec<(ObjectKey, DynamicObject)> = context
        .list(&Kind::replica_set(), &key.namespace)
        .filter(|(_, set)| is_owned_by(set, deployment))
        .map(|(key, set)| (key.clone(), (**set).clone()))
        .collect();
    if !sets.iter().any(|(_, set)| set.labels().get(HASH_LABEL) == Some(&hash)) {
        let name = format!("{}-{hash}", key.name);
        let set = replica_set(deployment, &name, &hash, replicas);
        context.create(&Kind::replica_set().key(&key.namespace, &name), set).await?;
    }
    for (set_place, set) in &sets {
        let wanted = if set.labels().get(HASH_LABEL) == Some(&hash) { replicas } else { 0 };
        if set.data["spec"]["replicas"] != wanted {
            context.merge(set_place, json!({"spec": {"replicas": wanted}})).await?;
        }
    }
    let sum =
        |field: &str| sets.iter().filter_map(|(_, set)| set.data["status"][field].as_i64()).sum::<i64>();
    let status = json!({
        "observedGeneration": deployment.metadata.generation, "replicas": sum("replicas"),
        "updatedReplicas": sum("replicas"), "readyReplicas": sum("readyReplicas"),
        "availableReplicas": sum("readyReplicas"), "unavailableReplicas": (replicas - sum("readyReplicas")).max(0),
    });
    context.merge_status(key, status).await
}

fn replica_set(deployment: &DynamicObject, name: &str, hash: &str, replicas: i64) -> Value {
    let spec = &deployment.data["spec"];
    let (mut template, mut selector) = (spec["template"].clone(), spec["selector"].clone());
    template["metadata"]["labels"][HASH_LABEL] = hash.into();
    selector["matchLabels"][HASH_LABEL] = hash.into();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name, "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name_any(),
                "uid": deployment.metadata.uid, "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

/// A short hash of a template (FNV-1a), which is the same in every run.
fn fingerprint(template: &Value) -> String {
    let hash = template
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}
