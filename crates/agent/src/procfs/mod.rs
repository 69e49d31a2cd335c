//! Processes as `/proc` shows them. Everything here copes with processes that end while they are looked at.

mod cpu_clock;
mod memory_read;
mod parse;
mod pids;
mod process;
mod scanner;

pub use memory_read::{MemoryRead, OngoingRead};
pub use parse::{ProcessState, cgroup_view, last_pid, name_in_stat, started, state, uid};
pub use process::ProcessFiles;
pub use scanner::{Found, Scanner};

use crate::matcher::{CgroupView, is_in_pod};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The reason why processes cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProcfsError {
    /// The folder cannot be opened.
    #[error("cannot open the process list {}: {source}", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// The refusal of the operating system.
        source: std::io::Error,
    },
    /// The kernel has no control groups, or does not show them.
    #[error(
        "{}/self/cgroup cannot be read: without cgroups the agent cannot tell which processes are in pods, \
         so none can match",
        path.display()
    )]
    NoCgroups {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be read.
    #[error("cannot read the process list: {0}")]
    Read(#[from] std::io::Error),
}

/// The folder of the process file system.
#[derive(Debug)]
pub struct ProcRoot {
    directory: OwnedFd,
    view: CgroupView,
    /// The number of this process in it.
    own_pid: Option<u32>,
    /// The kernel makes its files. Any other folder need not have all of them.
    is_from_kernel: bool,
}

impl ProcRoot {
    /// Opens the folder.
    pub fn open(path: &Path) -> Result<Self, ProcfsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|source| ProcfsError::Open { path: path.to_owned(), source: source.into() })?;
        let own_pid: Option<u32> = read_link(directory.as_fd(), "self").and_then(|link| link.parse().ok());
        let namespace = read_link(directory.as_fd(), "self/ns/cgroup");
        let mut cgroup = [0; 4096];
        let length = read_file(directory.as_fd(), "self/cgroup", &mut cgroup).ok();
        // A folder without `self` is not from a kernel.
        if length.is_none() && own_pid.is_some() {
            return Err(ProcfsError::NoCgroups { path: path.to_owned() });
        }
        let length = length.unwrap_or_default();
        let view = cgroup_view(namespace.as_deref(), &cgroup[..length]);
        let is_from_kernel = is_process_file_system(directory.as_fd());
        Ok(Self { directory, view, own_pid, is_from_kernel })
    }

    /// The cgroup namespace from which this process reads.
    pub fn view(&self) -> CgroupView {
        self.view
    }

    /// True if the processes of the node can be seen: the first process is in no pod. Without `hostPID: true` it is this one, or
    /// another one of the same pod. A node may be a container itself, so that kernel threads are no sign.
    pub fn shows_host(&self) -> bool {
        let mut content = [0; 4096];
        let first = read_file(self.as_fd(), "1/cgroup", &mut content);
        self.own_pid != Some(1) && first.is_ok_and(|length| !is_in_pod(&content[..length], self.view))
    }

    /// The number of this process in it, which differs where it shows another pid namespace.
    fn own_pid(&self) -> Option<u32> {
        self.own_pid
    }

    /// True if process ids in it are those of this process's own pid namespace.
    pub fn is_own_namespace(&self) -> bool {
        self.own_pid == Some(std::process::id())
    }

    /// True if the kernel makes its files. In any other folder a process is described by the files that are there.
    pub fn is_from_kernel(&self) -> bool {
        self.is_from_kernel
    }

    /// True if `folder`, which is that of a process, was made by someone who left this file out. In the process file system a
    /// file is missing only if the process is gone.
    fn leaves_out(&self, folder: BorrowedFd<'_>, file: &str) -> bool {
        let missing =
            || rustix::fs::accessat(folder, file, Access::EXISTS, AtFlags::empty()) == Err(Errno::NOENT);
        !self.is_from_kernel && missing()
    }

    /// Identifies the process that has this number now.
    pub fn identify(&self, pid: u32) -> ProcessKey {
        let mut content = [0; 1024];
        let read = read_file(self.as_fd(), &format!("{pid}/stat"), &mut content);
        ProcessKey { pid, started: read.ok().and_then(|length| started(&content[..length])) }
    }
}

/// A process, told from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessKey {
    /// The process id.
    pub pid: u32,
    /// The time of its start in clock ticks since the start of the machine; `None` if it is not known.
    pub started: Option<u64>,
}

impl AsFd for ProcRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// True if a folder belongs to the process file system, or if that cannot be found out.
#[cfg(target_os = "linux")]
fn is_process_file_system(folder: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(folder).map_or(true, |system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Elsewhere, a folder in which this process finds itself.
#[cfg(not(target_os = "linux"))]
fn is_process_file_system(folder: BorrowedFd<'_>) -> bool {
    read_link(folder, "self").is_some()
}

fn read_link(directory: BorrowedFd<'_>, path: &str) -> Option<String> {
    rustix::fs::readlinkat(directory, path, Vec::new()).ok()?.into_string().ok()
}

/// Reads a file from its beginning until its end or until `buffer` is full. Returns the number of bytes.
fn read_file(directory: BorrowedFd<'_>, path: &str, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    let file = open_file(directory, path)?;
    let mut length = 0;
    while length < buffer.len() {
        match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer[length..]))? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// Reads a file that the kernel gives out as a whole in one call, such as the name of a process.
fn read_at_once(directory: BorrowedFd<'_>, path: &str, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    let file = open_file(directory, path)?;
    rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer))
}

fn open_file(directory: BorrowedFd<'_>, path: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::fs::openat(directory, path, flags, Mode::empty()))
}

#[cfg(test)]
pub(crate) mod tests;
