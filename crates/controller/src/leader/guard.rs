//! The guard before every write: it is sent only while the Lease is held.

use five_spot_cluster::transport::http::WriteGuard;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A monotonic clock with its own origin.
pub trait LeaseClock: Send + Sync + 'static {
    /// The time since its origin.
    fn now(&self) -> Duration;
}

/// `CLOCK_BOOTTIME`, which also counts the time in which the machine was suspended.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl LeaseClock for BootClock {
    fn now(&self) -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
        seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
    }
}

/// The clock of `tokio`, for virtual time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(Instant);

impl Default for TokioClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl LeaseClock for TokioClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Permits writes while this instance holds the Lease and no other instance can acquire it.
pub struct LeaseGuard {
    clock: Arc<dyn LeaseClock>,
    valid_until: Mutex<Option<Duration>>,
}

impl LeaseGuard {
    /// A guard that permits no writes yet.
    pub fn new(clock: Arc<dyn LeaseClock>) -> Self {
        Self { clock, valid_until: Mutex::default() }
    }

    /// True if this instance leads at this moment.
    pub fn is_held(&self) -> bool {
        let until = *self.valid_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| self.clock.now() < until)
    }

    /// Permits writes until this time, or none.
    pub(super) fn set(&self, valid_until: Option<Duration>) {
        *self.valid_until.lock().unwrap_or_else(PoisonError::into_inner) = valid_until;
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }
}

impl WriteGuard for LeaseGuard {
    fn check(&self) -> Result<(), &'static str> {
        if self.is_held() { Ok(()) } else { Err("this instance does not hold the Lease") }
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseGuard").field("is_held", &self.is_held()).finish_non_exhaustive()
    }
}
