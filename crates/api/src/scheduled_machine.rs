//! The object that a person writes.

use crate::rules;
use crate::schema::{validations, without_null};
use crate::spec::{
    DrainSpec, KubeconfigSecretRef, MachineTemplate, NodeTaint, OverrideSpec, ProviderObject, ReclaimSpec,
    ScheduleSpec,
};
use crate::status::ScheduledMachineStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Which machine is lent, to which cluster, when, and how it is given back.
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
    derive = "PartialEq",
    doc = "A physical machine, lent to a Cluster API cluster by the clock.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "In Schedule", "type": "boolean", "jsonPath": ".status.inSchedule"}"#,
    printcolumn = r#"{"name": "Machine", "type": "string", "jsonPath": ".status.machineRef.name"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeRef.name"}"#,
    printcolumn = r#"{"name": "Next Change", "type": "string", "jsonPath": ".status.nextChange"}"#,
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.clusterName", "priority": 1}"#,
    printcolumn = r#"{"name": "Timezone", "type": "string", "jsonPath": ".spec.schedule.timezone", "priority": 1}"#,
    printcolumn = r#"{"name": "Enabled", "type": "boolean", "jsonPath": ".spec.schedule.enabled", "priority": 1}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason", "description": "Why the condition Ready has its value.", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = without_null)]
pub struct ScheduledMachineSpec {
    /// When the machine should belong to its cluster.
    pub schedule: ScheduleSpec,
    /// The name of the Cluster API cluster that the machine joins. The Cluster is in the same namespace.
    #[schemars(schema_with = "crate::schema::cluster_name")]
    pub cluster_name: String,
    /// The bootstrap object that is made for the Machine.
    pub bootstrap_spec: ProviderObject,
    /// The infrastructure object that is made for the Machine.
    pub infrastructure_spec: ProviderObject,
    /// What goes onto the Cluster API Machine besides its references.
    #[serde(default)]
    pub machine_template: MachineTemplate,
    /// Which machine goes first when transitions are limited or the queue is long: 0 last, 100 first.
    #[serde(default = "middle_priority")]
    #[schemars(range(min = 0, max = 100))]
    pub priority: i32,
    /// How long the whole graceful shutdown may take, up to the deletion of the Machine, drain included.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub graceful_shutdown_timeout: String,
    /// How long draining the node may take. Also passed on to Cluster API.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub node_drain_timeout: String,
    /// How the node is emptied.
    #[serde(default)]
    pub drain: DrainSpec,
    /// Remove the machine now, without draining it. The phase is `Terminated` until this is false again.
    #[serde(default)]
    pub kill_switch: bool,
    /// How an emergency reclaim treats pods.
    #[serde(default)]
    pub reclaim: ReclaimSpec,
    /// Names of processes whose start on the node means that its owner needs it back. If there are any,
    /// the reclaim agent is installed on the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::commands")]
    pub kill_if_commands: Vec<String>,
    /// Taints that the controller puts on the Node once it is Ready, and keeps there. No two have the same
    /// key and effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend(
            // A list by identity lets several writers own a taint each under server-side apply.
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["key", "effect"],
            "x-kubernetes-validations" = validations(&[rules::TAINTS_UNIQUE])
        )
    )]
    pub node_taints: Vec<NodeTaint>,
    /// The Secret with the kubeconfig of the workload cluster that the Node is in, in the same namespace.
    /// Absent: the Secret `<clusterName>-kubeconfig` if there is one, else the Node is in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KubeconfigSecretRef>,
    /// How long a Machine may take until its node is Ready. After that it is deleted and made again.
    #[serde(default = "twenty_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
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
