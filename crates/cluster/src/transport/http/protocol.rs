//! The version of HTTP that a cluster supports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: every watch has its own connection, and a dead one is only noticed because nothing arrives.
    Http1,
    /// HTTP/2: pings detect within 40 s that a server no longer answers.
    Http2,
}

/// The protocol of the latest connection to a cluster. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestProtocol(Arc<AtomicU8>);

impl LatestProtocol {
    pub(super) fn set(&self, protocol: Protocol) {
        let number = match protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }

    /// Absent before the first connection.
    pub(super) fn get(&self) -> Option<Protocol> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(Protocol::Http1),
            2 => Some(Protocol::Http2),
            _ => None,
        }
    }
}
