//! A thread that looks for a matching process, by events of the kernel or by polling. It reports the first match and
//! ends: the agent stays silent until it is armed again.

mod by_events;
mod by_polling;
mod choice;

pub use choice::{Choice, DetectorError, DetectorKind, choose};

use crate::matcher::Matcher;
use crate::procfs::{Found, ProcRoot, ProcfsError, Scanner};
use std::io::Read as _;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// The outcome of a search.
#[derive(Debug)]
pub enum DetectorOutcome {
    /// A process matches.
    Matched(Found),
    /// The search cannot continue.
    Failed(DetectorError),
}

/// The work of a detector.
pub struct Search {
    /// The patterns.
    pub matcher: Matcher,
    /// The processes.
    pub scanner: Scanner,
    /// The time between two looks, where the detector polls.
    pub interval: Duration,
}

impl Search {
    /// Prepares a search below `proc_root`.
    pub fn new(proc_root: &Path, matcher: Matcher, interval: Duration) -> Result<Self, ProcfsError> {
        Ok(Self { matcher, scanner: Scanner::new(ProcRoot::open(proc_root)?), interval })
    }

    /// Looks at every process.
    fn look_at_all(&mut self) -> Result<Option<Found>, ProcfsError> {
        self.scanner.forget();
        self.scanner.look(&self.matcher)
    }
}

/// The time for which a dropped detector waits for its thread. The thread ends at once unless it is reading: a process can
/// make a reader of its command line wait, and the event loop must not wait as well.
const END_TIMEOUT: Duration = Duration::from_millis(250);

/// A running search. It ends when it is dropped.
#[derive(Debug)]
pub struct Detector {
    /// The thread ends when this is shut down, and closes its side when it has ended.
    stop: UnixStream,
}

impl Detector {
    /// Starts the thread. `report` is called at most once, from that thread.
    pub fn start(
        kind: DetectorKind,
        search: Search,
        report: impl FnOnce(DetectorOutcome) + Send + 'static,
    ) -> Result<Self, DetectorError> {
        let (stop, stopped) = UnixStream::pair().map_err(DetectorError::Thread)?;
        let run = move || {
            let find = || match kind {
                DetectorKind::Netlink => by_events::run(search, stopped.as_fd()),
                DetectorKind::Poll => by_polling::run(search, stopped.as_fd()),
            };
            match catch_unwind(AssertUnwindSafe(find)) {
                Ok(Ok(Some(found))) => report(DetectorOutcome::Matched(found)),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => report(DetectorOutcome::Failed(error)),
                Err(_) => report(DetectorOutcome::Failed(DetectorError::Panicked)),
            }
        };
        let thread = std::thread::Builder::new().name(format!("detector-{kind}")).spawn(run);
        thread.map_err(DetectorError::Thread)?;
        Ok(Self { stop })
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        let _ = self.stop.shutdown(Shutdown::Write);
        let _ = self.stop.set_read_timeout(Some(END_TIMEOUT));
        let _ = self.stop.read(&mut [0]);
    }
}

#[cfg(test)]
mod tests;
