//! A real Kubernetes control plane for tests, as plain processes of this machine: two clusters with etcd,
//! kube-apiserver, kube-controller-manager and kube-scheduler, Cluster API with its webhooks, and kwok, which
//! simulates nodes. A real node with kubelet and containerd can join them.
//!
//! No container runtime, no root and no network access are needed to run the control plane, except for the real
//! node and for the first build.
//!
//! - [`build`] builds all programs from source, once, into a [`cache`] that is keyed by [`versions`].
//! - [`control_plane`] starts and stops the clusters, and can suspend, kill and restart each component.
//! - [`test_clusters`] shares one control plane among the tests of a program; every test gets a namespace in both
//!   clusters. [`harness`] runs the tests.
//! - [`provider`] is a stand-in for an infrastructure and bootstrap provider, and [`node`] is the real node.
//! - [`audit`] reads the audit logs, [`grants`] compares them with roles, [`timeline`] records what happened, and
//!   [`wait`] waits for states of objects. [`prometheus`] evaluates the alert rules with the metrics of a controller.
//! - [`guard`] ensures that no process outlives the program that started it. A program calls [`guard::enter`] first
//!   in its `main`.

pub mod audit;
pub mod binaries;
pub mod build;
pub mod cache;
pub mod capi_cluster;
pub mod cgroup;
pub mod cluster;
pub mod control_plane;
pub mod grants;
pub mod guard;
pub mod harness;
pub mod identity;
pub mod kinds;
pub mod kubeconfig;
pub mod link;
pub mod manifests;
pub mod node;
pub mod pki;
mod ports;
pub mod probe;
pub mod process;
pub mod prometheus;
pub mod provider;
pub mod proxy;
pub mod run_directory;
pub mod test_clusters;
pub mod timeline;
pub mod versions;
pub mod wait;
pub mod wire;
