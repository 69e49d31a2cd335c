//! A component as a process: started, observed, suspended, resumed, killed and restarted.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::Signal;
use tokio::sync::watch;

use crate::guard::{self, ProcessIdentity};
use crate::run_directory;

/// The command line of a process, kept so that it can be restarted.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The component's name, also that of its log.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment. Nothing is inherited, so that a developer's proxy or kubeconfig has no effect.
    pub environment: Vec<(&'static str, OsString)>,
    /// The run directory, where process and log are recorded.
    pub directory: PathBuf,
}

impl ProcessSpec {
    /// The file of the component's output; each start appends to it.
    pub fn log(&self) -> PathBuf {
        log_path(&self.directory, &self.name)
    }
}

/// The path of the log of a component in a run directory.
pub fn log_path(directory: &Path, component: &str) -> PathBuf {
    directory.join("logs").join(format!("{component}.log"))
}

/// The last lines of a component's log.
pub fn log_tail(directory: &Path, component: &str, lines: usize) -> Vec<String> {
    let Ok(bytes) = std::fs::read(log_path(directory, component)) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(ToString::to_string).collect()
}

/// A running component. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    identity: ProcessIdentity,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Starts the component under the guard and records it.
    pub fn start(spec: &ProcessSpec) -> io::Result<Self> {
        let log_path = spec.log();
        if let Some(parent) = log_path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let log = OpenOptions::new().create(true).append(true).open(log_path)?;
        let mut command = guard::command(&spec.program)?;
        command
            .args(&spec.arguments)
            .env_clear()
            .env("HOME", &spec.directory)
            .env("TMPDIR", &spec.directory)
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&spec.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child = guard::spawn(command)?;
        let identity = ProcessIdentity::of(child.id())
            .ok_or_else(|| io::Error::other(format!("{} ended as soon as it was started", spec.name)))?;
        run_directory::record_process(&spec.directory, &spec.name, identity)?;
        let (ended, exit) = watch::channel(None);
        std::thread::Builder::new().name(format!("wait-{}", spec.name)).spawn(move || {
            if let Ok(status) = child.wait() {
                ended.send_replace(Some(status));
            }
        })?;
        Ok(Self { identity, exit })
    }

    /// Number and start time.
    pub fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// Suspends the process, like a long garbage collection or a frozen machine, and returns when it has
    /// stopped.
    pub async fn freeze(&self) {
        let identity = self.identity;
        // A thread that panicked has not waited longer than one that returned.
        let _ = tokio::task::spawn_blocking(move || identity.freeze_and_wait()).await;
    }

    /// Resumes the process.
    pub fn thaw(&self) {
        self.identity.signal(Signal::CONT);
    }

    /// Kills the process (SIGKILL), and returns when it is gone.
    pub async fn kill(&mut self) {
        self.identity.signal(Signal::KILL);
        self.ended().await;
    }

    /// Asks the process to end (SIGTERM), and waits until it has.
    pub async fn terminate(&mut self) -> Option<ExitStatus> {
        self.identity.signal(Signal::TERM);
        self.ended().await
    }

    /// Becomes `Some` when the process has ended.
    pub fn exit_signal(&self) -> watch::Receiver<Option<ExitStatus>> {
        self.exit.clone()
    }

    /// Returns when the process has ended.
    pub async fn ended(&mut self) -> Option<ExitStatus> {
        // An error means that the waiting thread has ended, which it does only after the process.
        self.exit.wait_for(Option::is_some).await.map_or(None, |status| *status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.identity.signal(Signal::KILL);
    }
}
