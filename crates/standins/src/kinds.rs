//! The kinds of the stand-ins: built-in ones from a table, all others from their CRDs.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use std::sync::Arc;

/// Cluster API's own kinds.
pub(super) const CORE_GROUP: &str = "cluster.x-k8s.io";
/// The API group of bootstrap providers.
pub(super) const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";
/// The API group of infrastructure providers.
pub(super) const INFRASTRUCTURE_GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The API group of control plane providers.
pub(super) const CONTROL_PLANE_GROUP: &str = "controlplane.cluster.x-k8s.io";

/// A kind in the version in which it is watched and written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    group: String,
    kind: String,
    version: String,
    plural: String,
}

/// An object by kind and name. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Kind {
    pub(super) fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self(Arc::new(Parts { group, kind, version, plural }))
    }

    pub(super) fn node() -> Self {
        Self::new("", "v1", "Node", "nodes")
    }

    pub(super) fn pod() -> Self {
        Self::new("", "v1", "Pod", "pods")
    }

    pub(super) fn secret() -> Self {
        Self::new("", "v1", "Secret", "secrets")
    }

    pub(super) fn lease() -> Self {
        Self::new("coordination.k8s.io", "v1", "Lease", "leases")
    }

    pub(super) fn deployment() -> Self {
        Self::new("apps", "v1", "Deployment", "deployments")
    }

    pub(super) fn replica_set() -> Self {
        Self::new("apps", "v1", "ReplicaSet", "replicasets")
    }

    pub(super) fn daemon_set() -> Self {
        Self::new("apps", "v1", "DaemonSet", "daemonsets")
    }

    pub(super) fn definition() -> Self {
        Self::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
    }

    /// The kind of an established CRD, in its storage version.
    pub(super) fn defined_by(crd: &DynamicObject) -> Option<Self> {
        let mut conditions = crd.data["status"]["conditions"].as_array()?.iter();
        conditions.find(|one| one["type"] == "Established" && one["status"] == "True")?;
        let spec = &crd.data["spec"];
        let stored = spec["versions"].as_array()?.iter().find(|version| version["storage"] == true)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, names) = (text(&spec["group"]), &spec["names"]);
        Some(Self::new(&group, &text(&stored["name"]), &text(&names["kind"]), &text(&names["plural"])))
    }

    pub(super) fn group(&self) -> &str {
        &self.0.group
    }

    pub(super) fn kind(&self) -> &str {
        &self.0.kind
    }

    pub(super) fn version(&self) -> &str {
        &self.0.version
    }

    /// Returns true if this is the given kind, in any version.
    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.0.group == group && self.0.kind == kind
    }

    /// `group/version`, or the version alone for the core group.
    pub(super) fn api_version(&self) -> String {
        self.resource().api_version
    }

    fn resource(&self) -> ApiResource {
        let Parts { group, version, kind, plural } = &*self.0;
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// The API for the objects of all namespaces.
    pub(super) fn everywhere(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    pub(super) fn key(&self, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey { kind: self.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The path of an object of this kind.
    pub(super) fn key_of(&self, object: &DynamicObject) -> ObjectKey {
        self.key(object.metadata.namespace.as_deref().unwrap_or_default(), &object.name_any())
    }
}

impl ObjectKey {
    /// The API for objects in the same namespace as this one.
    pub(super) fn api(&self, client: &Client) -> Api<DynamicObject> {
        let resource = self.kind.resource();
        if self.namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), &self.namespace, &resource)
        }
    }
}
