//! The context of a request, for the connections below the transport layer.

use super::{Call, TransportError, WriteGuard};
use std::fmt;
use std::sync::Arc;

/// The connections that a request uses. Each lane has its own connections, so that no kind of request waits for
/// another: a connection full of watches does not delay the renewal of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Watches, which stay open.
    Watches,
    /// Reads and writes of Leases, which are time-critical.
    Leases,
    /// Everything else.
    Requests,
}

impl Lane {
    pub(super) fn of(call: &Call) -> Self {
        if call.verb == "watch" {
            Self::Watches
        } else if call.group == "coordination.k8s.io" && call.resource == "leases" {
            Self::Leases
        } else {
            Self::Requests
        }
    }
}

/// An extension of a request: its lane, and for a write the write guards, which are checked once more when a connection
/// is available, immediately before the write is sent.
#[derive(Clone)]
pub(super) struct RequestContext {
    pub(super) lane: Lane,
    pub(super) write_guards: Option<Arc<[Arc<dyn WriteGuard>]>>,
}

impl RequestContext {
    pub(super) fn new(call: &Call, write_guards: &Arc<[Arc<dyn WriteGuard>]>) -> Self {
        Self { lane: Lane::of(call), write_guards: call.writes().then(|| write_guards.clone()) }
    }

    /// The context of a request that comes from elsewhere.
    pub(super) const fn plain() -> Self {
        Self { lane: Lane::Requests, write_guards: None }
    }

    pub(super) fn check(&self) -> Result<(), TransportError> {
        let mut write_guards = self.write_guards.iter().flat_map(|write_guards| write_guards.iter());
        write_guards.try_for_each(|guard| guard.check()).map_err(TransportError::Guarded)
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext").field("lane", &self.lane).finish_non_exhaustive()
    }
}
