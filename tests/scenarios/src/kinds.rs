//! The kinds that scenarios use, and their clusters.

use five_spot_api::names;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;

/// One of the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterRole {
    /// The cluster of `ScheduledMachine`s and Machines.
    Management,
    /// The cluster of Nodes and Pods.
    Workload,
}

/// A kind at a version, in one of the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKind {
    /// The cluster.
    pub side: ClusterRole,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// True if its objects are in a namespace.
    pub namespaced: bool,
}

const fn management(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> ObjectKind {
    ObjectKind { side: ClusterRole::Management, group, version, kind, plural, namespaced: true }
}

const fn workload(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> ObjectKind {
    ObjectKind { side: ClusterRole::Workload, group, version, kind, plural, namespaced: true }
}

/// The kind that users write.
pub const SCHEDULED_MACHINE: ObjectKind =
    management(names::GROUP, names::VERSION, names::KIND, "scheduledmachines");
/// Cluster API's Machine.
pub const MACHINE: ObjectKind = management("cluster.x-k8s.io", "v1beta2", "Machine", "machines");
/// Cluster API's Cluster.
pub const CLUSTER: ObjectKind = management("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
/// Cluster API's rules of how pods leave a Node.
pub const DRAIN_RULE: ObjectKind =
    management("cluster.x-k8s.io", "v1beta2", "MachineDrainRule", "machinedrainrules");
/// k0smotron's bootstrap configuration.
pub const BOOTSTRAP: ObjectKind =
    management("bootstrap.cluster.x-k8s.io", "v1beta2", "K0sWorkerConfig", "k0sworkerconfigs");
/// k0smotron's machine that is reached by SSH.
pub const INFRASTRUCTURE: ObjectKind =
    management("infrastructure.cluster.x-k8s.io", "v1beta2", "RemoteMachine", "remotemachines");
/// The bootstrap configuration of a provider that differs from k0smotron and supports only the contract
/// v1beta1.
pub const LAB_SUPPLY: ObjectKind =
    management("bootstrap.cluster.x-k8s.io", "v1alpha3", "LabSupply", "labsupplies");
/// Its machine.
pub const LAB_BENCH: ObjectKind =
    management("infrastructure.cluster.x-k8s.io", "v1alpha3", "LabBench", "labbenches");
/// An externally managed control plane.
pub const CONTROL_PLANE: ObjectKind =
    management("controlplane.cluster.x-k8s.io", "v1beta2", "StubControlPlane", "stubcontrolplanes");
/// Secrets of the management cluster.
pub const SECRET: ObjectKind = management("", "v1", "Secret", "secrets");
/// Namespaces of the management cluster.
pub const NAMESPACE: ObjectKind =
    ObjectKind { namespaced: false, ..management("", "v1", "Namespace", "namespaces") };
/// Definitions of kinds in the management cluster.
pub const DEFINITION: ObjectKind = ObjectKind {
    namespaced: false,
    ..management("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
};
/// Rules by which the management cluster refuses objects.
pub const ADMISSION_POLICY: ObjectKind = ObjectKind {
    namespaced: false,
    ..management(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    )
};
/// The cluster in which they hold.
pub const ADMISSION_BINDING: ObjectKind = ObjectKind {
    namespaced: false,
    ..management(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    )
};
/// Nodes.
pub const NODE: ObjectKind = ObjectKind { namespaced: false, ..workload("", "v1", "Node", "nodes") };
/// Pods.
pub const POD: ObjectKind = workload("", "v1", "Pod", "pods");
/// Deployments.
pub const DEPLOYMENT: ObjectKind = workload("apps", "v1", "Deployment", "deployments");
/// Pods on every node.
pub const DAEMON_SET: ObjectKind = workload("apps", "v1", "DaemonSet", "daemonsets");
/// Pod disruption budgets.
pub const BUDGET: ObjectKind = workload("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

impl ObjectKind {
    /// The same kind where Cluster API speaks this version: its kinds, and those of the providers here, have it.
    #[must_use]
    pub fn where_cluster_api_is(self, version: &'static str) -> Self {
        if self.group.ends_with("cluster.x-k8s.io") && self.version == "v1beta2" {
            Self { version, ..self }
        } else {
            self
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        self.resource().api_version
    }

    /// For kube's dynamic API.
    pub fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, self.version, self.kind);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }
}
