//! Deployments and `ReplicaSets`, as far as their pods exist, are replaced, and are put on Nodes.
//!
//! The API serves no `binding`, and a pod's Node cannot be changed otherwise. So a pod is given its Node when it is
//! made; where none fits, it is made without one, and exchanged for another as soon as one does. A template that
//! changes replaces all pods at once. Pods of nobody stay where they were put, or wait.

mod actor;
mod deployment;
mod placement;
mod replicas;

pub(super) use actor::Workloads;
