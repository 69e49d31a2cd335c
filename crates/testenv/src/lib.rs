//! The real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, Cluster API with
//! its webhooks, and kwok for nodes, in two clusters; and a real node with kubelet and containerd.

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
pub mod provider;
pub mod proxy;
pub mod run_directory;
pub mod test_clusters;
pub mod timeline;
pub mod versions;
pub mod wait;
pub mod wire;
