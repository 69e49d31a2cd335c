//! The `ScheduledMachine` resource.

use crate::rules;
use crate::schema::{validations, without_null};
use crate::spec::{
    DrainSpec, KubeconfigSecretRef, MachineTemplate, NodeTaint, OverrideSpec, ProviderObject, ReclaimSpec,
    ScheduleSpec,
};
use crate::status::ScheduledMachineStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The machine to lend, the cluster that it joins, the schedule, and the way in which it is returned.
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
    doc = "A physical machine that is lent to a Cluster API cluster on a schedule.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "In Schedule", "type": "boolean", "jsonPath": ".status.inSchedule"}"#,
    printcolumn = r#"{"name": "Machine", "type": "string", "jsonPath": ".status.machineRef.name"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeRef.name"}"#,
    printcolumn = r#"{"name": "Next Change", "type": "string", "jsonPath": ".status.nextChange"}"#,
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.clusterName", "priority": 1}"#,
    printcolumn = r#"{"name": "Timezone", "type": "string", "jsonPath": ".spec.schedule.timezone", "priority": 1}"#,
    printcolumn = r#"{"name": "Enabled", "type": "boolean", "jsonPath": ".spec.schedule.enabled", "priority": 1}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason", "description": "The reason of the condition Ready.", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = without_null)]
pub struct ScheduledMachineSpec {
    /// The times at which the machine belongs to its cluster.
    pub schedule: ScheduleSpec,
    /// The name of the Cluster API Cluster that the machine joins, in the same namespace.
    #[schemars(schema_with = "crate::schema::cluster_name")]
    pub cluster_name: String,
    /// The bootstrap object to create for the Machine.
    pub bootstrap_spec: ProviderObject,
    /// The infrastructure object to create for the Machine.
    pub infrastructure_spec: ProviderObject,
    /// Labels, annotations and other fields of the Cluster API Machine.
    #[serde(default)]
    pub machine_template: MachineTemplate,
    /// The order in which machines are served when there is a backlog: 100 is served first, 0 last.
    #[serde(default = "default_priority")]
    #[schemars(range(min = 0, max = 100))]
    pub priority: i32,
    /// The time limit for the whole graceful shutdown, from its start to the deletion of the Machine. It includes the drain.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub graceful_shutdown_timeout: String,
    /// The time limit for draining the node. It is also passed on to Cluster API.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub node_drain_timeout: String,
    /// Settings of the node drain.
    #[serde(default)]
    pub drain: DrainSpec,
    /// Removes the machine immediately, without draining its node. The phase stays `Terminated` until this is false again.
    #[serde(default)]
    pub kill_switch: bool,
    /// Settings of the emergency reclaim.
    #[serde(default)]
    pub reclaim: ReclaimSpec,
    /// Process names. When one of these processes starts on the node, the owner of the machine needs it back, and an
    /// emergency reclaim begins. If the list is not empty, the reclaim agent runs on the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::commands")]
    pub kill_if_commands: Vec<String>,
    /// Taints that the controller sets on the Node when it is Ready, and keeps there. No two may have the same key and
    /// effect.
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
    /// The Secret with the kubeconfig of the workload cluster that the Node joins, in the same namespace. The default is
    /// the Secret `<clusterName>-kubeconfig`, which Cluster API creates. Without a Secret no machine is created, unless
    /// the controller runs with `--management-nodes-namespace` for this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KubeconfigSecretRef>,
    /// The physical machine, by any name that is the same in every `ScheduledMachine` that lends it. Objects with the same
    /// identity, in any namespace, never hold the machine at the same time: the others wait in phase `Pending`. The default
    /// is `address:port` of an `infrastructureSpec` of kind `RemoteMachine`. Without an identity nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::machine_identity")]
    pub machine_identity: Option<String>,
    /// The time limit for the node of a new Machine to become Ready. After that the Machine is deleted, and another one is created.
    #[serde(default = "twenty_minutes")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub join_timeout: String,
    /// A temporary override of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#override: Option<OverrideSpec>,
}

const fn default_priority() -> i32 {
    50
}

fn five_minutes() -> String {
    "5m".to_owned()
}

fn twenty_minutes() -> String {
    "20m".to_owned()
}
