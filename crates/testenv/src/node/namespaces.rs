//! The namespaces and the cgroup of the kubelet, containerd and all containers of a node.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::network::SERVICE;
use super::{Kind, NodeError};
use crate::guard::ProcessIdentity;
use crate::process::{Process, ProcessSpec, log_tail};
use crate::{cgroup, run_directory};

/// A script that moves itself into each cgroup whose `cgroup.procs` is listed before `--`, and executes the
/// command that follows.
const JOIN_CGROUPS: &str = r#"while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@""#;
/// The timeout: mounting takes milliseconds.
const PREPARED_WITHIN: Duration = Duration::from_secs(30);
/// The polling interval: there is no event for a mount namespace; the script creates a file when it is done.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The number of log lines in an error.
const LOG_LINES: usize = 20;

/// Namespaces, which are removed on drop.
#[derive(Debug)]
pub(super) struct Namespaces {
    kind: Kind,
    holder: Process,
    cgroup: Vec<PathBuf>,
    path: OsString,
    run_directory: PathBuf,
}

impl Namespaces {
    /// Creates the cgroup, the namespaces and everything that is mounted in them. `node` is the directory for its
    /// files, `label` its name in logs and cgroups, `path` the search path of everything that is started in here.
    pub(super) async fn create(
        kind: Kind,
        run_directory: &Path,
        node: &Path,
        label: &str,
        path: OsString,
    ) -> Result<Self, NodeError> {
        let io_error = |action: &'static str| move |source| NodeError::Io { action: action.into(), source };
        let name = format!("5spot-{label}-{}", std::process::id());
        let cgroup = cgroup::directories(&name).map_err(io_error("find the cgroup hierarchies"))?;
        run_directory::record_cgroup(run_directory, &name, &cgroup).map_err(io_error("record the cgroup"))?;
        cgroup::create(&cgroup).map_err(io_error("make the node's cgroup"))?;
        let script = node.join("namespace.sh");
        std::fs::write(&script, include_str!("namespace.sh")).map_err(io_error("write the mount script"))?;
        let mut command: Vec<OsString> =
            ["unshare", "--mount", "--uts", "--ipc", "--cgroup", "--propagation", "private"]
                .map(OsString::from)
                .into();
        if kind == Kind::Isolated {
            // The first process of the pid namespace ends with its parent, and all others with it.
            command.extend(["--net", "--pid", "--kill-child"].map(OsString::from));
        }
        command.extend(["sh".into(), script.into(), kind.name().into(), node.into()]);
        command.push(SERVICE.ip().to_string().into());
        for hierarchy in cgroup::hierarchies().map_err(io_error("find the cgroup hierarchies"))? {
            if let Some(selector) = hierarchy.selector {
                command.extend([hierarchy.mount_point.into(), selector.into()]);
            }
        }
        let log = format!("{label}-namespaces");
        let spec = spec(&log, &cgroup, command, &path, run_directory);
        let holder = Process::start(&spec).map_err(io_error("start the namespaces"))?;
        let namespaces = Self { kind, holder, cgroup, path, run_directory: run_directory.into() };
        namespaces.until_prepared(&node.join("prepared"), &log).await?;
        Ok(namespaces)
    }

    /// The command that starts a program in the namespaces.
    pub(super) fn spec(&self, name: &str, program: &Path, arguments: Vec<OsString>) -> ProcessSpec {
        let holder = self.holder();
        let mut command: Vec<OsString> = ["nsenter", "--target"].map(OsString::from).into();
        command.push(holder.to_string().into());
        command.extend(["--mount", "--uts", "--ipc", "--cgroup"].map(OsString::from));
        if self.kind == Kind::Isolated {
            // The holder itself is in the pid namespace of the machine.
            command.extend(["--net".into(), format!("--pid=/proc/{holder}/ns/pid_for_children").into()]);
        }
        command.extend(["--".into(), program.into()]);
        command.extend(arguments);
        spec(name, &self.cgroup, command, &self.path, &self.run_directory)
    }

    /// A process in all namespaces but that of processes.
    pub(super) fn holder(&self) -> u32 {
        self.holder.identity().pid
    }

    /// Kills a program that was started in the namespaces, and returns when it is gone. To enter a pid namespace takes a child,
    /// which the program is then.
    pub(super) async fn kill(&self, process: &mut Process) {
        if self.kind == Kind::Isolated {
            let parent = process.identity().pid;
            let end = move || children(parent).into_iter().for_each(ProcessIdentity::kill_and_wait);
            // A thread that panicked has not killed more than one that returned.
            let _ = tokio::task::spawn_blocking(end).await;
        }
        process.kill().await;
    }

    /// Ends everything in the cgroup and removes it.
    pub(super) async fn remove(mut self) -> io::Result<()> {
        let directories = std::mem::take(&mut self.cgroup);
        let removed = tokio::task::spawn_blocking(move || cgroup::remove(&directories)).await;
        self.holder.kill().await;
        removed.map_err(io::Error::other)?
    }

    async fn until_prepared(&self, mark: &Path, log: &str) -> Result<(), NodeError> {
        let failed = |what: &str| NodeError::Component {
            component: "the node's namespaces",
            what: what.into(),
            log: log_tail(&self.run_directory, log, LOG_LINES).join("\n"),
        };
        let prepared = async {
            while !mark.exists() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let mut exit = self.holder.exit_signal();
        tokio::select! {
            () = prepared => Ok(()),
            _ = exit.wait_for(Option::is_some) => Err(failed("could not be prepared")),
            () = tokio::time::sleep(PREPARED_WITHIN) => Err(failed("were not prepared in time")),
        }
    }
}

/// The children of a process with one thread.
fn children(pid: u32) -> Vec<ProcessIdentity> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| ProcessIdentity::of(child.parse().ok()?)).collect()
}

/// A command in the cgroup. Each step is an `exec`, so that the observed process is the program itself.
fn spec(
    name: &str,
    cgroup: &[PathBuf],
    command: Vec<OsString>,
    path: &OsString,
    run_directory: &Path,
) -> ProcessSpec {
    let mut arguments: Vec<OsString> = ["-c", JOIN_CGROUPS, "sh"].map(OsString::from).into();
    arguments.extend(cgroup.iter().map(|directory| directory.join("cgroup.procs").into()));
    arguments.push("--".into());
    arguments.extend(command);
    ProcessSpec {
        name: name.into(),
        program: "sh".into(),
        arguments,
        environment: vec![("PATH", path.clone())],
        directory: run_directory.to_path_buf(),
    }
}
