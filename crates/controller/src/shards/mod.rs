//! Shards: several instances share the objects, and agree on a change of their number while it is rolled out.
//!
//! Every instance, even a single one, holds a Lease `<LEASE_NAME>-instance-<id>` with the count that it was started
//! with. [`member`] is the protocol, [`driver`] carries it out, [`view`] contains the objects that an instance may
//! work on, and
//! [`guard`] stops every write of an instance that no longer holds its Lease. The reasons are in
//! `docs/adr/0012-shards.md`.

mod assignment;
mod driver;
mod guard;
mod member;
mod ownership_log;
mod peer;
mod process;
#[cfg(test)]
mod rollout;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use assignment::Assignment;
pub use guard::InstanceGuard;
pub(crate) use process::identity as process_identity;
pub(crate) use view::View;

use crate::health::Health;
use crate::leader::{LeaseClock, LeaseTiming, Role};
use crate::metrics::Metrics;
use driver::Driver;
use five_spot_cluster::Connection;
use five_spot_core::shard::Shard;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The duration of a Lease that was released, as in client-go.
const RELEASED_SECONDS: u32 = 1;

/// The longest duration that is accepted. An edited record must not keep other instances waiting forever.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// The durations of the Lease of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceTiming {
    /// The time for which others assume that the instance works after a renewal.
    pub duration: Duration,
    /// The time for which the instance works after its last renewal; below `duration`.
    pub renew_deadline: Duration,
    /// The time between two renewals; below `renew_deadline`.
    pub renew_every: Duration,
    /// The time between two attempts after a failure.
    pub retry_period: Duration,
}

impl InstanceTiming {
    /// For an instance that others wait for: the durations of the election.
    pub fn shared(timing: LeaseTiming) -> Self {
        Self::renewed_in_time(timing.duration, timing.renew_deadline, timing.retry_period)
    }

    /// Renews every third of the duration, or every half of the deadline if that is shorter, so that one renewal may
    /// fail.
    fn renewed_in_time(duration: Duration, renew_deadline: Duration, retry_period: Duration) -> Self {
        let renew_every = (duration / 3).min(renew_deadline / 2);
        Self { duration, renew_deadline, renew_every, retry_period }
    }

    /// For the only instance without an election. Only a second instance that is being started waits for its Lease, so
    /// it is renewed as rarely as the kubelet renews that of its node: every ten seconds. A restart in the same pod
    /// does not wait, and a restart elsewhere waits no longer than Kubernetes takes to notice that a node is gone.
    pub fn alone(timing: LeaseTiming) -> Self {
        let factor = (30.0 / timing.duration.as_secs_f64()).max(1.0);
        let (duration, deadline) = (timing.duration.mul_f64(factor), timing.renew_deadline.mul_f64(factor));
        Self::renewed_in_time(duration, deadline, timing.retry_period)
    }
}

/// The settings of one of several instances.
#[derive(Clone)]
pub struct ShardSettings {
    /// This instance.
    pub shard: Shard,
    /// The prefix of the names of the Leases.
    pub lease_name: String,
    /// The namespace of the Leases.
    pub namespace: String,
    /// The identity of this process: `<POD_NAME>_<random>`.
    pub identity: String,
    /// The UID of its pod, if it runs in one.
    pub pod_uid: Option<String>,
    /// The identity of this process on its machine, if it runs outside a pod.
    pub process: Option<String>,
    /// Durations and periods.
    pub timing: InstanceTiming,
    /// The clock that Leases are measured by.
    pub clock: Arc<dyn LeaseClock>,
}

impl fmt::Debug for ShardSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardSettings")
            .field("shard", &self.shard)
            .field("lease_name", &self.lease_name)
            .field("namespace", &self.namespace)
            .field("identity", &self.identity)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// Prepares the driver, and returns it with a connection whose writes need the Lease of this instance. Leases are
/// written with the connection `unguarded`.
pub(crate) fn start(
    settings: ShardSettings,
    unguarded: Connection,
    connection: Connection,
    role: Option<watch::Receiver<Role>>,
    (metrics, health): (&Arc<Metrics>, &Arc<Health>),
) -> Result<(Connection, Driver, Assignment), kube::Error> {
    let guard = Arc::new(InstanceGuard::new(settings.clock.clone()));
    metrics.follow_instance(guard.clone());
    let guarded = connection.with_write_guard(guard.clone());
    let (driver, follower) = Driver::new(settings, unguarded, guard, health.clone(), role)?;
    Ok((guarded, driver, Assignment::new(follower)))
}
