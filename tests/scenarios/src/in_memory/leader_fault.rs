//! Faults of the leader when it is about to write; another controller takes over.

use super::link::RunState;
use crate::environment::LeaderFault;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The time for which a leader is stopped or cut off: longer than its Lease, so that another one works meanwhile.
pub(super) const AWAY: Duration = Duration::from_secs(8);

/// The time in which a process that continues sends what it had decided before it sees who holds the Lease.
pub(super) const UNAWARE: Duration = Duration::from_millis(5);

/// A fault of the leader at the write of a number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderFaultAt {
    /// The write.
    pub write: usize,
    /// The fault.
    pub fault: LeaderFault,
}

impl fmt::Display for LeaderFaultAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.write, self.fault)
    }
}

/// Begins a fault, and ends it after a while. A process that is killed stays dead.
pub(super) fn away_for(process: &Arc<RunState>, fault: LeaderFault) {
    begin(process, fault);
    let process = process.clone();
    tokio::spawn(async move {
        tokio::time::sleep(AWAY).await;
        if fault == LeaderFault::Stopped {
            process.resume();
            tokio::time::sleep(UNAWARE).await;
        }
        process.open();
    });
}

fn begin(process: &RunState, fault: LeaderFault) {
    match fault {
        LeaderFault::Killed | LeaderFault::KilledUnaware => process.end(),
        LeaderFault::Stopped => process.stop(),
        LeaderFault::Silent => process.silence(),
        LeaderFault::CutOff | LeaderFault::CutOffUnaware => process.cut_off(),
    }
}
