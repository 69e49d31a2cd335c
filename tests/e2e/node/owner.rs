//! Programs that the owner of the machine starts.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use five_spot_testenv::guard::ProcessIdentity;
use five_spot_testenv::run_directory;
use five_spot_testenv::test_clusters::TestContext;

/// A program of the owner, outside of every pod. It ends with this.
pub(crate) struct OwnersProgram {
    child: Child,
}

impl OwnersProgram {
    /// Starts a copy of `sleep` under this name.
    pub(crate) fn start(context: &TestContext, name: &str) -> anyhow::Result<Self> {
        Self::start_as(context, name, name)
    }

    /// Starts a copy of `sleep` under this name, with another name as its `argv[0]`.
    pub(super) fn start_as(context: &TestContext, name: &str, first_argument: &str) -> anyhow::Result<Self> {
        let program = copy_of_sleep(context, name)?;
        let child = Command::new(program)
            .arg0(first_argument)
            .arg("3600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        // So that it ends with the control plane if this program is killed.
        if let Some(process) = ProcessIdentity::of(child.id()) {
            run_directory::record_process(context.directory(), &format!("owners-{name}"), process)?;
        }
        context.note(format!("the owner has started {name}, process {}", child.id()));
        Ok(Self { child })
    }
}

impl Drop for OwnersProgram {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel names a process after its file.
pub(super) fn copy_of_sleep(context: &TestContext, name: &str) -> std::io::Result<PathBuf> {
    let folder = context.directory().join(context.namespace());
    std::fs::create_dir_all(&folder)?;
    let program = folder.join(name);
    if !program.exists() {
        // By another program: a file that this one still holds open for writing on another thread could not be run.
        let status = Command::new("cp").arg("/bin/sleep").arg(&program).status()?;
        if !status.success() {
            return Err(std::io::Error::other(format!("cp ended with {status}")));
        }
    }
    Ok(program)
}

/// The processes of this name on this machine, with their cgroups.
pub(crate) fn processes_called(name: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name)
    })
    .map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()))
    .collect()
}
