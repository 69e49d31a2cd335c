//! The pods of a controller: the existing ones, and new ones.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use super::actor::is_owned_by;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The pods of an object that are neither terminating nor finished.
pub(super) fn active(
    key: &ObjectKey,
    owner: &DynamicObject,
    context: &ActorContext,
) -> Vec<(ObjectKey, DynamicObject)> {
    context
        .list(&Kind::pod(), &key.namespace)
        .filter(|(_, pod)| is_owned_by(pod, owner) && pod.metadata.deletion_timestamp.is_none())
        .filter(|(_, pod)| !matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
        .map(|(key, pod)| (key.clone(), (**pod).clone()))
        .collect()
}

pub(super) fn is_ready(pod: &DynamicObject) -> bool {
    let mut conditions = pod.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// A pod from the template of an object, with this spec.
pub(super) fn pod(key: &ObjectKey, owner: &DynamicObject, spec: &Value) -> Value {
    let template = &owner.data["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", owner.name_any()),
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": key.kind.api_version(), "kind": key.kind.kind(), "name": owner.name_any(),
                "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}
