//! The kubelets of all Nodes, and the controllers for Nodes: Ready and heartbeats; pods that start, complete
//! and stop; Nodes that become silent; pods of deleted Nodes.
//!
//! Left out: containers, probes, resources, and eviction by `NoExecute` taints.

mod actor;
mod node;
mod pod;

pub(super) use actor::Kubelet;
pub use node::machine_id;
pub use pod::{FINISHES_AFTER_ANNOTATION, STOPS_AFTER_ANNOTATION};
