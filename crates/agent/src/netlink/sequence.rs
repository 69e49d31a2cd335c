//! Gaps in the numbers of events, which show events that were lost before they reached the socket.
//!
//! The kernel counts events on each CPU, those that a filter drops included. Numbers are therefore continuous only where
//! nothing is filtered; elsewhere the error `ENOBUFS` alone shows a loss.

/// The next number of each CPU.
#[derive(Clone, Debug, Default)]
pub struct SequenceTracker {
    next: Vec<Option<u32>>,
}

/// CPUs beyond this number are not tracked: a frame must not decide how much memory is used.
const MAX_CPUS: usize = 8192;

impl SequenceTracker {
    /// Takes note of an event. Returns true if events before it were lost.
    pub fn observe(&mut self, cpu: u32, sequence: u32) -> bool {
        let Some(index) = usize::try_from(cpu).ok().filter(|index| *index < MAX_CPUS) else { return false };
        if index >= self.next.len() {
            self.next.resize(index + 1, None);
        }
        let expected = self.next[index].replace(sequence.wrapping_add(1));
        expected.is_some_and(|expected| expected != sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_numbers_of_its_own() {
        let mut tracker = SequenceTracker::default();
        for (cpu, sequence, lost) in [
            (0, 10, false),
            (1, 500, false),
            (0, 11, false),
            (1, 501, false),
            (0, 13, true),
            (0, 14, false),
            (1, 502, false),
            (2, u32::MAX, false),
            (2, 0, false),
            (u32::MAX, 7, false),
        ] {
            assert_eq!(tracker.observe(cpu, sequence), lost, "{sequence} on {cpu}");
        }
    }
}
