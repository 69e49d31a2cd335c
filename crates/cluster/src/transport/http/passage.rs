//! What the transport layer says about a request to the connections below it.

use super::{Call, DoorError, Fence};
use std::fmt;
use std::sync::Arc;

/// The connections that a request uses. Each lane has connections of its own, so that no kind of request waits for
/// another: a connection full of watches holds up no renewal of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Watches, which stay open.
    Watches,
    /// Reads and writes of Leases, which have to be in time.
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

/// An extension of a request: its lane, and for a write the fences that are checked once more when a connection is
/// there, immediately before it is sent.
#[derive(Clone)]
pub(super) struct Passage {
    pub(super) lane: Lane,
    pub(super) fences: Option<Arc<[Arc<dyn Fence>]>>,
}

impl Passage {
    pub(super) fn new(call: &Call, fences: &Arc<[Arc<dyn Fence>]>) -> Self {
        Self { lane: Lane::of(call), fences: call.writes().then(|| fences.clone()) }
    }

    /// The passage of a request that comes from elsewhere.
    pub(super) const fn plain() -> Self {
        Self { lane: Lane::Requests, fences: None }
    }

    pub(super) fn check(&self) -> Result<(), DoorError> {
        let mut fences = self.fences.iter().flat_map(|fences| fences.iter());
        fences.try_for_each(|fence| fence.check()).map_err(DoorError::Fenced)
    }
}

impl fmt::Debug for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passage").field("lane", &self.lane).finish_non_exhaustive()
    }
}
