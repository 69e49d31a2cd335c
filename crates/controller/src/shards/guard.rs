//! The guard before every write: it is sent only while this instance holds its own Lease.

use crate::leader::LeaseClock;
use five_spot_cluster::transport::http::WriteGuard;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Permits writes while this instance holds its Lease, or if access to Leases is refused and there is only one
/// instance.
pub struct InstanceGuard {
    clock: Arc<dyn LeaseClock>,
    permission: Mutex<Permission>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Permission {
    /// No write is permitted.
    #[default]
    None,
    /// Every write is permitted until this time.
    Until(Duration),
    /// Every write is permitted.
    Unprotected,
}

impl InstanceGuard {
    /// A guard that permits no writes yet.
    pub fn new(clock: Arc<dyn LeaseClock>) -> Self {
        Self { clock, permission: Mutex::default() }
    }

    /// True if this instance may write at this moment.
    pub fn is_open(&self) -> bool {
        match *self.permission.lock().unwrap_or_else(PoisonError::into_inner) {
            Permission::None => false,
            Permission::Until(until) => self.clock.now() < until,
            Permission::Unprotected => true,
        }
    }

    pub(super) fn set(&self, permission: Permission) {
        *self.permission.lock().unwrap_or_else(PoisonError::into_inner) = permission;
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }
}

impl WriteGuard for InstanceGuard {
    fn check(&self) -> Result<(), &'static str> {
        if self.is_open() { Ok(()) } else { Err("this instance does not hold its instance Lease") }
    }
}

impl fmt::Debug for InstanceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceGuard").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}
