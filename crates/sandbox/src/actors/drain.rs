//! One pass of Cluster API's drain over a node.

use super::kinds::pods;
use super::objects::{Objects, place};
use kube::api::{Api, EvictParams};
use serde_json::Value;

/// The pods that still keep a node from being empty, as `namespace/name`, after asking each to go.
pub(super) async fn drain_pass(objects: &Objects, node: &str) -> Result<Vec<String>, kube::Error> {
    let mut left = Vec::new();
    for pod in objects.list(&pods(), &format!("spec.nodeName={node}")).await? {
        if !is_drained(&pod) {
            continue;
        }
        let (namespace, name) = place(&pod);
        left.push(format!("{namespace}/{name}"));
        let waits = pod["metadata"]["labels"]["cluster.x-k8s.io/drain"] == "wait-completed";
        if pod["metadata"]["deletionTimestamp"].is_null() && !waits {
            evict(objects, namespace, name).await?;
        }
    }
    Ok(left)
}

/// A budget that says no, or a pod that is gone, is met again at the next pass.
async fn evict(objects: &Objects, namespace: &str, name: &str) -> Result<(), kube::Error> {
    let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(objects.client(), namespace);
    match api.evict(name, &EvictParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 429) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Mirror pods, pods of a `DaemonSet`, finished pods, and pods that say so are left alone.
fn is_drained(pod: &Value) -> bool {
    let is_mirror = pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string();
    let owners = pod["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    let is_daemon = owners.iter().any(|owner| owner["controller"] == true && owner["kind"] == "DaemonSet");
    let is_skipped = pod["metadata"]["labels"]["cluster.x-k8s.io/drain"] == "skip";
    let is_finished = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    !is_mirror && !is_daemon && !is_skipped && !is_finished
}
