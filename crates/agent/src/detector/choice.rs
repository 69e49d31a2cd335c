//! The choice between process events and polling.

use crate::netlink::{NetlinkError, Subscriber, SubscriberOptions};
use crate::procfs::ProcfsError;
use clap::ValueEnum;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::Path;
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
            Self::Subscribe(NetlinkError::Io(error)) | Self::Receive(error) => !is_shortage(error),
            Self::Subscribe(_) => true,
            Self::Procfs(_) | Self::Thread(_) | Self::Panicked => false,
        }
    }
}

/// True if the machine is short of memory or descriptors, which may last for a moment only.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::NOMEM, Errno::NOBUFS, Errno::MFILE, Errno::NFILE];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}

/// Chooses the detector. Process events are tried, with `program` as the one that the self-test starts. Only an explicit
/// choice of them is an error where they cannot be had.
pub fn choose(choice: Choice, program: &Path) -> Result<DetectorKind, DetectorError> {
    match choice {
        Choice::Poll => Ok(DetectorKind::Poll),
        Choice::Netlink => try_events(program).map(|()| DetectorKind::Netlink),
        Choice::Auto => Ok(match try_events(program) {
            Ok(()) => DetectorKind::Netlink,
            Err(error) => {
                warn!(%error, "process events are not available — falling back to --detector=poll");
                DetectorKind::Poll
            }
        }),
    }
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
