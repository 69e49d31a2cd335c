//! Leader election by a Lease: one of several replicas works, and the others are on standby.
//!
//! [`state`] is the protocol, [`elector`] drives it, and [`guard`] stops every write of an instance whose Lease another
//! may have taken.

mod elector;
mod guard;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use elector::Elector;
pub use guard::{BootClock, LeaseClock, LeaseGuard, TokioClock};
pub use state::LeaseTiming;

use five_spot_core::text;
use std::fmt;
use std::sync::Arc;

/// The settings of the election.
#[derive(Clone)]
pub struct ElectionSettings {
    /// The name of the Lease.
    pub name: String,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The identity of this instance: `<POD_NAME>_<random>`. A pod's name alone can belong to two processes.
    pub identity: String,
    /// Durations and periods.
    pub timing: LeaseTiming,
    /// The clock that the Lease is measured by.
    pub clock: Arc<dyn LeaseClock>,
}

impl fmt::Debug for ElectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionSettings")
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("identity", &self.identity)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// The role of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Another instance works, or none does yet.
    #[default]
    Standby,
    /// This instance works.
    Leader,
}

/// The longest name of a pod.
const MAX_INSTANCE: usize = 253;

/// The identity of this process: the name of its pod or host, and a random part. A name that no pod can have is bounded and
/// escaped, as it is when the Lease is read again.
#[must_use]
pub fn identity(instance: &str) -> String {
    let instance = text::bounded(instance, MAX_INSTANCE);
    let mut random = [0_u8; 8];
    // The kernel's random source cannot fail once it is initialised; until then the call waits.
    let _ = rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty());
    format!("{instance}_{:016x}", u64::from_be_bytes(random))
}
