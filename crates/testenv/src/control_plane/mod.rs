//! A management and a workload cluster, started, changed and stopped as one.

mod cluster_api;
mod component;
mod detached;
mod storage;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

pub(crate) use cluster_api::request_token;
pub use component::Component;
use component::{Files, Plan, Ports};
pub use detached::{ComponentStatus, ControlPlaneRecord, StartupReport, find, keep_up, shut_down};
pub use storage::Stored;

use crate::binaries::Binaries;
use crate::cluster::{Cluster, Side, kubeconfig_path};
use crate::guard::{Janitor, ProcessIdentity};
use crate::kubeconfig::{self, Credentials, TestClientError};
use crate::manifests::ManifestError;
use crate::pki::{self, Authority, Identity, PkiError};
use crate::probe::Probe;
use crate::process::{self, Process, ProcessSpec};
use crate::run_directory::{RunDirectory, RunDirectoryError};

/// The start timeout: a start takes seconds, but half a minute with cold file caches or during a build on the
/// same machine.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// The number of log lines of a component that a failed start shows.
const LOG_LINES_OF_A_FAILED_START: usize = 25;

/// The reason why the control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// The binaries have not been built.
    #[error("{} of the control plane's binaries are missing, {} among them: run `cargo xtask control-plane build`",
        .0.len(), .0.first().map(|path| path.display().to_string()).unwrap_or_default())]
    NotBuilt(Vec<PathBuf>),
    /// The run directory is taken or cannot be made.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
    /// Certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// Clients.
    #[error(transparent)]
    Client(#[from] TestClientError),
    /// Manifests of Cluster API and of the providers.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A file operation or the start of a process failed.
    #[error("failed to {action}: {source}")]
    Io {
        /// The operation.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// A component ended or did not become ready.
    #[error("{component} {what}; the end of its log:\n{log}")]
    Component {
        /// Its name.
        component: &'static str,
        /// The event.
        what: String,
        /// The last lines of its log.
        log: String,
    },
}

/// A running control plane. Dropping it ends all processes and removes all files.
pub struct ControlPlane {
    management: Cluster,
    workload: Cluster,
    running: Mutex<BTreeMap<Component, Running>>,
    files: Files,
    kubectl: PathBuf,
    started_in: Duration,
    authority: Authority,
    // Dropped last, and in this order: the janitor removes everything that is left, then the lock is
    // released.
    janitor: Mutex<Option<Janitor>>,
    _directory: RunDirectory,
}

struct Running {
    spec: ProcessSpec,
    probe: Probe,
    process: Process,
}

impl ControlPlane {
    /// Starts both clusters in a separate directory below `base`. `say` is called with the name of each step.
    pub async fn start(
        binaries: &Binaries,
        base: &Path,
        name: &str,
        say: impl Fn(&str),
    ) -> Result<Self, ControlPlaneError> {
        let begun = Instant::now();
        let (mut control_plane, credentials, ports) = Self::prepared(binaries, base, name).await?;
        let files = control_plane.files.clone();
        let plan = |component| component::plan(component, binaries, &files, &ports);
        say("etcd");
        control_plane.launch(&[(Component::Etcd, plan(Component::Etcd))]).await?;
        say("API servers");
        let api_servers = [Side::Management, Side::Workload].map(Component::ApiServer);
        control_plane.launch(&api_servers.map(|component| (component, plan(component)))).await?;
        say("controller-managers, scheduler, kwok, Cluster API");
        let others = [
            Component::ControllerManager(Side::Management),
            Component::ControllerManager(Side::Workload),
            Component::Scheduler,
            Component::Kwok,
        ];
        let (others, cluster_api) = tokio::join!(
            control_plane.launch_all(others.map(|component| (component, plan(component))).into()),
            control_plane.launch_cluster_api(binaries, &credentials, &ports, plan(Component::ClusterApi)),
        );
        others.and(cluster_api)?;
        control_plane.started_in = begun.elapsed();
        Ok(control_plane)
    }

    /// Starts only the API server of the management cluster, with nothing in it: no Cluster API, and no controller that
    /// creates default accounts, aggregates roles or collects garbage.
    pub async fn start_bare(binaries: &Binaries, base: &Path, name: &str) -> Result<Self, ControlPlaneError> {
        let begun = Instant::now();
        let (mut control_plane, _, ports) = Self::prepared(binaries, base, name).await?;
        let files = control_plane.files.clone();
        for component in [Component::Etcd, Component::ApiServer(Side::Management)] {
            control_plane
                .launch(&[(component, component::plan(component, binaries, &files, &ports))])
                .await?;
        }
        control_plane.started_in = begun.elapsed();
        Ok(control_plane)
    }

    /// Creates everything except the processes.
    async fn prepared(
        binaries: &Binaries,
        base: &Path,
        name: &str,
    ) -> Result<(Self, ClusterCredentials, Ports), ControlPlaneError> {
        let missing = binaries.missing();
        if !missing.is_empty() {
            return Err(ControlPlaneError::NotBuilt(missing.into_iter().map(Path::to_path_buf).collect()));
        }
        let directory = RunDirectory::create(base, name)?;
        let janitor = Janitor::start(directory.path())
            .map_err(|source| ControlPlaneError::Io { action: "start the janitor".into(), source })?;
        let files = Files { directory: directory.path().to_path_buf() };
        let ports = Ports::find()
            .map_err(|source| ControlPlaneError::Io { action: "find free ports".into(), source })?;
        let authority = Authority::new()?;
        let credentials = prepare(&files, &authority, binaries, &ports)?;
        let connect = |side| {
            let authority = credentials.authority.certificate.clone();
            Cluster::connect(
                side,
                ports.api_server(side),
                authority,
                credentials.admin.clone(),
                &files.directory,
            )
        };
        let control_plane = Self {
            management: connect(Side::Management).await?,
            workload: connect(Side::Workload).await?,
            running: Mutex::new(BTreeMap::new()),
            files: files.clone(),
            kubectl: files.bin().join("kubectl"),
            started_in: Duration::ZERO,
            authority,
            janitor: Mutex::new(Some(janitor)),
            _directory: directory,
        };
        Ok((control_plane, credentials, ports))
    }

    async fn launch_all(&self, plans: Vec<(Component, Plan)>) -> Result<(), ControlPlaneError> {
        self.launch(&plans).await
    }

    /// Starts components at the same time and waits until all of them are healthy.
    async fn launch(&self, plans: &[(Component, Plan)]) -> Result<(), ControlPlaneError> {
        for (component, plan) in plans {
            let process = start_process(&plan.spec)?;
            let running = Running { spec: plan.spec.clone(), probe: plan.probe.clone(), process };
            self.running.lock().await.insert(*component, running);
        }
        for (component, _) in plans {
            self.until_ready(*component).await?;
        }
        Ok(())
    }

    async fn launch_cluster_api(
        &self,
        binaries: &Binaries,
        credentials: &ClusterCredentials,
        ports: &Ports,
        plan: Plan,
    ) -> Result<(), ControlPlaneError> {
        let client = self.management.admin();
        let assets = &binaries.cluster_api_manifests;
        let webhooks = cluster_api::Webhooks {
            port: ports.cluster_api_webhook,
            authority: &credentials.authority.certificate,
        };
        let stand_ins = five_spot_standins::provider_crds();
        let (crds, token) = tokio::join!(
            cluster_api::install_crds(&client, assets, &stand_ins, &webhooks),
            cluster_api::install_identity(&client, assets),
        );
        crds?;
        let kubeconfig = self.management.kubeconfig_for(&Credentials::Token(token?), None);
        write(&self.files.kubeconfig(Component::ClusterApi), &kubeconfig)?;
        self.launch(&[(Component::ClusterApi, plan)]).await?;
        Ok(cluster_api::install_webhooks(&client, assets, &webhooks).await?)
    }

    /// The cluster of Machines.
    pub fn management(&self) -> &Cluster {
        &self.management
    }

    /// The cluster of Nodes.
    pub fn workload(&self) -> &Cluster {
        &self.workload
    }

    /// Either of them.
    pub fn cluster(&self, side: Side) -> &Cluster {
        match side {
            Side::Management => &self.management,
            Side::Workload => &self.workload,
        }
    }

    /// The authority of both clusters, for certificates of further components.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.files.directory
    }

    /// The real `kubectl` of the same version as the servers.
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// The time the start took.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// The process of a component, if it was started.
    pub async fn process(&self, component: Component) -> Option<ProcessIdentity> {
        self.running.lock().await.get(&component).map(|running| running.process.identity())
    }

    /// Suspends a component (SIGSTOP).
    pub async fn freeze(&self, component: Component) {
        if let Some(running) = self.running.lock().await.get(&component) {
            running.process.freeze().await;
        }
    }

    /// Resumes a suspended component (SIGCONT).
    pub async fn thaw(&self, component: Component) {
        if let Some(running) = self.running.lock().await.get(&component) {
            running.process.thaw();
        }
    }

    /// Kills a component (SIGKILL) and does not restart it.
    pub async fn kill(&self, component: Component) {
        if let Some(running) = self.running.lock().await.get_mut(&component) {
            running.process.kill().await;
        }
    }

    /// Kills a component if it runs, starts it again with the same port and data, and waits until it is
    /// healthy.
    pub async fn restart(&self, component: Component) -> Result<(), ControlPlaneError> {
        if let Some(running) = self.running.lock().await.get_mut(&component) {
            running.process.kill().await;
            running.process = start_process(&running.spec)?;
        }
        self.until_ready(component).await
    }

    /// The last lines of a component's log.
    pub fn log_tail(&self, component: Component, lines: usize) -> Vec<String> {
        process::log_tail(&self.files.directory, component.name(), lines)
    }

    /// The record that `status`, `env` and `down` read in another process.
    pub async fn record(&self) -> ControlPlaneRecord {
        let running = self.running.lock().await;
        let components = running.iter().map(|(component, running)| ComponentStatus {
            name: component.name().into(),
            process: running.process.identity(),
            probe: running.probe.clone(),
            log: running.spec.log(),
        });
        ControlPlaneRecord {
            name: self.files.directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            directory: self.files.directory.clone(),
            owner: ProcessIdentity::of(std::process::id()),
            management_kubeconfig: self.management.kubeconfig().to_path_buf(),
            workload_kubeconfig: self.workload.kubeconfig().to_path_buf(),
            kubectl: self.kubectl.clone(),
            started_in_seconds: self.started_in.as_secs_f64(),
            components: components.collect(),
        }
    }

    /// Ends all processes and removes all files; returns an error if that fails.
    pub async fn stop(&self) -> Result<(), ControlPlaneError> {
        self.kill_all().await;
        let Some(janitor) = self.janitor.lock().await.take() else {
            return Ok(());
        };
        janitor.finish().map_err(|source| ControlPlaneError::Io {
            action: format!("clean up {}", self.files.directory.display()),
            source,
        })
    }

    async fn kill_all(&self) {
        let mut running = self.running.lock().await;
        // In reverse order: an API server whose etcd is gone hangs for a minute.
        for (_, mut running) in std::mem::take(&mut *running).into_iter().rev() {
            running.process.kill().await;
        }
    }

    async fn until_ready(&self, component: Component) -> Result<(), ControlPlaneError> {
        let (probe, mut ended) = {
            let running = self.running.lock().await;
            let Some(running) = running.get(&component) else {
                return Ok(());
            };
            (running.probe.clone(), running.process.exit_signal())
        };
        let failed = |what: String| ControlPlaneError::Component {
            component: component.name(),
            what,
            log: self.log_tail(component, LOG_LINES_OF_A_FAILED_START).join("\n"),
        };
        tokio::select! {
            () = probe.until_well() => Ok(()),
            status = ended.wait_for(Option::is_some) => {
                let status = status.ok().and_then(|status| *status);
                Err(failed(status.map_or("ended".into(), |status| format!("ended with {status}"))))
            }
            () = tokio::time::sleep(READY_WITHIN) => Err(failed(format!("was not ready within {READY_WITHIN:?}"))),
        }
    }
}

fn start_process(spec: &ProcessSpec) -> Result<Process, ControlPlaneError> {
    Process::start(spec).map_err(|source| ControlPlaneError::Io {
        action: format!("start {}", spec.program.display()),
        source,
    })
}

/// The certificates that the harness uses.
struct ClusterCredentials {
    authority: Identity,
    admin: Identity,
}

/// Writes everything that the components read: certificates, kubeconfigs, audit policy, kwok's stages.
fn prepare(
    files: &Files,
    authority: &Authority,
    binaries: &Binaries,
    ports: &Ports,
) -> Result<ClusterCredentials, ControlPlaneError> {
    let identity = authority.identity();
    let admin = authority.client("5spot-testenv-admin", &["system:masters"])?;
    write_identity(files, "ca", &identity)?;
    write_identity(
        files,
        "kubelet-client",
        &authority.client("kube-apiserver-kubelet-client", &["system:masters"])?,
    )?;
    let names =
        ["localhost", "127.0.0.1", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    write_identity(files, "server", &authority.server("kube-apiserver", &names)?)?;
    write_identity(files, "cluster-api-webhook/tls", &authority.server("cluster-api", &["127.0.0.1"])?)?;
    let service_accounts = pki::service_account_key()?;
    write(&files.pki("service-accounts.key"), &service_accounts.private)?;
    write(&files.pki("service-accounts.pub"), &service_accounts.public)?;
    write(&files.audit_policy(), include_str!("../../manifests/audit-policy.yaml"))?;
    // A directory that contains only kubectl, for a PATH.
    let kubectl = files.bin().join("kubectl");
    fs::create_dir_all(files.bin())
        .and_then(|()| std::os::unix::fs::symlink(&binaries.kubectl, &kubectl))
        .map_err(|source| ControlPlaneError::Io { action: format!("link {}", kubectl.display()), source })?;
    write(&files.kwok_config(), &kwok_configuration(&binaries.kwok_stages)?)?;

    let kubeconfig = |side, path: &Path, credentials: &Identity| {
        let server = format!("https://127.0.0.1:{}", ports.api_server(side));
        let credentials = Credentials::Certificate(credentials.clone());
        write(path, &kubeconfig::render(&server, &identity.certificate, &credentials))
    };
    let manager = authority.client("system:kube-controller-manager", &[])?;
    for side in [Side::Management, Side::Workload] {
        kubeconfig(side, &kubeconfig_path(&files.directory, side), &admin)?;
        kubeconfig(side, &files.kubeconfig(Component::ControllerManager(side)), &manager)?;
    }
    let scheduler = authority.client("system:kube-scheduler", &[])?;
    kubeconfig(Side::Workload, &files.kubeconfig(Component::Scheduler), &scheduler)?;
    let kwok = authority.client("5spot-testenv-kwok", &["system:masters"])?;
    kubeconfig(Side::Workload, &files.kubeconfig(Component::Kwok), &kwok)?;
    Ok(ClusterCredentials { authority: identity, admin })
}

/// Writes all stages into one file, since kwok has none built in, with a custom stage for the end of a pod.
fn kwok_configuration(stages: &Path) -> Result<String, ControlPlaneError> {
    let read_error = |source| ControlPlaneError::Io { action: format!("read {}", stages.display()), source };
    let mut files: Vec<PathBuf> = fs::read_dir(stages)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(read_error)?;
    files.sort();
    let mut documents = vec![include_str!("../../manifests/kwok/pod-exit.yaml").to_owned()];
    for file in files {
        documents.push(fs::read_to_string(file).map_err(read_error)?);
    }
    Ok(documents.join("\n---\n"))
}

fn write_identity(files: &Files, name: &str, identity: &Identity) -> Result<(), ControlPlaneError> {
    write(&files.pki(&format!("{name}.crt")), &identity.certificate)?;
    write(&files.pki(&format!("{name}.key")), &identity.key)
}

fn write(path: &Path, text: &str) -> Result<(), ControlPlaneError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|source| ControlPlaneError::Io { action: format!("write {}", path.display()), source })
}
