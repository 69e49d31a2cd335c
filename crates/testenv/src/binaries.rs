//! The paths of the programs and manifests of the control plane.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, CacheEnvironment, CacheError};
use crate::versions::{CLUSTER_API, ETCD, HELM, KUBERNETES, KWOK, PROMETHEUS_OPERATOR};

/// The environment variable with the directory of prebuilt programs, from the test tools of Kubernetes.
pub const ENVTEST_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The programs in such a directory.
pub const ENVTEST_PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// The paths of all programs and manifests.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// The store of both clusters.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// Garbage collection, service accounts, pod garbage collection, PDB status.
    pub kube_controller_manager: PathBuf,
    /// The scheduler.
    pub kube_scheduler: PathBuf,
    /// The command line client.
    pub kubectl: PathBuf,
    /// The stand-in for kubelets.
    pub kwok: PathBuf,
    /// kwok's stages, a directory.
    pub kwok_stages: PathBuf,
    /// Cluster API's core controllers and webhooks.
    pub cluster_api: PathBuf,
    /// Cluster API's manifests: `crds`, `rbac`, `webhooks`, `kubeadm-crds`.
    pub cluster_api_manifests: PathBuf,
}

impl Binaries {
    /// The paths once everything has been built into `cache`, except for what `envtest` has.
    pub fn at(cache: &Cache, envtest: Option<&Path>) -> Self {
        let kubernetes = cache.component("kubernetes", KUBERNETES);
        let kwok = cache.component("kwok", KWOK);
        let cluster_api = cache.component("cluster-api", CLUSTER_API);
        let provided = |name: &str, built: PathBuf| match envtest.map(|directory| directory.join(name)) {
            Some(path) if path.is_file() => path,
            Some(_) | None => built,
        };
        Self {
            etcd: provided("etcd", cache.component("etcd", ETCD).join("etcd")),
            kube_apiserver: provided("kube-apiserver", kubernetes.join("kube-apiserver")),
            kube_controller_manager: kubernetes.join("kube-controller-manager"),
            kube_scheduler: kubernetes.join("kube-scheduler"),
            kubectl: provided("kubectl", kubernetes.join("kubectl")),
            kwok: kwok.join("kwok"),
            kwok_stages: kwok.join("stages"),
            cluster_api: cluster_api.join("cluster-api"),
            cluster_api_manifests: cluster_api,
        }
    }

    /// The paths according to the variables of this process. Builds nothing.
    pub fn from_process() -> Result<Self, CacheError> {
        let cache = Cache::locate(&CacheEnvironment::from_process())?;
        Ok(Self::at(&cache, envtest_directory().as_deref()))
    }

    /// The programs that are missing.
    pub fn missing(&self) -> Vec<&Path> {
        let all = [
            &self.etcd,
            &self.kube_apiserver,
            &self.kube_controller_manager,
            &self.kube_scheduler,
            &self.kubectl,
            &self.kwok,
            &self.kwok_stages,
            &self.cluster_api,
        ];
        all.into_iter().map(PathBuf::as_path).filter(|path| !path.exists()).collect()
    }
}

/// The directory that `KUBEBUILDER_ASSETS` names, if it is set.
pub fn envtest_directory() -> Option<PathBuf> {
    std::env::var_os(ENVTEST_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The path of Helm once [`build_for_installation`](crate::build::build_for_installation) has built it into `cache`.
pub fn helm(cache: &Cache) -> PathBuf {
    cache.component("helm", HELM).join("helm")
}

/// The directory of the CRDs of the Prometheus Operator, once
/// [`build_for_installation`](crate::build::build_for_installation) has copied them into `cache`.
pub fn prometheus_operator_crds(cache: &Cache) -> PathBuf {
    cache.component("prometheus-operator", PROMETHEUS_OPERATOR).join("monitoring-crds")
}
