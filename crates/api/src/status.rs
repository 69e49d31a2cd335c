//! The status of a `ScheduledMachine`.

// The derive of the schema repeats a struct without its attributes.
#![allow(clippy::struct_field_names, reason = "the names are those of the API")]

use crate::phase::Phase;
use crate::spec::NodeTaint;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The state that the controller last observed and decided on. It is written only when something changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::without_null)]
pub struct ScheduledMachineStatus {
    /// The current phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The phase in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status is based on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// True if the schedule is open now. Only days, hours, windows and exceptions count here, not `enabled`, `override`, `leadTime` or `killSwitch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_schedule: Option<bool>,
    /// The next time at which a machine becomes wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_activation: Option<Time>,
    /// The next time at which the machine is no longer wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cleanup: Option<Time>,
    /// The earlier of `nextActivation` and `nextCleanup`, as text for the printer column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_change: Option<String>,
    /// The start of the latest period in which a machine was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Time>,
    /// The Cluster API Machine.
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
    /// The provider ID of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// The workload cluster of the Machine's Node. It does not change while the Machine exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_cluster: Option<WorkloadCluster>,
    /// The taints on the Node that 5-Spot has set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub applied_node_taints: Vec<NodeTaint>,
    /// The time at which the current shutdown started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_started_at: Option<Time>,
    /// The current drain, or the last one. It is kept until the next activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainStatus>,
    /// The removal of the machine, if it was neither planned by its own schedule nor caused by its own spec. It is kept until a
    /// machine is wanted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unplanned_removal: Option<UnplannedRemoval>,
    /// The latest emergency reclaims, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub reclaims: Vec<ReclaimRecord>,
    /// The time that nodes took to join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinStatus>,
    /// The conditions of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// An object that belongs to a `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// The API group and version of the object.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object. It is absent for a Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// The UID of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The workload cluster of a Node. It does not change while the Machine exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadCluster {
    /// The Secret with the kubeconfig. It is absent if the Node is in the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The key of the Secret that holds the kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// The UID of the `kube-system` namespace of the cluster in which the Node was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "clusterUID")]
    pub cluster_uid: Option<String>,
}

impl WorkloadCluster {
    /// The management cluster.
    pub const MANAGEMENT: Self = Self { secret_name: None, secret_key: None, cluster_uid: None };

    /// Returns the cluster that the kubeconfig under a key of a Secret refers to.
    pub fn of_secret(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { secret_name: Some(name.into()), secret_key: Some(key.into()), cluster_uid: None }
    }
}

/// The progress of a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainStatus {
    /// The time at which the drain started.
    pub started_at: Time,
    /// The number of pods that the drain has to remove.
    pub total: i32,
    /// The number of pods that have left the node.
    pub evicted: i32,
    /// The pods that block the drain, sorted, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub blocked: Vec<BlockedPod>,
}

/// A pod that blocks a drain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
pub struct BlockedPod {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// The reason why the pod has not left.
    pub reason: String,
}

/// A removal that neither the recorded schedule nor a change of the spec explains: time-zone data, a calendar or the clock of
/// the controller has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnplannedRemoval {
    /// The time at which the machine was found to be no longer wanted.
    pub since: Time,
    /// The generation of the spec at that time.
    pub generation: i64,
    /// The time at which it should have happened, according to the last `nextCleanup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_for: Option<Time>,
    /// The time at which the removal began. It is absent while the removal is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Time>,
}

/// One emergency reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimRecord {
    /// The time at which the reclaim was requested.
    pub requested_at: Time,
    /// The reason of the request.
    pub reason: String,
    /// The name of the node.
    pub node: String,
    /// The UID of the Node. A Node that was deleted and has joined again under the same name has another UID.
    #[serde(rename = "nodeUID")]
    pub node_uid: String,
    /// The time at which the reclaim was complete. It is absent while the reclaim is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// The times at which the reclaim reached its stages. It is absent if an older controller recorded the reclaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<ReclaimStages>,
}

/// The times at which a reclaim reached its stages, in microseconds. Each is recorded once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimStages {
    /// The time of the request by the clock of the agent. A time that is missing or in the future counts as `annotatedAt`.
    pub requested_at: MicroTime,
    /// The time at which the controller saw the annotations.
    pub annotated_at: MicroTime,
    /// The time at which the pods had left the node. It is absent if they were not seen to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_gone_at: Option<MicroTime>,
    /// The time at which the deletion of the Machine had been accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deleted_at: Option<MicroTime>,
    /// The time at which the Node was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_gone_at: Option<MicroTime>,
}

/// A stage of a reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReclaimStage {
    /// The controller has seen the annotations.
    Annotated,
    /// The pods have left the node.
    PodsGone,
    /// The deletion of the Machine was accepted.
    MachineDeleted,
    /// The Node is gone.
    NodeGone,
}

impl ReclaimStage {
    /// All stages, in their order.
    pub const ALL: [Self; 4] = [Self::Annotated, Self::PodsGone, Self::MachineDeleted, Self::NodeGone];

    /// Returns the stage as it is written in the label `stage` of a metric.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Annotated => "annotated",
            Self::PodsGone => "pods_gone",
            Self::MachineDeleted => "machine_deleted",
            Self::NodeGone => "node_gone",
        }
    }
}

impl ReclaimStages {
    /// Returns the time from the request to a stage, if the stage was reached. It is never negative.
    pub fn duration(&self, stage: ReclaimStage) -> Option<SignedDuration> {
        let reached = match stage {
            ReclaimStage::Annotated => Some(&self.annotated_at),
            ReclaimStage::PodsGone => self.pods_gone_at.as_ref(),
            ReclaimStage::MachineDeleted => self.machine_deleted_at.as_ref(),
            ReclaimStage::NodeGone => self.node_gone_at.as_ref(),
        }?;
        Some(reached.0.duration_since(self.requested_at.0).max(SignedDuration::ZERO))
    }
}

/// The times from the creation of a Machine to its Ready node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinStatus {
    /// The time of the latest join, in seconds. It is absent until a node has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seconds: Option<i64>,
    /// The times of the latest ten joins, in seconds, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub recent_seconds: Vec<i64>,
    /// The UID of the Machine that `lastSeconds` belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "machineUID")]
    pub machine_uid: Option<String>,
    /// The time at which the controller started to wait for the node of the Machine in `machineRef`, by the clock of the
    /// controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,
    /// The time at which the last Machine was given up because its node did not join within `joinTimeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Time>,
}
