//! Deployments, `ReplicaSets` and `DaemonSets`, as far as their pods exist, are replaced, and are put on Nodes.
//!
//! The scheduler binds every pod that has no Node to the emptiest one that takes it, and lets it wait while there is
//! none. A template that changes replaces all pods at once.
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
