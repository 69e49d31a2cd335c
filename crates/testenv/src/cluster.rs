//! A handle to one of the two clusters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;

use crate::audit::AuditLog;
use crate::kubeconfig::{self, Credentials, TestClientError};
use crate::pki::Identity;

/// One of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The cluster of `ScheduledMachines`, Machines and provider objects.
    Management,
    /// The cluster of Nodes and Pods.
    Workload,
}

impl Side {
    /// Its name in directories, logs and timelines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Management => "management",
            Self::Workload => "workload",
        }
    }
}

/// One cluster: its address and its clients.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    side: Side,
    server: String,
    authority: String,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
    client: Client,
}

/// The user agent of the harness itself, which distinguishes its requests from those under test.
pub const HARNESS_AGENT: &str = "5spot-testenv";

/// The prefix of the controller's user agent.
pub const CONTROLLER_AGENT: &str = "5spot-controller/";

impl Cluster {
    pub(crate) async fn connect(
        side: Side,
        port: u16,
        authority: String,
        admin: Identity,
        directory: &Path,
    ) -> Result<Self, TestClientError> {
        let server = format!("https://127.0.0.1:{port}");
        let text = kubeconfig::render(&server, &authority, &Credentials::Certificate(admin));
        let client = kubeconfig::client(&text, HARNESS_AGENT).await?;
        let shared = Shared {
            side,
            server,
            authority,
            kubeconfig: kubeconfig_path(directory, side),
            audit_log: audit_log_path(directory, side),
            client,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The side of this cluster.
    pub fn side(&self) -> Side {
        self.shared.side
    }

    /// The address of its API server.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// The administrator client of the harness. Code under test must not use it.
    pub fn admin(&self) -> Client {
        self.shared.client.clone()
    }

    /// The harness's kubeconfig, for `kubectl`.
    pub fn kubeconfig(&self) -> &Path {
        &self.shared.kubeconfig
    }

    /// The audit log of the API server.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::new(self.shared.side, self.shared.audit_log.clone())
    }

    /// The text of a kubeconfig for another identity, with the address `server` if it is not the API server itself
    /// (such as a proxy that can be disconnected).
    pub fn kubeconfig_for(&self, credentials: &Credentials, server: Option<&str>) -> String {
        kubeconfig::render(server.unwrap_or(&self.shared.server), &self.shared.authority, credentials)
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("side", &self.shared.side)
            .field("server", &self.shared.server)
            .finish()
    }
}

/// The path of the administrator's kubeconfig of a cluster in a run directory.
pub(crate) fn kubeconfig_path(directory: &Path, side: Side) -> PathBuf {
    directory.join(side.name()).join("kubeconfig")
}

/// The path of the audit log of a cluster in a run directory.
pub(crate) fn audit_log_path(directory: &Path, side: Side) -> PathBuf {
    directory.join(side.name()).join("audit.log")
}
