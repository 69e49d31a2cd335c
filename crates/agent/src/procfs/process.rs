//! The files of one process.

use super::{MemoryRead, ProcRoot, open_file, parse, read_at_once, read_file};
use crate::matcher::{Comm, ProcessFacts, is_in_pod};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::Write as _;
use std::ops::ControlFlow;

/// The most of a command line that is read. The kernel allows 6 MiB at the most, usually 2; a process that maps more memory
/// there does not hold up the agent.
const MAX_COMMAND_LINE_BYTES: usize = 8 * 1024 * 1024;

/// A chunk of a command line, together with the overlap from the one before.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// The most ancestors that are looked at: more than any program has, and an end where they form a circle.
const MAX_ANCESTORS: usize = 64;

/// The names of kubelets, also of those that are a part of another program, and of the runtime that passes names of pods to
/// the programs that it starts.
const NODE_PROGRAMS: [&[u8]; 5] = [b"kubelet", b"kubelite", b"k3s-server", b"k3s-agent", b"crio"];

/// The facts about one process, read from its files when they are asked for.
///
/// All but the first look at the name go through one open folder, so that they are never those of another process that
/// got the same number meanwhile.
#[derive(Debug)]
pub struct ProcessFiles<'a> {
    root: &'a ProcRoot,
    buffer: &'a mut [u8],
    pid: u32,
    name: Option<Comm>,
    folder: Option<OwnedFd>,
    is_unread: bool,
    memory_read: Option<&'a MemoryRead>,
    leaves_memory_out: bool,
}

impl<'a> ProcessFiles<'a> {
    /// The process `pid` below `root`. `buffer` must hold twice [`CHUNK_BYTES`].
    pub(super) fn new(root: &'a ProcRoot, buffer: &'a mut [u8], pid: u32) -> Self {
        Self {
            root,
            buffer,
            pid,
            name: None,
            folder: None,
            is_unread: false,
            memory_read: None,
            leaves_memory_out: false,
        }
    }

    /// Reports reads of the memory of the process to `memory_read`.
    pub(super) fn report_to(&mut self, memory_read: &'a MemoryRead) {
        self.memory_read = Some(memory_read);
    }

    /// Leaves out what lies in the memory of the process.
    pub(super) fn leave_memory_out(&mut self) {
        self.leaves_memory_out = true;
    }

    /// True if a file could not be read for a reason that has nothing to do with the process, such as a lack of memory.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// The result of a read. A failure that has nothing to do with the process is remembered.
    fn known<T>(&mut self, result: rustix::io::Result<T>) -> Option<T> {
        self.is_unread |= result.as_ref().is_err_and(|error| !is_about_process(*error));
        result.ok()
    }

    /// Opens the folder of the process, unless it is no longer the process whose name was read.
    fn open_folder(&mut self) -> Option<()> {
        if self.folder.is_some() {
            return Some(());
        }
        let path = ProcPath::new(self.pid, "");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(self.root, path.as_str(), flags, Mode::empty());
        let folder = self.known(folder)?;
        if let Some(name) = self.name {
            let mut content = [0; 80];
            let length = self.known(read_at_once(folder.as_fd(), "comm", &mut content))?;
            if Comm::from_file(&content[..length]) != name {
                return None;
            }
        }
        self.folder = Some(folder);
        Some(())
    }

    /// Reads a file of the process as a whole; `None` if it is larger than the buffer.
    fn read(&mut self, name: &str) -> Option<&[u8]> {
        self.open_folder()?;
        let read = read_file(self.folder.as_ref()?.as_fd(), name, self.buffer);
        let length = self.known(read)?;
        (length < self.buffer.len()).then(|| &self.buffer[..length])
    }

    /// True if the process is there, in a folder that was made without this file.
    fn has_no(&mut self, file: &str) -> bool {
        self.open_folder().is_some()
            && self.folder.as_ref().is_some_and(|folder| self.root.leaves_out(folder.as_fd(), file))
    }

    fn read_command_line(
        &mut self,
        overlap: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()> {
        self.open_folder()?;
        let file = open_file(self.folder.as_ref()?.as_fd(), "cmdline");
        let file = self.known(file)?;
        let overlap = overlap.min(self.buffer.len() / 2);
        let (mut kept, mut total) = (0, 0);
        while total < MAX_COMMAND_LINE_BYTES {
            let read = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut self.buffer[kept..]));
            let count = self.known(read)?;
            if count == 0 {
                break;
            }
            total += count;
            let length = kept + count;
            if visit(&self.buffer[..length]).is_break() {
                break;
            }
            kept = overlap.min(length);
            self.buffer.copy_within(length - kept..length, 0);
        }
        Some(())
    }
}

impl ProcessFacts for ProcessFiles<'_> {
    fn comm(&mut self) -> Option<Comm> {
        let path = ProcPath::new(self.pid, "/comm");
        let mut content = [0; 80];
        let length = self.known(read_at_once(self.root.as_fd(), path.as_str(), &mut content))?;
        let name = Comm::from_file(&content[..length]);
        self.name = Some(name);
        Some(name)
    }

    fn is_excluded(&mut self) -> Option<bool> {
        if self.root.own_pid() == Some(self.pid) {
            return Some(true);
        }
        if self.has_no("stat") {
            return Some(false);
        }
        let state = parse::state(self.read("stat")?)?;
        Some(state.is_kernel_thread || state.has_ended)
    }

    fn is_in_pod(&mut self) -> Option<bool> {
        if self.has_no("cgroup") {
            return Some(false);
        }
        let view = self.root.view();
        Some(is_in_pod(self.read("cgroup")?, view))
    }

    fn is_started_by_node(&mut self) -> Option<bool> {
        if self.has_no("stat") {
            return Some(false);
        }
        let mut ancestor = parse::state(self.read("stat")?)?.parent;
        for _ in 0..MAX_ANCESTORS {
            let path = ProcPath::new(ancestor, "/stat");
            let length = match read_file(self.root.as_fd(), path.as_str(), self.buffer) {
                Ok(length) => length,
                // Kernel threads and the kubelet do not end while a program of theirs runs.
                Err(error) if is_about_process(error) => break,
                // For want of memory or descriptors: who has started the program is not known.
                Err(_) => {
                    self.is_unread = true;
                    return None;
                }
            };
            let stat = &self.buffer[..length];
            let Some(state) = parse::state(stat) else { break };
            let is_node = parse::name_in_stat(stat).is_some_and(|name| NODE_PROGRAMS.contains(&name));
            if state.is_kernel_thread || is_node {
                return Some(true);
            }
            ancestor = state.parent;
        }
        Some(false)
    }

    fn uid(&mut self) -> Option<u32> {
        parse::uid(self.read("status")?)
    }

    fn visit_command_line(
        &mut self,
        overlap: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()> {
        if self.leaves_memory_out {
            return None;
        }
        let memory_read = self.memory_read;
        if let Some(read) = memory_read {
            read.begin(self.pid);
        }
        let visited = self.read_command_line(overlap, visit);
        if let Some(read) = memory_read {
            read.end();
        }
        visited
    }

    fn executable_name(&mut self) -> Option<Vec<u8>> {
        self.open_folder()?;
        let folder = self.folder.as_ref()?;
        let link = rustix::fs::readlinkat(folder, "exe", Vec::new()).ok()?.into_bytes();
        // The kernel says so of a program whose file was replaced while it runs.
        let path = link.strip_suffix(b" (deleted)").unwrap_or(&link);
        path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec)
    }
}

/// True if a failure is about the process that was read: it is gone, its memory cannot be read, or this program may not read
/// it. Other failures, such as a lack of memory or descriptors, say nothing about it.
fn is_about_process(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM | Errno::IO | Errno::FAULT | Errno::INVAL
    )
}

/// A path such as `4194304/comm`, without an allocation.
struct ProcPath {
    bytes: [u8; 24],
    length: usize,
}

impl ProcPath {
    fn new(pid: u32, file: &str) -> Self {
        let mut bytes = [0; 24];
        let mut rest = &mut bytes[..];
        // Ten digits and the names used here always fit.
        let _ = write!(rest, "{pid}{file}");
        let length = 24 - rest.len();
        Self { bytes, length }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}
