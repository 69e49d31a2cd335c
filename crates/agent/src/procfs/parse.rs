//! The contents of files below `/proc`. Pure; the text comes from processes that may be hostile.

use crate::matcher::CgroupView;

/// The kernel's flag of a kernel thread, in the ninth field of `/proc/<pid>/stat`.
const PF_KTHREAD: u64 = 0x0020_0000;

/// The kernel's flag of a process that is ending. It gives back its memory before it is a zombie, which takes a while for a
/// large one, and on cgroup v1 `/proc/<pid>/cgroup` shows it at the root of every hierarchy from then on.
const PF_EXITING: u64 = 0x4;

/// The cgroup namespace of the host. Its number is fixed in the kernel (`PROC_CGROUP_INIT_INO`).
const HOST_CGROUP_NAMESPACE: &str = "cgroup:[4026531835]";

/// The parts of `/proc/<pid>/stat` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessState {
    /// The process that started it, or the one that has taken its place.
    pub parent: u32,
    /// The process is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// The process is ending, or has ended and its parent has not asked for its exit code yet.
    pub has_ended: bool,
}

/// Reads `/proc/<pid>/stat`. The name in it may contain spaces and parentheses, so that fields count from the last `)`.
pub fn state(stat: &[u8]) -> Option<ProcessState> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let flags: u64 = fields.nth(4)?.parse().ok()?;
    Some(ProcessState {
        parent,
        is_kernel_thread: flags & PF_KTHREAD != 0,
        has_ended: flags & PF_EXITING != 0 || matches!(state, "Z" | "X" | "x"),
    })
}

/// Reads the time of the start from `/proc/<pid>/stat`, its 22nd field, in clock ticks since the start of the machine.
pub fn started(stat: &[u8]) -> Option<u64> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Reads the name of the process from `/proc/<pid>/stat`.
pub fn name_in_stat(stat: &[u8]) -> Option<&[u8]> {
    let first = stat.iter().position(|byte| *byte == b'(')? + 1;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(first..end)
}

/// Reads the real user id from `/proc/<pid>/status`. The name of the process, on the first line, is escaped by the kernel.
pub fn uid(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// Reads the number of the process or thread that was made last from `/proc/loadavg`.
pub fn last_pid(loadavg: &[u8]) -> Option<u32> {
    std::str::from_utf8(loadavg).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Tells the cgroup namespace from the link `/proc/self/ns/cgroup`, without which there are no cgroup namespaces, and from
/// `/proc/self/cgroup`. A namespace is the container's own if the agent is at its root in every hierarchy; else it is that
/// of a node which is a container itself, and shows pods below `kubepods` as the host's does.
pub fn cgroup_view(namespace: Option<&str>, own_cgroup: &[u8]) -> CgroupView {
    let is_at_root = |line: &[u8]| line.splitn(3, |byte| *byte == b':').nth(2) == Some(b"/");
    let mut lines = own_cgroup.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    match namespace {
        None | Some(HOST_CGROUP_NAMESPACE) => CgroupView::Host,
        Some(_) if lines.all(is_at_root) => CgroupView::Container,
        Some(_) => CgroupView::Host,
    }
}
