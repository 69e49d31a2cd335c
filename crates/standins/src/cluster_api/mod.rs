//! Cluster API's part: a Machine comes up when its parts are ready, and goes down in Cluster API's order.
//!
//! Up: finalizer, controller references on bootstrap and infrastructure objects, `spec.bootstrap.dataSecretName`,
//! `spec.providerID`, the Node that has it. Down: pre-drain hooks, cordon, evictions in passes, volumes, pre-terminate
//! hooks, infrastructure, bootstrap, Node, finalizer. A paused Machine is left alone.
//!
//! Left out: everything above Machines (sets, deployments, classes, health checks), conversion between versions (a
//! world serves one of them), in-key updates, and labels copied to Nodes.

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

use kube::api::DynamicObject;
use std::sync::Arc;

/// The facts about a Machine and its parts.
#[derive(Clone, Debug)]
struct Facts {
    machine: Arc<DynamicObject>,
    cluster: Option<Arc<DynamicObject>>,
    /// The object that `controlPlaneRef` of the Cluster refers to.
    control_plane: Option<Arc<DynamicObject>>,
    /// True if any Machine that stays is part of a control plane that Cluster API made.
    has_control_plane_machine: bool,
    bootstrap: Option<Arc<DynamicObject>>,
    infrastructure: Option<Arc<DynamicObject>>,
    /// The Node with the Machine's provider id.
    node: Option<Arc<DynamicObject>>,
}

#[cfg(test)]
impl Facts {
    /// A Machine of which nothing is known but that it is there.
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

/// `status` of a condition in the form that every object of these groups uses; empty if there is none.
fn condition_status<'a>(object: &'a DynamicObject, kind: &str) -> &'a str {
    let mut conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == kind).and_then(|one| one["status"].as_str()).unwrap_or_default()
}
