//! One control plane for a whole test program, and a context in it for each test: a namespace in both clusters that no
//! other test uses.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::audit::AuditQuery;
use crate::binaries::Binaries;
use crate::cache::CacheError;
use crate::cluster::{Cluster, Side};
use crate::control_plane::{Component, ControlPlane, ControlPlaneError};
use crate::kubeconfig::TestClientError;
use crate::provider::{Provider, ProviderBehaviour};
use crate::timeline::{self, Entry, Recorder};
use crate::wait::{self, WaitError};
use crate::{proxy, run_directory};

/// The number of lines of each component's log that a failed test shows.
const LOG_LINES: usize = 50;
/// The controller-manager creates a namespace's default `ServiceAccount` within a second.
const NAMESPACE_READY_WITHIN: std::time::Duration = std::time::Duration::from_mins(1);

/// The reason why the clusters, or a namespace in them, could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TestClustersError {
    /// The paths of the binaries are unknown.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The control plane did not start.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// The provider did not start.
    #[error(transparent)]
    Client(#[from] TestClientError),
    /// A namespace could not be made.
    #[error("failed to create the namespace {name}: {source}")]
    Namespace {
        /// Its name.
        name: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// A namespace was made and never became usable.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Both clusters, the provider and the recorder.
pub struct TestClusters {
    control_plane: ControlPlane,
    provider: Provider,
    recorder: Recorder,
    contexts: AtomicU32,
    addresses: AtomicU32,
}

impl TestClusters {
    /// Starts the clusters that the tests of this program share. Leftovers of killed programs are removed
    /// first.
    pub async fn start() -> Result<Arc<Self>, TestClustersError> {
        run_directory::sweep(&run_directory::base());
        Self::start_named(&format!("test-{}", std::process::id())).await
    }

    /// Starts another pair of clusters, for a test that disables a component that other tests need. It ends
    /// when it is stopped or dropped.
    pub async fn start_another(name: &str) -> Result<Arc<Self>, TestClustersError> {
        Self::start_named(&format!("test-{}-{name}", std::process::id())).await
    }

    async fn start_named(name: &str) -> Result<Arc<Self>, TestClustersError> {
        let base = run_directory::base();
        let binaries = Binaries::from_process()?;
        let control_plane = ControlPlane::start(&binaries, &base, name, |_| {}).await?;
        let (management, workload) = (control_plane.management(), control_plane.workload());
        let provider = Provider::start(management, workload).await?;
        let recorder = Recorder::start(management, workload);
        let (contexts, addresses) = (AtomicU32::new(0), AtomicU32::new(0));
        Ok(Arc::new(Self { control_plane, provider, recorder, contexts, addresses }))
    }

    /// The control plane, for tests that disturb its processes.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The recorder of the timeline.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Creates a context for the test with this name.
    pub async fn test_context(self: &Arc<Self>, test: &str) -> Result<TestContext, TestClustersError> {
        let number = self.contexts.fetch_add(1, Ordering::Relaxed);
        let namespace = namespace_for(test, number);
        for side in [Side::Management, Side::Workload] {
            create_namespace(&self.control_plane.cluster(side).admin(), &namespace).await?;
        }
        Ok(TestContext { clusters: Arc::clone(self), namespace, begun: Timestamp::now() })
    }

    /// Ends all processes and removes all files. The clusters cannot be used afterwards.
    pub async fn stop(&self) -> Result<(), ControlPlaneError> {
        self.control_plane.stop().await
    }
}

/// The part of the clusters that belongs to one test.
pub struct TestContext {
    clusters: Arc<TestClusters>,
    namespace: String,
    begun: Timestamp,
}

impl TestContext {
    /// The clusters, which all tests share.
    pub fn clusters(&self) -> &Arc<TestClusters> {
        &self.clusters
    }

    /// The namespace of this test, the same in both clusters.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The time at which this context was created.
    pub fn begun(&self) -> Timestamp {
        self.begun
    }

    /// The management cluster.
    pub fn management(&self) -> &Cluster {
        self.clusters.control_plane.management()
    }

    /// The workload cluster.
    pub fn workload(&self) -> &Cluster {
        self.clusters.control_plane.workload()
    }

    /// A name for a cluster-scoped object. It starts with this test's namespace, so that the object appears
    /// in the timeline.
    pub fn cluster_scoped(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// A unique address in these clusters, for a `RemoteMachine`.
    pub fn address(&self) -> String {
        let [_, high, middle, low] =
            (self.clusters.addresses.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes();
        format!("10.{high}.{middle}.{low}")
    }

    /// Changes the behaviour of the provider in this test's namespace.
    pub fn provider(&self, change: impl FnOnce(&mut ProviderBehaviour)) {
        self.clusters.provider.in_namespace(&self.namespace, change);
    }

    /// Adds a line to the timeline.
    pub fn note(&self, text: impl AsRef<str>) {
        self.clusters.recorder.note(&self.namespace, text.as_ref());
    }

    /// A proxy to a cluster's API server whose connections can be interrupted.
    pub async fn proxy(&self, side: Side) -> std::io::Result<proxy::Proxy> {
        let server = self.clusters.control_plane.cluster(side).server();
        let port = server.rsplit(':').next().and_then(|port| port.parse().ok());
        proxy::Proxy::start(port.ok_or_else(|| std::io::Error::other(format!("no port in {server}")))?).await
    }

    /// Runs the real `kubectl` as the administrator of a cluster, in this test's namespace.
    pub async fn kubectl(&self, side: Side, arguments: &[&str]) -> std::io::Result<std::process::Output> {
        let cluster = self.clusters.control_plane.cluster(side);
        tokio::process::Command::new(self.clusters.control_plane.kubectl())
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("HOME", self.clusters.control_plane.directory())
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
    }

    /// The run directory of the control plane, where a test can create files that are removed with it.
    pub fn directory(&self) -> &Path {
        self.clusters.control_plane.directory()
    }

    /// Everything that was recorded for this test: transitions, events, notes, writes and refusals in the
    /// audit logs, and the last lines of every component's log.
    pub fn timeline(&self) -> String {
        let mut entries = self.clusters.recorder.entries(&self.namespace);
        let mut text = String::new();
        for cluster in [self.management(), self.workload()] {
            match self.audit_entries(cluster) {
                Ok(audit) => entries.extend(audit),
                Err(error) => {
                    let _ = writeln!(text, "the {} audit log: {error}", cluster.side().name());
                }
            }
        }
        text.push_str(&timeline::render(entries, self.begun));
        for component in Component::ALL {
            let _ = writeln!(text, "---- last {LOG_LINES} lines of {}", component.name());
            for line in self.clusters.control_plane.log_tail(component, LOG_LINES) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }

    fn audit_entries(&self, cluster: &Cluster) -> std::io::Result<Vec<Entry>> {
        let records = cluster.audit_log().read(&AuditQuery::all().since(self.begun))?;
        let telling = |record: &crate::audit::AuditRecord| {
            !matches!(record.verb.as_str(), "get" | "list" | "watch")
                || record.code.is_some_and(|code| code >= 400)
        };
        let entries = records.into_iter().filter(telling).map(|record| {
            let object = &record.object;
            let scope = if object.namespace.is_empty() { &object.name } else { &object.namespace };
            Entry {
                at: record.received,
                side: Some(record.side),
                subject: "request".into(),
                text: record.to_string(),
                scope: scope.clone(),
            }
        });
        Ok(entries.filter(|entry| entry.belongs_to(&self.namespace)).collect())
    }
}

/// A namespace's name derived from the name of a test: readable, unique, and short enough to prefix other
/// names.
fn namespace_for(test: &str, number: u32) -> String {
    let readable: String = test
        .rsplit("::")
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(24)
        .collect();
    format!("t{number:02}-{}", readable.trim_matches('-'))
}

async fn create_namespace(client: &Client, name: &str) -> Result<(), TestClustersError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .map_err(|source| TestClustersError::Namespace { name: name.into(), source: Box::new(source) })?;
    // Without it the API server refuses every pod.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    wait::until_present(&accounts, "default", "to exist", NAMESPACE_READY_WITHIN, |_| true).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_readable_and_valid() {
        assert_eq!(namespace_for("facts::Drain_passes", 3), "t03-drain-passes");
        assert_eq!(
            namespace_for("a_very_long_name_of_a_test_that_goes_on", 12),
            "t12-a-very-long-name-of-a-te"
        );
    }
}
