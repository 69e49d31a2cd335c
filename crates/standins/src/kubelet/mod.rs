//! The kubelets of all Nodes, and the controllers that watch over Nodes: Ready and heartbeats, pods that start, finish
//! and stop, Nodes that fall silent, pods whose Node is gone.
//!
//! Left out: containers, probes, resources, and eviction by `NoExecute` taints.

mod actor;
mod node;
mod pod;

pub(super) use actor::Kubelet;
pub use node::machine_id;
pub use pod::{FINISHES_AFTER_ANNOTATION, STOPS_AFTER_ANNOTATION};
