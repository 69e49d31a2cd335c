//! The controller as a process.

use std::path::Path;

use anyhow::{Context as _, ensure};
use five_spot_testenv::process::{Process, ProcessSpec, log_tail};
use tokio::sync::Mutex;

use crate::startup::controller_program;

/// The number of log lines that a failed test shows.
const LOG_LINES: usize = 80;

/// A controller that can be started and stopped repeatedly. It is stopped on drop.
pub(super) struct Controller {
    spec: ProcessSpec,
    process: Mutex<Option<Process>>,
}

impl Controller {
    /// Creates a controller for a namespace, with a kubeconfig in a file, without starting it.
    pub(super) fn new(directory: &Path, namespace: &str, kubeconfig: &Path) -> anyhow::Result<Self> {
        let program = controller_program()?;
        ensure!(program.exists(), "{} is not built: run `cargo xtask e2e`", program.display());
        // The workload cluster of the tests is on this machine.
        let workload = "--workload-cidr=127.0.0.0/8";
        // Each of these controllers is a separate deployment, with its own Lease.
        let arguments = [
            "--watch-namespace",
            namespace,
            "--lease-name",
            namespace,
            "--metrics-port",
            "0",
            "--health-port",
            "0",
            workload,
        ];
        let spec = ProcessSpec {
            name: format!("5spot-controller-{namespace}"),
            program,
            arguments: arguments.map(Into::into).to_vec(),
            // A controller that is started again is a container of the same pod.
            environment: vec![
                ("KUBECONFIG", kubeconfig.into()),
                ("RUST_LOG", "info".into()),
                ("POD_UID", namespace.into()),
            ],
            directory: directory.to_path_buf(),
        };
        Ok(Self { spec, process: Mutex::new(None) })
    }

    pub(super) async fn start(&self) -> anyhow::Result<()> {
        let process = Process::start(&self.spec).context("failed to start the controller")?;
        *self.process.lock().await = Some(process);
        Ok(())
    }

    /// SIGTERM; it has to exit successfully.
    pub(super) async fn stop(&self) -> anyhow::Result<()> {
        let Some(mut process) = self.process.lock().await.take() else { return Ok(()) };
        let status = process.terminate().await.context("the exit status is unknown")?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(())
    }

    /// SIGKILL.
    pub(super) async fn kill(&self) {
        if let Some(mut process) = self.process.lock().await.take() {
            process.kill().await;
        }
    }

    /// The end of its log.
    pub(super) fn log(&self) -> String {
        log_tail(&self.spec.directory, &self.spec.name, LOG_LINES).join("\n")
    }
}
