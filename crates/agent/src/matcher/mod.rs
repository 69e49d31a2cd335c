//! The decision whether a process matches. Pure: what it needs to know of a process it asks of [`ProcessFacts`], and it
//! asks for no more than the patterns need.

mod cgroup;
mod command_line;

pub use cgroup::{CgroupView, is_in_pod};
pub use command_line::{SubstringSearch, first_argument_basename};

use five_spot_api::reclaim::AgentConfig;
use std::ops::ControlFlow;

/// The longest name that the kernel keeps for a process, in bytes.
pub const MAX_COMM_BYTES: usize = 15;

/// The facts about one process, each read when it is asked for. A method returns `None` if the process is gone or the
/// fact cannot be read; such a process does not match.
pub trait ProcessFacts {
    /// The name that the kernel keeps, without a line end.
    fn comm(&mut self) -> Option<Comm>;

    /// True if the process is a kernel thread, is ending or has ended, or is the agent itself.
    fn is_excluded(&mut self) -> Option<bool>;

    /// True if the process belongs to a Kubernetes pod.
    fn is_in_pod(&mut self) -> Option<bool>;

    /// True if the kernel, the kubelet or CRI-O has started the process, itself or through other programs. Such a program
    /// works for a pod without being in one, and a tenant can choose words of its command line.
    fn is_started_by_node(&mut self) -> Option<bool>;

    /// The real user id.
    fn uid(&mut self) -> Option<u32>;

    /// Passes the command line to `visit` in chunks as the kernel shows it: a NUL after each argument. Each chunk begins
    /// with up to `overlap` last bytes of the one before. Stops when `visit` breaks.
    fn visit_command_line(
        &mut self,
        overlap: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()>;

    /// The file name of the executable. `None` where it may not be read, which is the rule without `SYS_PTRACE`.
    fn executable_name(&mut self) -> Option<Vec<u8>>;
}

/// The name of a process as the kernel keeps it. Longer content is cut at 64 bytes, the longest name of a kernel thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm {
    bytes: [u8; 64],
    length: usize,
}

impl Comm {
    /// Takes the content of `/proc/<pid>/comm`: the name and a line end.
    pub fn from_file(content: &[u8]) -> Self {
        Self::new(content.strip_suffix(b"\n").unwrap_or(content))
    }

    /// Takes a name without a line end.
    pub fn new(name: &[u8]) -> Self {
        let length = name.len().min(64);
        let mut bytes = [0; 64];
        bytes[..length].copy_from_slice(&name[..length]);
        Self { bytes, length }
    }

    /// The bytes of the name. They need not be UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The list that a pattern is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchSource {
    /// `match_commands`.
    Command,
    /// `match_argv_substrings`.
    CommandLine,
}

impl MatchSource {
    /// The key of the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "match_commands",
            Self::CommandLine => "match_argv_substrings",
        }
    }
}

/// The pattern that a process matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    /// The pattern, as it is configured.
    pub pattern: &'a str,
    /// The list that it is from.
    pub source: MatchSource,
    /// The name of the process.
    pub comm: Comm,
}

/// The patterns of one configuration.
#[derive(Clone, Debug)]
pub struct Matcher {
    short_commands: Vec<String>,
    long_commands: Vec<String>,
    substrings: SubstringSearch,
    uids: Vec<u32>,
}

impl Matcher {
    /// Prepares the patterns of `config`.
    pub fn new(config: &AgentConfig) -> Self {
        let (short_commands, long_commands) =
            config.match_commands.iter().cloned().partition(|pattern| pattern.len() <= MAX_COMM_BYTES);
        Self {
            short_commands,
            long_commands,
            substrings: SubstringSearch::new(config.match_argv_substrings.clone()),
            uids: config.match_uids.clone(),
        }
    }

    /// True if nothing can match.
    pub fn is_inert(&self) -> bool {
        self.short_commands.is_empty() && self.long_commands.is_empty() && self.substrings.is_empty()
    }

    /// Decides whether a process matches.
    ///
    /// Facts are asked for in an order that keeps the common case cheap, and that never reads the memory of a process in
    /// a pod: a command line lies in the memory of its process, which can make a reader wait forever.
    pub fn check(&self, process: &mut impl ProcessFacts) -> Option<Hit<'_>> {
        let hit = self.find(process)?;
        // Last, because it takes the most reads, and few processes get so far.
        (!process.is_started_by_node()?).then_some(hit)
    }

    /// The pattern that the process itself matches, wherever it comes from.
    fn find(&self, process: &mut impl ProcessFacts) -> Option<Hit<'_>> {
        let comm = process.comm()?;
        let name = comm.as_bytes();
        let short = self.short_commands.iter().find(|pattern| pattern.as_bytes() == name);
        let may_be_long = self.long_commands.iter().any(|pattern| starts_as(pattern, name));
        if short.is_none() && !may_be_long && self.substrings.is_empty() {
            return None;
        }
        // In this order: the cgroup of a process that is ending may not be its own, and once it is ending it stays so.
        if process.is_in_pod()? || process.is_excluded()? {
            return None;
        }
        if !self.uids.is_empty() && !self.uids.contains(&process.uid()?) {
            return None;
        }
        if let Some(pattern) = short {
            return Some(Hit { pattern, source: MatchSource::Command, comm });
        }
        if may_be_long && let Some(pattern) = self.long_command(name, process) {
            return Some(Hit { pattern, source: MatchSource::Command, comm });
        }
        let pattern = self.substrings.find_in(process)?;
        Some(Hit { pattern, source: MatchSource::CommandLine, comm })
    }

    /// The name longer than the kernel keeps whose rest is confirmed by the command line or the executable.
    fn long_command(&self, name: &[u8], process: &mut impl ProcessFacts) -> Option<&str> {
        let candidates = || self.long_commands.iter().filter(|pattern| starts_as(pattern, name));
        let named = |basename: &[u8]| candidates().find(|pattern| pattern.as_bytes() == basename);
        let by_argument = first_argument_basename(process).and_then(|basename| named(&basename));
        by_argument
            .or_else(|| process.executable_name().and_then(|basename| named(&basename)))
            .map(String::as_str)
    }
}

/// True if the kernel would keep `name` for a program called `pattern`.
fn starts_as(pattern: &str, name: &[u8]) -> bool {
    pattern.as_bytes().get(..MAX_COMM_BYTES) == Some(name)
}

#[cfg(test)]
mod tests;
