//! The search among all processes.

use super::process::CHUNK_BYTES;
use super::{
    MemoryRead, ProcRoot, ProcessFiles, ProcessKey, ProcfsError, cpu_clock, last_pid, pids::PidList,
    read_file,
};
use crate::matcher::{MatchSource, Matcher};
use rustix::fd::AsFd;
use std::time::{Duration, Instant};

/// Looks between two readings of the whole list of processes. In between, new processes are found by their numbers, which
/// the kernel gives out in ascending order: reading the list takes most of the time of a look.
const LOOKS_PER_LIST: u32 = 40;

/// The age at which a list is read again, however few looks there were. Where looks are far apart, numbers can go all the way
/// round between two of them, and a process whose number was not seen must not wait for forty looks.
const MAX_LIST_AGE: Duration = Duration::from_secs(10);

/// The most numbers that are tried one by one. Beyond it, reading the list is cheaper.
const MAX_NEW_PIDS: u32 = 2000;

/// A process that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The process id.
    pub pid: u32,
    /// The name of the process.
    pub comm: String,
    /// The pattern that it matched.
    pub pattern: String,
    /// The list that the pattern is from.
    pub source: MatchSource,
    /// The time from the event of the kernel to the match; `None` if the process was not found by an event.
    pub after_exec: Option<Duration>,
}

/// A process at the time of the last look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    pid: u32,
    /// The CPU time that it had used; `None` for one that has not been looked at, or that has ended.
    cpu_time: Option<u64>,
}

/// Searches the processes for one that matches. Keeps its buffers, so that a search allocates nothing once it has seen as
/// many processes as there are.
#[derive(Debug)]
pub struct Scanner {
    root: ProcRoot,
    buffer: Vec<u8>,
    pids: PidList,
    /// In ascending order.
    seen: Vec<Seen>,
    previous: Vec<Seen>,
    /// The number that was given out last, at the last look and at the one before.
    last_pids: [Option<u32>; 2],
    looks_since_list: u32,
    /// The time at which the whole list was read.
    listed_at: Option<Instant>,
    is_incomplete: bool,
    memory_read: MemoryRead,
    /// The processes whose memory is not read.
    left_out: Vec<ProcessKey>,
}

impl Scanner {
    /// A scanner of the processes below `root`.
    pub fn new(root: ProcRoot) -> Self {
        Self {
            root,
            buffer: vec![0; 2 * CHUNK_BYTES],
            pids: PidList::new(),
            seen: Vec::new(),
            previous: Vec::new(),
            last_pids: [None; 2],
            looks_since_list: 0,
            listed_at: None,
            is_incomplete: false,
            memory_read: MemoryRead::default(),
            left_out: Vec::new(),
        }
    }

    /// The read of a command line that is going on, for who waits for this scanner.
    pub fn memory_read(&self) -> MemoryRead {
        self.memory_read.clone()
    }

    /// Never reads the command lines of these processes. Their names are looked at as before.
    pub fn leave_out(&mut self, processes: &[ProcessKey]) {
        self.left_out = processes.to_vec();
    }

    /// The folder that it reads.
    pub fn root(&self) -> &ProcRoot {
        &self.root
    }

    /// Counts the processes.
    pub fn count(&mut self) -> Result<usize, ProcfsError> {
        let mut count = 0;
        self.pids.visit(&self.root, |_| count += 1)?;
        Ok(count)
    }

    /// Forgets all processes: the next look reads every one.
    pub fn forget(&mut self) {
        self.seen.clear();
        self.last_pids = [None; 2];
    }

    /// True if a process could not be read at the last look, or since then, though it is there.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Looks at one process.
    pub fn check(&mut self, matcher: &Matcher, pid: u32) -> Option<Found> {
        let is_left_out = self.is_left_out(pid);
        let mut process = ProcessFiles::new(&self.root, &mut self.buffer, pid);
        process.report_to(&self.memory_read);
        if is_left_out {
            process.leave_memory_out();
        }
        let hit = matcher.check(&mut process);
        self.is_incomplete |= process.is_unread();
        hit.map(|hit| Found {
            pid,
            comm: String::from_utf8_lossy(hit.comm.as_bytes()).into_owned(),
            pattern: hit.pattern.to_owned(),
            source: hit.source,
            after_exec: None,
        })
    }

    /// True if the memory of this process is not read. Another process that has got its number later is looked at.
    fn is_left_out(&self, pid: u32) -> bool {
        let has_number = self.left_out.iter().any(|process| process.pid == pid);
        has_number && self.left_out.contains(&self.root.identify(pid))
    }

    /// Looks at every process that has run since the last look, and returns the first that matches. If one could not be read,
    /// the next look is at every process again.
    pub fn look(&mut self, matcher: &Matcher) -> Result<Option<Found>, ProcfsError> {
        self.is_incomplete = false;
        if let Err(error) = self.list() {
            // Half a list is none.
            self.forget();
            return Err(error);
        }
        let tracks = self.root.is_own_namespace();
        for index in 0..self.seen.len() {
            let Seen { pid, cpu_time: before } = self.seen[index];
            let now = if tracks { cpu_clock::used(pid) } else { None };
            self.seen[index].cpu_time = now;
            if now.is_some() && now == before {
                continue;
            }
            if let Some(found) = self.check(matcher, pid) {
                // Processes after this one have not been looked at.
                self.forget();
                return Ok(Some(found));
            }
        }
        if self.is_incomplete {
            self.forget();
        }
        Ok(None)
    }

    /// Brings `seen` up to date.
    fn list(&mut self) -> Result<(), ProcfsError> {
        let last_pid = self.read_last_pid();
        // From the look before the last one on: a process whose number was taken then may not have been visible yet.
        let from = self.last_pids[1];
        self.last_pids = [last_pid, self.last_pids[0]];
        self.looks_since_list += 1;
        let is_recent = self.looks_since_list < LOOKS_PER_LIST
            && self.listed_at.is_some_and(|time| time.elapsed() < MAX_LIST_AGE);
        match (from, last_pid) {
            (Some(from), Some(to)) if is_recent && from <= to && to - from <= MAX_NEW_PIDS => {
                self.add_new(from, to);
                Ok(())
            }
            _ => self.read_list(),
        }
    }

    /// The number of the process or thread that was made last, if numbers are those of our own namespace.
    fn read_last_pid(&self) -> Option<u32> {
        if !self.root.is_own_namespace() {
            return None;
        }
        let mut content = [0; 128];
        let length = read_file(self.root.as_fd(), "loadavg", &mut content).ok()?;
        last_pid(&content[..length])
    }

    /// Drops processes that have ended, and adds those with a number after `from` and up to `to`.
    fn add_new(&mut self, from: u32, to: u32) {
        self.seen.retain(|process| process.cpu_time.is_some());
        let known = self.seen.len();
        for pid in from.saturating_add(1)..=to {
            let is_known = self.seen[..known].binary_search_by_key(&pid, |process| process.pid).is_ok();
            if !is_known && cpu_clock::used(pid).is_some() {
                self.seen.push(Seen { pid, cpu_time: None });
            }
        }
        self.sort();
    }

    /// Reads the whole list, and keeps the CPU times of the processes that are still there.
    fn read_list(&mut self) -> Result<(), ProcfsError> {
        self.looks_since_list = 0;
        self.listed_at = Some(Instant::now());
        std::mem::swap(&mut self.seen, &mut self.previous);
        self.seen.clear();
        let seen = &mut self.seen;
        self.pids.visit(&self.root, |pid| seen.push(Seen { pid, cpu_time: None }))?;
        self.sort();
        let mut previous = self.previous.iter().peekable();
        for process in &mut self.seen {
            while previous.next_if(|old| old.pid < process.pid).is_some() {}
            process.cpu_time = previous.next_if(|old| old.pid == process.pid).and_then(|old| old.cpu_time);
        }
        Ok(())
    }

    /// As if this time had passed since the last look, in which numbers were given out all the way round.
    #[cfg(test)]
    pub(super) fn numbers_went_round(&mut self, time: Duration) {
        self.last_pids = [self.read_last_pid(); 2];
        self.listed_at = self.listed_at.and_then(|listed_at| listed_at.checked_sub(time));
    }

    fn sort(&mut self) {
        if !self.seen.is_sorted_by_key(|process| process.pid) {
            self.seen.sort_unstable_by_key(|process| process.pid);
        }
    }
}
