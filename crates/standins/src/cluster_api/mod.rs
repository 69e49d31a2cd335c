//! Cluster API: provisions a Machine when its parts are ready, and deletes it in the order of Cluster API.
//!
//! Provisioning: finalizer, controller references on bootstrap and infrastructure objects,
//! `spec.bootstrap.dataSecretName`, `spec.providerID`, the Node with this ID. Deletion: pre-drain hooks,
//! cordon, evictions in passes, volumes, pre-terminate hooks, infrastructure, bootstrap, Node, finalizer.
//! Paused Machines are not changed.
//!
//! Left out: everything above Machines (sets, deployments, classes, health checks), conversion between
//! versions (an environment serves one of them), in-place updates, and labels that are copied to Nodes.

mod actor;
mod cluster;
mod conditions;
mod definitions;
mod deletion;
mod drain;
mod provisioning;
mod shape;
mod status;

pub(super) use actor::ClusterApi;
pub use definitions::crds;
pub use shape::Contract;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use std::sync::Arc;

/// The facts about a Machine and its parts.
#[derive(Clone, Debug)]
struct Facts {
    machine: Arc<DynamicObject>,
    cluster: Option<Arc<DynamicObject>>,
    /// The object that `controlPlaneRef` of the Cluster refers to.
    control_plane: Option<Arc<DynamicObject>>,
    /// True if a Machine that is not being deleted belongs to a control plane that Cluster API manages.
    has_control_plane_machine: bool,
    bootstrap: Option<Arc<DynamicObject>>,
    infrastructure: Option<Arc<DynamicObject>>,
    /// The Node with the provider ID of the Machine.
    node: Option<Arc<DynamicObject>>,
}

impl Facts {
    /// The same without a Node that the Machine does not name: Cluster API drains and deletes a Node by its name.
    fn with_named_node(mut self) -> Self {
        let named = &self.machine.data["status"]["nodeRef"]["name"];
        self.node = self.node.filter(|node| named.is_null() || *named == node.name_any());
        self
    }
}

#[cfg(test)]
impl Facts {
    /// A Machine of which only its existence is known.
    fn of_nothing() -> Self {
        let machine = serde_json::json!({"metadata": {"name": "m"}});
        Self {
            machine: Arc::new(serde_json::from_value(machine).expect("a Machine")),
            cluster: None,
            control_plane: None,
            has_control_plane_machine: false,
            bootstrap: None,
            infrastructure: None,
            node: None,
        }
    }
}

/// The `status` of a condition; empty if there is none.
fn condition_status<'a>(object: &'a DynamicObject, kind: &str) -> &'a str {
    let mut conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == kind).and_then(|one| one["status"].as_str()).unwrap_or_default()
}
