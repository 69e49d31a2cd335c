//! Deployments, `ReplicaSets` and `DaemonSets`, as far as their pods are created, replaced and assigned to
//! Nodes.
//!
//! The scheduler binds every pod without a Node to the Node with the fewest pods that accepts it; without
//! such a Node, the pod waits. A change of a template replaces all pods at once.
//!
//! Left out: resources, affinity, priorities and the condition `Unschedulable`.

mod actor;
mod daemon_set;
mod deployment;
mod placement;
mod pods;
mod replicas;
mod scheduler;

pub(super) use actor::Workloads;
