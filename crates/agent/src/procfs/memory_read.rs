//! The read of a command line that is in progress. A command line is in the memory of its process, and the read can block for
//! ever, for example on a file system that no longer responds. Code that depends on the reader can see here that it is blocked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of the process id; above them stands the number of the read.
const PID_BITS: u64 = 0xffff_ffff;

/// The read that is going on, shared with the thread that reads.
#[derive(Clone, Debug, Default)]
pub struct MemoryRead(Arc<AtomicU64>);

/// A read of the memory of a process. Two of the same process differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OngoingRead {
    number: u64,
    /// The process id.
    pub pid: u32,
}

impl MemoryRead {
    /// The read that is going on, if there is one.
    pub fn ongoing(&self) -> Option<OngoingRead> {
        let value = self.0.load(Ordering::Relaxed);
        let pid = u32::try_from(value & PID_BITS).ok().filter(|pid| *pid != 0)?;
        Some(OngoingRead { number: value >> 32, pid })
    }

    /// Takes note that a read begins. Only one thread reads.
    pub(super) fn begin(&self, pid: u32) {
        let number = (self.0.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        self.0.store((number << 32) | u64::from(pid), Ordering::Relaxed);
    }

    /// Takes note that the read has ended.
    pub(super) fn end(&self) {
        self.0.fetch_and(!PID_BITS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_told_from_the_next_one_of_the_same_process() {
        let read = MemoryRead::default();
        assert_eq!(read.ongoing(), None);
        read.begin(7);
        let first = read.ongoing().expect("a read");
        assert_eq!((first.pid, read.ongoing()), (7, Some(first)));
        read.end();
        assert_eq!(read.ongoing(), None);
        read.begin(7);
        let second = read.ongoing().expect("a read");
        assert!(second.pid == 7 && second != first);
    }
}
