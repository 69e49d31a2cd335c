//! The third-party kinds of the harness and the tests, with their plural names, so that no discovery is
//! needed.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};

/// A kind at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThirdPartyKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> ThirdPartyKind {
    ThirdPartyKind { group, version, kind, plural }
}

const CORE: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Cluster API's Machine.
pub const MACHINE: ThirdPartyKind = kind(CORE, "v1beta2", "Machine", "machines");
/// Cluster API's Cluster.
pub const CLUSTER: ThirdPartyKind = kind(CORE, "v1beta2", "Cluster", "clusters");
/// k0smotron's bootstrap configuration of a worker.
pub const K0S_WORKER_CONFIG: ThirdPartyKind =
    kind(BOOTSTRAP, "v1beta2", "K0sWorkerConfig", "k0sworkerconfigs");
/// Cluster API's own bootstrap configuration.
pub const KUBEADM_CONFIG: ThirdPartyKind = kind(BOOTSTRAP, "v1beta2", "KubeadmConfig", "kubeadmconfigs");
/// k0smotron's machine that is reached by SSH.
pub const REMOTE_MACHINE: ThirdPartyKind = kind(INFRASTRUCTURE, "v1beta2", "RemoteMachine", "remotemachines");
/// k0smotron's cluster of such machines.
pub const REMOTE_CLUSTER: ThirdPartyKind = kind(INFRASTRUCTURE, "v1beta2", "RemoteCluster", "remoteclusters");
/// The bootstrap configuration of a provider that supports only the contract v1beta1.
pub const LAB_SUPPLY: ThirdPartyKind = kind(BOOTSTRAP, "v1alpha3", "LabSupply", "labsupplies");
/// Its machine.
pub const LAB_BENCH: ThirdPartyKind = kind(INFRASTRUCTURE, "v1alpha3", "LabBench", "labbenches");
/// A stub of an externally managed control plane.
pub const STUB_CONTROL_PLANE: ThirdPartyKind =
    kind("controlplane.cluster.x-k8s.io", "v1beta2", "StubControlPlane", "stubcontrolplanes");

impl ThirdPartyKind {
    /// The same kind at another version.
    #[must_use]
    pub const fn at(self, version: &'static str) -> Self {
        Self { version, ..self }
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

    /// The objects of one namespace.
    pub fn in_namespace(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }

    /// The objects of all namespaces.
    pub fn everywhere(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }
}
