//! The status of a Node, reported by its kubelet or, if that is silent, by the node lifecycle controller.

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The health of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// The kubelet reports.
    Ready,
    /// The kubelet has been silent for too long.
    Lost,
}

/// The ID of the machine of a Node, which a real one reads from `/etc/machine-id`.
pub fn machine_id(node_uid: &str) -> String {
    node_uid.replace('-', "")
}

/// Returns true if the Node has this status.
pub(super) fn is(node: &DynamicObject, health: Health) -> bool {
    let mut conditions = node.data["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == "Ready");
    let wanted = match health {
        Health::Ready => "True",
        Health::Lost => "Unknown",
    };
    ready.is_some_and(|one| one["status"] == wanted)
}

/// The merge patch that sets the taints for the health of a Node; `None` if it has them. Other taints are
/// kept.
pub(super) fn taints(node: &DynamicObject, health: Health) -> Option<Value> {
    let existing = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let mut taints = existing.clone();
    taints.retain(|one| one["key"] != NOT_READY && one["key"] != UNREACHABLE);
    match health {
        Health::Ready => {}
        Health::Lost => {
            taints.extend(
                ["NoSchedule", "NoExecute"].map(|effect| json!({"key": UNREACHABLE, "effect": effect})),
            );
        }
    }
    let version = &node.metadata.resource_version;
    let value = if taints.is_empty() { Value::Null } else { json!(taints) };
    (taints != existing).then(|| json!({"metadata": {"resourceVersion": version}, "spec": {"taints": value}}))
}

/// The status of a Node.
pub(super) fn status(node: &DynamicObject, health: Health, now: Timestamp) -> Value {
    let now = five_spot_apiserver::clock::whole_seconds(now);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    match health {
        Health::Lost => {
            let lost = "Kubelet stopped posting node status.";
            let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
            json!({"conditions": kinds.map(|kind| condition(kind, "Unknown", "NodeStatusUnknown", lost))})
        }
        Health::Ready => {
            let id = machine_id(&node.uid().unwrap_or_default());
            let capacity = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"});
            json!({
                "conditions": [
                    condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                    condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                    condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                    condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
                ],
                "nodeInfo": {
                    "machineID": id, "systemUUID": id, "bootID": id, "kernelVersion": "6.18.0", "osImage": "5-Spot sandbox",
                    "containerRuntimeVersion": "sandbox://1.0", "kubeletVersion": "v1.36.4", "kubeProxyVersion": "",
                    "operatingSystem": "linux", "architecture": "amd64",
                },
                "capacity": capacity, "allocatable": capacity,
            })
        }
    }
}

/// The lease of a Node, which is deleted with it.
pub(super) fn lease(node: &DynamicObject, now: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": node.name_any(),
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name_any(), "uid": node.uid()}],
        },
        "spec": {"holderIdentity": node.name_any(), "leaseDurationSeconds": 40, "renewTime": now},
    })
}

/// A time in the format of `metav1.MicroTime`.
pub(super) fn micro_time(instant: Timestamp) -> String {
    format!("{instant:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_health_taints_are_changed() {
        let node = |taints: Value| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"taints": taints}}))
                .expect("a Node")
        };
        let own = json!({"key": "mine", "effect": "NoSchedule"});
        let new = node(json!([own, {"key": NOT_READY, "effect": "NoSchedule"}]));
        let patch = taints(&new, Health::Ready).expect("a change");
        assert_eq!(patch["spec"]["taints"], json!([own]));
        assert_eq!(taints(&node(json!([own])), Health::Ready), None);
        let lost = taints(&node(json!([own])), Health::Lost).expect("a change");
        assert_eq!(lost["spec"]["taints"].as_array().map(Vec::len), Some(3));
    }
}
