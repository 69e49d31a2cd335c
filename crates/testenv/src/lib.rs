//! The real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, Cluster API with
//! its webhooks, and kwok for nodes, in two clusters.

pub mod binaries;
pub mod build;
pub mod cache;
pub mod guard;
pub mod run_directory;
pub mod versions;
