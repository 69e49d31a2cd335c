//! A control plane that keeps running for interactive use, as other processes see it: the record in its run
//! directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::{ControlPlane, ControlPlaneError};
use crate::binaries::Binaries;
use crate::guard::ProcessIdentity;
use crate::probe::Probe;
use crate::provider::Provider;
use crate::run_directory;

const RECORD: &str = "control-plane.json";
/// The timeout: ending eight processes and removing their files takes about a second.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(30);

/// The record of a running control plane, for other processes.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneRecord {
    /// Its name.
    pub name: String,
    /// Its run directory.
    pub directory: PathBuf,
    /// The process that owns it.
    pub owner: Option<ProcessIdentity>,
    /// The administrator's kubeconfig of the management cluster.
    pub management_kubeconfig: PathBuf,
    /// The administrator's kubeconfig of the workload cluster.
    pub workload_kubeconfig: PathBuf,
    /// The real `kubectl`.
    pub kubectl: PathBuf,
    /// The time the start took.
    pub started_in_seconds: f64,
    /// Its processes.
    pub components: Vec<ComponentStatus>,
}

/// One process of a running control plane.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Its name.
    pub name: String,
    /// Its process id and start time.
    pub process: ProcessIdentity,
    /// The endpoint at which it reports its health.
    pub probe: Probe,
    /// Its log.
    pub log: PathBuf,
}

impl ControlPlaneRecord {
    /// Writes the record into the run directory atomically.
    pub fn save(&self) -> io::Result<()> {
        let path = self.directory.join(RECORD);
        let partial = path.with_extension("partial");
        fs::write(&partial, serde_json::to_vec_pretty(self)?)?;
        fs::rename(partial, path)
    }
}

/// Starts a control plane and keeps it running until this process is asked to end. `report` receives each step of the
/// start and finally the record. If its receiver is gone before the control plane is up, the control plane is stopped
/// again.
pub async fn keep_up(
    binaries: &Binaries,
    base: &Path,
    name: &str,
    report: impl Fn(StartupReport<'_>) -> io::Result<()>,
) -> Result<(), ControlPlaneError> {
    let signal_error = |source| ControlPlaneError::Io { action: "listen for signals".into(), source };
    let mut terminate = signal(SignalKind::terminate()).map_err(signal_error)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_error)?;
    let control_plane = ControlPlane::start(binaries, base, name, |step| {
        // A missing receiver is checked again at the end, where it matters.
        let _ = report(StartupReport::Step(step));
    })
    .await?;
    // For Machines that are created by hand, the provider has to create nodes.
    let provider = Provider::start(control_plane.management(), control_plane.workload()).await;
    let _provider = provider.map_err(|source| ControlPlaneError::Io {
        action: "start the provider".into(),
        source: io::Error::other(source),
    })?;
    let record = control_plane.record().await;
    record
        .save()
        .and_then(|()| report(StartupReport::Ready(&record)))
        .map_err(|source| ControlPlaneError::Io { action: "report that all is ready".into(), source })?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    control_plane.stop().await
}

/// A progress message of [`keep_up`].
#[derive(Debug, Clone, Copy)]
pub enum StartupReport<'a> {
    /// The component that is being started.
    Step(&'a str),
    /// All components are running.
    Ready(&'a ControlPlaneRecord),
}

/// The control plane with this name, if it is running.
pub fn find(base: &Path, name: &str) -> Option<ControlPlaneRecord> {
    let directory = base.join(name);
    if !run_directory::is_alive(&directory) {
        return None;
    }
    serde_json::from_slice(&fs::read(directory.join(RECORD)).ok()?).ok()
}

/// Stops the control plane with this name, and returns when no process and no file is left. Returns false if
/// there was none.
pub fn shut_down(base: &Path, name: &str) -> io::Result<bool> {
    let directory = base.join(name);
    if !directory.exists() {
        return Ok(false);
    }
    if let Some(owner) = find(base, name).and_then(|record| record.owner) {
        owner.signal(Signal::TERM);
        if !owner.wait(Some(SHUT_DOWN_WITHIN)) {
            owner.kill_and_wait();
        }
    }
    // Cleans up what the owner did not, because it was killed or its start was interrupted.
    if !run_directory::is_alive(&directory) {
        for process in run_directory::recorded_processes(&directory) {
            process.kill_and_wait();
        }
        run_directory::remove(&directory)?;
        return Ok(true);
    }
    Err(io::Error::other(format!(
        "{} is held by a process that is still starting it; wait for it, or end it",
        directory.display()
    )))
}
