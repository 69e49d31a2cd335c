//! The eight processes, and the flags that each is started with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::binaries::Binaries;
use crate::cluster::{Side, audit_log_path};
use crate::probe::Probe;
use crate::process::ProcessSpec;

/// A process of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store of both clusters.
    Etcd,
    /// The API server of a cluster.
    ApiServer(Side),
    /// The controller-manager of a cluster.
    ControllerManager(Side),
    /// The scheduler of the workload cluster.
    Scheduler,
    /// The kubelets of the workload cluster.
    Kwok,
    /// Cluster API's controllers and webhooks.
    ClusterApi,
}

impl Component {
    /// All of them, in the order in which they start.
    pub const ALL: [Self; 8] = [
        Self::Etcd,
        Self::ApiServer(Side::Management),
        Self::ApiServer(Side::Workload),
        Self::ControllerManager(Side::Management),
        Self::ControllerManager(Side::Workload),
        Self::Scheduler,
        Self::Kwok,
        Self::ClusterApi,
    ];

    /// Its name in logs, in `status` and in timelines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer(Side::Management) => "management-kube-apiserver",
            Self::ApiServer(Side::Workload) => "workload-kube-apiserver",
            Self::ControllerManager(Side::Management) => "management-kube-controller-manager",
            Self::ControllerManager(Side::Workload) => "workload-kube-controller-manager",
            Self::Scheduler => "workload-kube-scheduler",
            Self::Kwok => "workload-kwok",
            Self::ClusterApi => "management-cluster-api",
        }
    }
}

/// The ports that the processes listen on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd_client: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) management: u16,
    pub(crate) workload: u16,
    pub(crate) management_controller_manager: u16,
    pub(crate) workload_controller_manager: u16,
    pub(crate) scheduler: u16,
    pub(crate) kwok: u16,
    pub(crate) cluster_api_webhook: u16,
    pub(crate) cluster_api_health: u16,
    pub(crate) cluster_api_diagnostics: u16,
}

impl Ports {
    pub(crate) fn find() -> std::io::Result<Self> {
        let [
            etcd_client,
            etcd_peer,
            management,
            workload,
            management_controller_manager,
            workload_controller_manager,
            scheduler,
            kwok,
            cluster_api_webhook,
            cluster_api_health,
            cluster_api_diagnostics,
        ] = crate::ports::free()?;
        Ok(Self {
            etcd_client,
            etcd_peer,
            management,
            workload,
            management_controller_manager,
            workload_controller_manager,
            scheduler,
            kwok,
            cluster_api_webhook,
            cluster_api_health,
            cluster_api_diagnostics,
        })
    }

    pub(crate) fn api_server(&self, side: Side) -> u16 {
        match side {
            Side::Management => self.management,
            Side::Workload => self.workload,
        }
    }

    fn controller_manager(&self, side: Side) -> u16 {
        match side {
            Side::Management => self.management_controller_manager,
            Side::Workload => self.workload_controller_manager,
        }
    }
}

/// The files of a run directory that components use.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) directory: PathBuf,
}

impl Files {
    pub(crate) fn pki(&self, name: &str) -> PathBuf {
        self.directory.join("pki").join(name)
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.directory.join("bin")
    }

    pub(crate) fn audit_policy(&self) -> PathBuf {
        self.directory.join("audit-policy.yaml")
    }

    pub(crate) fn kwok_config(&self) -> PathBuf {
        self.directory.join("kwok.yaml")
    }

    /// The kubeconfig of a component, which is not the administrator's.
    pub(crate) fn kubeconfig(&self, component: Component) -> PathBuf {
        self.directory.join("kubeconfigs").join(component.name())
    }
}

/// The command line of a component and its health endpoint.
pub(crate) struct Plan {
    pub(crate) spec: ProcessSpec,
    pub(crate) probe: Probe,
}

pub(crate) fn plan(component: Component, binaries: &Binaries, files: &Files, ports: &Ports) -> Plan {
    let (program, flags, probe) = match component {
        Component::Etcd => (&binaries.etcd, etcd(files, ports), http(ports.etcd_client, "/health")),
        Component::ApiServer(side) => (
            &binaries.kube_apiserver,
            api_server(side, files, ports),
            https(ports.api_server(side), "/readyz"),
        ),
        Component::ControllerManager(side) => (
            &binaries.kube_controller_manager,
            controller_manager(side, files, ports),
            https(ports.controller_manager(side), "/healthz"),
        ),
        Component::Scheduler => {
            (&binaries.kube_scheduler, scheduler(files, ports), https(ports.scheduler, "/healthz"))
        }
        Component::Kwok => (&binaries.kwok, kwok(files, ports), http(ports.kwok, "/healthz")),
        Component::ClusterApi => {
            (&binaries.cluster_api, cluster_api(files, ports), http(ports.cluster_api_health, "/readyz"))
        }
    };
    let spec = ProcessSpec {
        name: component.name().into(),
        program: program.clone(),
        arguments: flags.0,
        environment: vec![],
        directory: files.directory.clone(),
    };
    Plan { spec, probe }
}

fn http(port: u16, path: &str) -> Probe {
    Probe::Http { port, path: path.into() }
}

fn https(port: u16, path: &str) -> Probe {
    Probe::Https { port, path: path.into() }
}

/// Arguments in the form `--name=value`.
#[derive(Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn set(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.0.push(format!("--{name}={value}").into());
        self
    }

    fn path(mut self, name: &str, path: &Path) -> Self {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(path);
        self.0.push(argument);
        self
    }
}

fn etcd(files: &Files, ports: &Ports) -> Flags {
    let client = format!("http://127.0.0.1:{}", ports.etcd_client);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    Flags::default()
        .path("data-dir", &files.directory.join("etcd"))
        // The data are removed after the run, so waiting for the disk has no benefit.
        .set("unsafe-no-fsync", true)
        .set("listen-client-urls", &client)
        .set("advertise-client-urls", &client)
        .set("listen-peer-urls", &peer)
        .set("initial-advertise-peer-urls", &peer)
        .set("initial-cluster", format!("default={peer}"))
}

fn api_server(side: Side, files: &Files, ports: &Ports) -> Flags {
    Flags::default()
        .set("etcd-servers", format!("http://127.0.0.1:{}", ports.etcd_client))
        .set("etcd-prefix", format!("/{}", side.name()))
        .set("bind-address", "127.0.0.1")
        .set("advertise-address", "127.0.0.1")
        .set("secure-port", ports.api_server(side))
        .set("endpoint-reconciler-type", "none")
        .set("authorization-mode", "Node,RBAC")
        .set("allow-privileged", true)
        .path("client-ca-file", &files.pki("ca.crt"))
        .path("tls-cert-file", &files.pki("server.crt"))
        .path("tls-private-key-file", &files.pki("server.key"))
        // For logs and commands in the pods of a real node.
        .path("kubelet-client-certificate", &files.pki("kubelet-client.crt"))
        .path("kubelet-client-key", &files.pki("kubelet-client.key"))
        .set("kubelet-preferred-address-types", "InternalIP")
        .set("service-account-issuer", "https://kubernetes.default.svc")
        .path("service-account-key-file", &files.pki("service-accounts.pub"))
        .path("service-account-signing-key-file", &files.pki("service-accounts.key"))
        .set("service-cluster-ip-range", "10.0.0.0/24")
        .path("audit-policy-file", &files.audit_policy())
        .path("audit-log-path", &audit_log_path(&files.directory, side))
        // Never rotated: tests read one file from its beginning.
        .set("audit-log-maxsize", 16_384)
        .set("profiling", false)
}

fn controller_manager(side: Side, files: &Files, ports: &Ports) -> Flags {
    let kubeconfig = files.kubeconfig(Component::ControllerManager(side));
    Flags::default()
        .path("kubeconfig", &kubeconfig)
        .path("authentication-kubeconfig", &kubeconfig)
        .path("authorization-kubeconfig", &kubeconfig)
        .set("bind-address", "127.0.0.1")
        .set("secure-port", ports.controller_manager(side))
        .set("leader-elect", false)
        .set("use-service-account-credentials", true)
        .path("service-account-private-key-file", &files.pki("service-accounts.key"))
        .path("root-ca-file", &files.pki("ca.crt"))
        .path("cluster-signing-cert-file", &files.pki("ca.crt"))
        .path("cluster-signing-key-file", &files.pki("ca.key"))
        .set("profiling", false)
}

fn scheduler(files: &Files, ports: &Ports) -> Flags {
    let kubeconfig = files.kubeconfig(Component::Scheduler);
    Flags::default()
        .path("kubeconfig", &kubeconfig)
        .path("authentication-kubeconfig", &kubeconfig)
        .path("authorization-kubeconfig", &kubeconfig)
        .set("bind-address", "127.0.0.1")
        .set("secure-port", ports.scheduler)
        .set("leader-elect", false)
        .set("profiling", false)
}

fn kwok(files: &Files, ports: &Ports) -> Flags {
    Flags::default()
        .path("kubeconfig", &files.kubeconfig(Component::Kwok))
        .path("config", &files.kwok_config())
        .set("manage-all-nodes", false)
        .set("manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake")
        .set("node-lease-duration-seconds", 40)
        // kwok's default is the range of the service addresses.
        .set("cidr", "10.244.0.0/16")
        .set("server-address", format!("127.0.0.1:{}", ports.kwok))
}

fn cluster_api(files: &Files, ports: &Ports) -> Flags {
    Flags::default()
        .path("kubeconfig", &files.kubeconfig(Component::ClusterApi))
        .set("webhook-port", ports.cluster_api_webhook)
        .path("webhook-cert-dir", &files.pki("cluster-api-webhook"))
        .set("health-addr", format!("127.0.0.1:{}", ports.cluster_api_health))
        .set("diagnostics-address", format!("127.0.0.1:{}", ports.cluster_api_diagnostics))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Component::ALL.iter().map(|component| component.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Component::ALL.len());
    }
}
