//! What the controller reports.

use crate::phase::Phase;
use crate::spec::NodeTaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What the controller last saw and decided. Written only when something changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::without_null)]
pub struct ScheduledMachineStatus {
    /// Where the object stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The phase in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Days, hours, windows and exceptions alone say that it is open now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_schedule: Option<bool>,
    /// When a machine becomes wanted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_activation: Option<Time>,
    /// When a machine becomes unwanted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cleanup: Option<Time>,
    /// The earlier of `nextActivation` and `nextCleanup`, as text for the printer column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_change: Option<String>,
    /// The start of the latest wanted period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Time>,
    /// The CAPI Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ref: Option<ObjectRef>,
    /// The bootstrap object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_ref: Option<ObjectRef>,
    /// The infrastructure object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ObjectRef>,
    /// The Node, in the workload cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<ObjectRef>,
    /// How the provider knows the machine.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// Which kubeconfig the living Machine's Node is reached with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_cluster: Option<WorkloadCluster>,
    /// The taints on the Node that belong to 5-Spot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub applied_node_taints: Vec<NodeTaint>,
    /// When the graceful shutdown in progress began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_started_at: Option<Time>,
    /// The drain in progress, or the last one, kept until the next activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
    /// Emergency reclaims, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub reclaims: Vec<ReclaimRecord>,
    /// How long joining took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinStatus>,
    /// What is true, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// An object that belongs to a `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version of the object.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; absent for a Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// The UID of the object, once it has been seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// How the Node's cluster is reached. Fixed while the Machine lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadCluster {
    /// The Secret with the kubeconfig; absent: the Node is in the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The key in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// The UID of the `kube-system` namespace of the cluster that the Node was last seen in.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "clusterUID")]
    pub cluster_uid: Option<String>,
}

impl WorkloadCluster {
    /// The management cluster itself.
    pub const MANAGEMENT: Self = Self { secret_name: None, secret_key: None, cluster_uid: None };

    /// The cluster that the kubeconfig under a key of a Secret leads to.
    pub fn of_secret(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { secret_name: Some(name.into()), secret_key: Some(key.into()), cluster_uid: None }
    }
}

/// How far a drain has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainStatus {
    /// When the first eviction was due.
    pub started_at: Time,
    /// Pods that had to leave.
    pub total: i32,
    /// Pods that have left.
    pub evicted: i32,
    /// Pods that may not leave yet, at most 20, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub blocked: Vec<BlockedPod>,
}

/// A pod that holds the node, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
pub struct BlockedPod {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// Why it has not left.
    pub reason: String,
}

/// One emergency reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimRecord {
    /// When the agent asked.
    pub requested_at: Time,
    /// Why it asked.
    pub reason: String,
    /// The name of the node.
    pub node: String,
    /// The UID of the Node object: another life of the same name is another node.
    #[serde(rename = "nodeUID")]
    pub node_uid: String,
    /// When the reclaim was complete; absent while it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// How long it took from making the Machine to a Ready node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinStatus {
    /// The latest; absent until a node has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seconds: Option<i64>,
    /// The latest ten, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub recent_seconds: Vec<i64>,
    /// The Machine that `lastSeconds` speaks of. While it lives, its node has joined.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "machineUID")]
    pub machine_uid: Option<String>,
    /// Since when the node of the Machine in `machineRef` has been waited for, by the controller's clock. The Machine's own
    /// age is told by another clock, and the two may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,
    /// When the last Machine was given up because its node did not join within `joinTimeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Time>,
}
