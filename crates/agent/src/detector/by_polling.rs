//! Repeated looks at the process list.

use super::{DetectorError, Search};
use crate::procfs::Found;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use tracing::warn;

/// Looks until a process matches or `stop` is closed. The time between looks is that of a monotonic clock.
pub(super) fn run(mut search: Search, stop: BorrowedFd<'_>) -> Result<Option<Found>, DetectorError> {
    let mut failing = false;
    loop {
        match search.scanner.look(&search.matcher) {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => failing = false,
            Err(error) => {
                if !failing {
                    warn!(%error, "reading the process list failed — retrying at every interval");
                }
                failing = true;
            }
        }
        if is_stopped_within(stop, search.interval).map_err(DetectorError::Receive)? {
            return Ok(None);
        }
    }
}

/// Waits for `interval`; true as soon as `stop` is closed.
fn is_stopped_within(stop: BorrowedFd<'_>, interval: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(interval).map_err(io::Error::other)?;
    let mut descriptors = [PollFd::from_borrowed_fd(stop, PollFlags::IN)];
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        // A look too early does no harm.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
