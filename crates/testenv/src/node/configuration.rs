//! The configuration files of containerd, the pod network and the kubelet.

use std::path::Path;

use serde_json::{Value, json};

use super::NodeBinaries;

/// The image of the program that holds the namespaces of each pod.
pub(super) const PAUSE_IMAGE: &str = "localhost/5spot/pause:1";
/// The socket of containerd, in the node's own `/run`.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// containerd's configuration.
pub(super) fn containerd(binaries: &NodeBinaries, network_directory: &Path) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
# Needs a service of systemd or the kernel's help that test machines do not give.
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
# A container may not be killed later than the machine's own processes, which only root in the initial namespace can request.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{network}"

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false

[plugins."io.containerd.nri.v1.nri"]
disable = true
"#,
        plugins = binaries.network_plugins.display(),
        network = network_directory.display(),
        runc = binaries.runc.display(),
    )
}

/// The files and ports in the configuration of the kubelet.
pub(super) struct KubeletSettings<'a> {
    pub(super) certificate_authority: &'a Path,
    pub(super) resolv_conf: &'a Path,
    pub(super) provider_id: &'a str,
    pub(super) address: &'a str,
    pub(super) port: u16,
    pub(super) health_port: u16,
}

/// The kubelet's configuration.
pub(super) fn kubelet(settings: &KubeletSettings<'_>) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "providerID": settings.provider_id,
        "address": settings.address,
        "port": settings.port,
        "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": settings.health_port,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": settings.certificate_authority },
        },
        "authorization": { "mode": "Webhook" },
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "resolvConf": settings.resolv_conf,
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": false,
        // The images were imported and cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        // The disk and the memory belong to the machine that runs the tests.
        "evictionHard": { "memory.available": "10Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
        "evictionPressureTransitionPeriod": "10s",
    })
}
