//! The paths of the programs of a real node.

use std::path::PathBuf;

use crate::build::debian_package;
use crate::cache::{Cache, CacheEnvironment, CacheError};
use crate::versions::{CONTAINERD, KUBERNETES};

/// The path of everything that a real node runs.
#[derive(Debug, Clone)]
pub struct NodeBinaries {
    /// The node agent of Kubernetes.
    pub kubelet: PathBuf,
    /// The container runtime. Its shim is beside it.
    pub containerd: PathBuf,
    /// containerd's command line, which imports images.
    pub ctr: PathBuf,
    /// The OCI runtime.
    pub runc: PathBuf,
    /// The directory of the network plugins.
    pub network_plugins: PathBuf,
    /// A statically linked shell, for the pods of tests.
    pub busybox: PathBuf,
    /// The program that holds the namespaces of a pod.
    pub pause: PathBuf,
    /// Its source.
    pub(crate) pause_source: PathBuf,
}

impl NodeBinaries {
    /// The paths once everything has been built into `cache`.
    pub fn at(cache: &Cache) -> Self {
        let kubernetes = cache.component("kubernetes", KUBERNETES);
        let containerd = cache.component("containerd", CONTAINERD);
        Self {
            kubelet: kubernetes.join("kubelet"),
            ctr: containerd.join("ctr"),
            containerd: containerd.join("containerd"),
            runc: debian_package(cache, "runc").join("usr/sbin/runc"),
            network_plugins: debian_package(cache, "containernetworking-plugins").join("usr/lib/cni"),
            busybox: debian_package(cache, "busybox-static").join("bin/busybox"),
            pause: kubernetes.join("pause"),
            pause_source: kubernetes.join("pause-source/pause.c"),
        }
    }

    /// The paths according to the variables of this process. Builds nothing.
    pub fn from_process() -> Result<Self, CacheError> {
        Ok(Self::at(&Cache::locate(&CacheEnvironment::from_process())?))
    }

    /// The files that are missing.
    pub fn missing(&self) -> Vec<PathBuf> {
        let all = [
            &self.kubelet,
            &self.containerd,
            &self.ctr,
            &self.runc,
            &self.network_plugins,
            &self.busybox,
            &self.pause,
        ];
        all.into_iter().filter(|path| !path.exists()).cloned().collect()
    }
}
