//! A process whose files hold the fuzzer's bytes.

use five_spot_agent::matcher::{CgroupView, Comm, ProcessFacts, is_in_pod};
use five_spot_agent::procfs;
use std::ops::ControlFlow;

/// A process.
#[derive(Clone)]
pub struct Process<'a> {
    pub comm: &'a [u8],
    pub command_line: &'a [u8],
    pub cgroup: &'a [u8],
    pub stat: &'a [u8],
    pub status: &'a [u8],
    /// The size of the chunks in which the command line is read.
    pub chunk: usize,
}

impl ProcessFacts for Process<'_> {
    fn comm(&mut self) -> Option<Comm> {
        Some(Comm::from_file(self.comm))
    }

    fn is_excluded(&mut self) -> Option<bool> {
        procfs::state(self.stat).map(|state| state.is_kernel_thread || state.has_ended)
    }

    fn is_in_pod(&mut self) -> Option<bool> {
        Some(is_in_pod(self.cgroup, CgroupView::Host))
    }

    fn is_started_by_node(&mut self) -> Option<bool> {
        Some(false)
    }

    fn uid(&mut self) -> Option<u32> {
        procfs::uid(self.status)
    }

    fn visit_command_line(
        &mut self,
        overlap: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()> {
        let mut start = 0;
        while start < self.command_line.len() {
            let end = (start + self.chunk).min(self.command_line.len());
            if visit(&self.command_line[start.saturating_sub(overlap)..end]).is_break() {
                break;
            }
            start = end;
        }
        Some(())
    }

    fn executable_name(&mut self) -> Option<Vec<u8>> {
        None
    }
}
