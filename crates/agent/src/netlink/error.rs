//! The reasons why process events cannot be had. The texts are read by people who have to change a manifest.

use std::io;
use std::time::Duration;

/// The reason why process events are not available.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel demands a capability.
    #[error(
        "netlink i/o: EPERM: this kernel gives process events only to processes with CAP_NET_ADMIN; add NET_ADMIN to \
         securityContext.capabilities.add of the container, or use --detector=poll (RECLAIM_DETECTOR=poll)"
    )]
    NotPermitted,
    /// The process connector is not reachable from this network namespace.
    #[error(
        "netlink i/o: ECONNREFUSED: the process connector can be reached only from the network namespace of the host; \
         set hostNetwork: true on the pod, or use --detector=poll (RECLAIM_DETECTOR=poll)"
    )]
    Unreachable,
    /// The kernel has no such protocol.
    #[error(
        "netlink i/o: EPROTONOSUPPORT: this kernel has no process connector (CONFIG_CONNECTOR, CONFIG_PROC_EVENTS); \
         use --detector=poll (RECLAIM_DETECTOR=poll)"
    )]
    NoConnector,
    /// The kernel did not confirm the subscription.
    #[error(
        "the kernel did not confirm the subscription to process events within {0:?}; the pod may lack hostPID: true, or \
         the kernel CONFIG_PROC_EVENTS; use --detector=poll (RECLAIM_DETECTOR=poll)"
    )]
    NotConfirmed(Duration),
    /// The subscription was confirmed, but the event of a program that was started to test it did not come.
    #[error(
        "no process event within {0:?} of starting a program; the kernel may lack CONFIG_PROC_EVENTS, or the pod \
         hostPID: true; use --detector=poll (RECLAIM_DETECTOR=poll)"
    )]
    NoEvents(Duration),
    /// The program that the self-test starts could not be started.
    #[error("cannot start a program to test process events: {0}")]
    SelfTest(io::Error),
    /// Another refusal of the operating system.
    #[error("netlink i/o: {0}")]
    Io(io::Error),
    /// This is not Linux.
    #[error("Unsupported: process events exist on Linux only; use --detector=poll")]
    Unsupported,
}

impl From<io::Error> for NetlinkError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied {
            Self::NotPermitted
        } else if error.kind() == io::ErrorKind::ConnectionRefused {
            Self::Unreachable
        } else if error.raw_os_error() == Some(EPROTONOSUPPORT) {
            Self::NoConnector
        } else {
            Self::Io(error)
        }
    }
}

/// The number on Linux; it has no `io::ErrorKind`.
const EPROTONOSUPPORT: i32 = 93;
