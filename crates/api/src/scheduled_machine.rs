//! The object that a person writes.

use crate::spec::{
    DrainSpec, KubeconfigSecretRef, MachineTemplate, NodeTaint, OverrideSpec, ProviderObject, ReclaimSpec,
    ScheduleSpec,
};
use crate::status::ScheduledMachineStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// A physical machine, lent to a Cluster API cluster by the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "5spot.finos.org",
    version = "v1alpha1",
    kind = "ScheduledMachine",
    plural = "scheduledmachines",
    shortname = "sm",
    category = "cluster-api",
    namespaced,
    status = "ScheduledMachineStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSpec {
    /// When the machine should belong to its cluster.
    pub schedule: ScheduleSpec,
    /// The CAPI cluster, in the same namespace.
    pub cluster_name: String,
    /// The bootstrap object to make.
    pub bootstrap_spec: ProviderObject,
    /// The infrastructure object to make.
    pub infrastructure_spec: ProviderObject,
    /// What goes onto the CAPI Machine besides the references.
    #[serde(default)]
    pub machine_template: MachineTemplate,
    /// 0-100; goes first when transitions are limited or the queue is long.
    #[serde(default = "middle_priority")]
    pub priority: i32,
    /// The whole graceful shutdown up to the Machine's deletion, drain included.
    #[serde(default = "five_minutes")]
    pub graceful_shutdown_timeout: String,
    /// How long draining may take.
    #[serde(default = "five_minutes")]
    pub node_drain_timeout: String,
    /// How the node is emptied.
    #[serde(default)]
    pub drain: DrainSpec,
    /// Remove the machine now, without draining. Phase `Terminated` until false again.
    #[serde(default)]
    pub kill_switch: bool,
    /// How an emergency reclaim treats pods.
    #[serde(default)]
    pub reclaim: ReclaimSpec,
    /// Process names; non-empty installs the reclaim agent on the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kill_if_commands: Vec<String>,
    /// Taints that the controller keeps on the Node once it is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_taints: Vec<NodeTaint>,
    /// The workload cluster of the Node. Absent: the Secret `<clusterName>-kubeconfig` when present,
    /// else the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KubeconfigSecretRef>,
    /// A Machine with no Ready node by then is deleted and made again.
    #[serde(default = "twenty_minutes")]
    pub join_timeout: String,
    /// Wins over the schedule until it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#override: Option<OverrideSpec>,
}

const fn middle_priority() -> i32 {
    50
}

fn five_minutes() -> String {
    "5m".to_owned()
}

fn twenty_minutes() -> String {
    "20m".to_owned()
}
