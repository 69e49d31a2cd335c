//! A machine joins the workload cluster as a Node, and leaves it.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

/// The annotation of an infrastructure object whose machine has joined.
const JOINED_ANNOTATION: &str = "sandbox.5spot.finos.org/joined";

/// The name of the Node of a machine. Nodes have no namespace, so the name contains that of the machine.
pub fn node_name(namespace: &str, machine: &str) -> String {
    format!("{namespace}-{machine}")
}

/// A deleted Node is not created again while its machine exists: a real kubelet would not register twice
/// without a restart.
pub(super) fn has_joined(object: &DynamicObject) -> bool {
    object.annotations().contains_key(JOINED_ANNOTATION)
}

/// Creates the Node.
pub(super) async fn join(
    key: &ObjectKey,
    object: &DynamicObject,
    provider_id: &str,
    context: &mut ActorContext,
) -> kube::Result<()> {
    let name = node_name(&key.namespace, &key.name);
    let address = object.data["spec"]["address"].as_str().unwrap_or("192.0.2.1");
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "spec": {"providerID": provider_id},
        "status": {"addresses": [
            {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name},
        ]},
    });
    context.create(&Kind::node().key("", &name), node).await?;
    context.merge(key, json!({"metadata": {"annotations": {JOINED_ANNOTATION: "true"}}})).await
}

/// Deletes the Node.
pub(super) async fn part(key: &ObjectKey, context: &mut ActorContext) -> kube::Result<()> {
    let node = Kind::node().key("", &node_name(&key.namespace, &key.name));
    match context.get(&node) {
        Some(object) => context.delete(&node, &object).await,
        None => Ok(()),
    }
}
