//! The choice between process events and polling.

use crate::netlink::{NetlinkError, Subscriber, SubscriberOptions};
use crate::procfs::{ProcRoot, ProcfsError};
use clap::ValueEnum;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;
use tracing::warn;

/// The detector that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// netlink if it works here, else poll
    Auto,
    /// Events of the Linux kernel; the agent exits if they cannot be had
    Netlink,
    /// A look at the process list every `poll_interval_ms`
    Poll,
}

/// The detector in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectorKind {
    /// Events of the Linux kernel.
    Netlink,
    /// Repeated looks at the process list.
    Poll,
}

impl DetectorKind {
    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Netlink => "netlink",
            Self::Poll => "poll",
        }
    }
}

impl fmt::Display for DetectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why a detector cannot work.
#[derive(Debug, thiserror::Error)]
pub enum DetectorError {
    /// Process events cannot be had.
    #[error("Subscriber::new() failed: {0}")]
    Subscribe(#[from] NetlinkError),
    /// Process events ended.
    #[error("receiving process events failed: {0}")]
    Receive(io::Error),
    /// The process list cannot be read.
    #[error(transparent)]
    Procfs(#[from] ProcfsError),
    /// The thread cannot be started, for lack of memory or because there are too many processes.
    #[error("cannot start the thread of the detector: {0}")]
    Thread(io::Error),
    /// The thread panicked, which is a fault of this program.
    #[error("the thread of the detector panicked")]
    Panicked,
}

impl DetectorError {
    /// True if process events cannot be had. Other failures may pass, and polling would meet them as well.
    pub fn is_about_events(&self) -> bool {
        match self {
            Self::Subscribe(NetlinkError::Io(error) | NetlinkError::SelfTest(error))
            | Self::Receive(error) => !is_shortage(error),
            Self::Subscribe(_) => true,
            Self::Procfs(_) | Self::Thread(_) | Self::Panicked => false,
        }
    }
}

/// True if the machine is short of memory, descriptors or processes, which may last for a moment only.
fn is_shortage(error: &io::Error) -> bool {
    // The last one is for want of processes.
    let shortages = [Errno::NOMEM, Errno::NOBUFS, Errno::MFILE, Errno::NFILE, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}

/// The most attempts to get process events from a machine that is short of something.
const ATTEMPTS: u32 = 5;

/// The time between two attempts.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Chooses the detector. Process events are tried, with `program` as the one that the self-test starts. Only an explicit
/// choice of them is an error where they cannot be had.
pub fn choose(choice: Choice, processes: &ProcRoot, program: &Path) -> Result<DetectorKind, DetectorError> {
    match choice {
        Choice::Poll => Ok(DetectorKind::Poll),
        Choice::Netlink => try_events(program).map(|()| DetectorKind::Netlink),
        Choice::Auto if cfg!(target_os = "linux") && !processes.is_own_namespace() => {
            warn!(
                "the process list is not the /proc of this program, which process events are about — falling back to \
                 --detector=poll"
            );
            Ok(DetectorKind::Poll)
        }
        Choice::Auto => Ok(match persist(|| try_events(program), RETRY_DELAY) {
            Ok(()) => DetectorKind::Netlink,
            Err(error) => {
                warn!(%error, "process events are not available — falling back to --detector=poll");
                DetectorKind::Poll
            }
        }),
    }
}

/// Repeats an attempt that fails for a reason that may pass: a fallback lasts until the next start.
fn persist(
    mut attempt: impl FnMut() -> Result<(), DetectorError>,
    delay: Duration,
) -> Result<(), DetectorError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if !error.is_about_events() => {
                warn!(%error, "process events cannot be tested now — retrying in a second");
                std::thread::sleep(delay);
            }
            tried => return tried,
        }
    }
    attempt()
}

#[cfg(target_os = "linux")]
fn try_events(program: &Path) -> Result<(), DetectorError> {
    let mut subscriber = Subscriber::new(SubscriberOptions::default())?;
    Ok(subscriber.self_test(program)?)
}

#[cfg(not(target_os = "linux"))]
fn try_events(_program: &Path) -> Result<(), DetectorError> {
    Subscriber::new(SubscriberOptions::default())?.never()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_at_the_start_passes_before_the_fallback() {
        let shortage = || DetectorError::from(NetlinkError::Io(Errno::MFILE.into()));
        for (failures, tries, is_available) in [(0, 1, true), (2, 3, true), (4, 5, true), (9, 5, false)] {
            let mut tried = 0;
            let outcome = persist(
                || {
                    tried += 1;
                    if tried > failures { Ok(()) } else { Err(shortage()) }
                },
                Duration::ZERO,
            );
            assert_eq!((tried, outcome.is_ok()), (tries, is_available), "{failures} failures");
        }
        let program = || DetectorError::from(NetlinkError::SelfTest(Errno::AGAIN.into()));
        assert!(!program().is_about_events());
    }

    #[test]
    fn events_that_cannot_be_had_are_tried_once() {
        let mut tried = 0;
        let outcome = persist(
            || {
                tried += 1;
                Err(NetlinkError::NotPermitted.into())
            },
            Duration::ZERO,
        );
        assert_eq!((tried, outcome.is_err()), (1, true));
    }
}
