//! The Prometheus metrics. Each is set where the thing happens: requests by the transport, reconciles by the
//! [`crate::reconcile_report`] that each of them keeps, the queue by the event loop; values that only time
//! changes are computed for each scrape.
//!
//! There is no global registry: several controllers may run in one process.

mod drains;
mod errors;
mod families;
mod objects;
mod page;
mod reclaims;
mod requests;
mod runtime;

pub use errors::ErrorKind;
pub(crate) use objects::Repeat;
pub use page::CONTENT_TYPE;

use crate::descriptors::Descriptors;
use crate::leader::LeaseGuard;
use crate::memory::ResidentMemory;
use crate::shards::InstanceGuard;
use families::{Families, UNKNOWN_PHASE};
use five_spot_api::Phase;
use five_spot_cluster::cache::Caches;
use five_spot_cluster::execute::SkipReason;
use five_spot_cluster::view::Observed;
use five_spot_cluster::{Connection, ObjectKey};
use five_spot_core::Decision;
use five_spot_core::shard::Shard;
use objects::Objects;
use prometheus::Registry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Metrics that nothing changes yet, because the feature they belong to does not exist.
pub const PENDING: &[&str] = &[];

/// The result of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Well.
    Success,
    /// It did not, and this is the kind of reason.
    Failure(ErrorKind),
    /// It broke off.
    Error(ErrorKind),
}

impl Verdict {
    const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure(_) => "failure",
            Self::Error(_) => "error",
        }
    }

    const fn error(self) -> Option<ErrorKind> {
        match self {
            Self::Success => None,
            Self::Failure(error) | Self::Error(error) => Some(error),
        }
    }
}

/// The number of objects by their relation to this instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardObjects {
    /// This instance works on them.
    pub(crate) owned: usize,
    /// They belong to other instances.
    pub(crate) foreign: usize,
    /// They belong to this instance, which waits for another one to leave them.
    pub(crate) waiting: usize,
}

type CountObjects = Arc<dyn Fn() -> ShardObjects + Send + Sync>;

/// Everything that is counted and measured.
pub struct Metrics {
    registry: Registry,
    families: Families,
    objects: Mutex<Objects>,
    /// The connection that is read for each scrape; absent until a controller runs.
    connection: Mutex<Option<Connection>>,
    /// The caches that are read for each scrape, while a controller runs.
    caches: Mutex<Weak<Caches>>,
    /// The guard of the Lease; absent without an election: then this instance always leads.
    leadership: Mutex<Option<Arc<LeaseGuard>>>,
    /// The guard of the Lease of this instance; absent without shards.
    instance: Mutex<Option<Arc<InstanceGuard>>>,
    /// Counts the objects for each scrape; absent until a controller runs.
    shard_objects: Mutex<Option<CountObjects>>,
    /// The due time of the first key in the queue.
    next_due: Mutex<Option<Instant>>,
    memory: ResidentMemory,
}

impl Metrics {
    /// Everything at 0, for this instance.
    ///
    /// # Panics
    /// Never: the names are fixed.
    #[must_use]
    pub fn new(shard: Shard) -> Self {
        let (registry, families) = (Registry::new(), Families::new());
        families.register(&registry);
        let instance_id = shard.id().to_string();
        families.instance_count.set(f64::from(shard.count()));
        families.controller_info.with_label_values(&[env!("CARGO_PKG_VERSION"), &instance_id]).set(1.0);
        let version = five_spot_core::schedule::tz_database_version().unwrap_or("unknown");
        families.tz_database_info.with_label_values(&[version]).set(1.0);
        families.is_leader.set(1.0);
        Self {
            registry,
            families,
            objects: Mutex::default(),
            connection: Mutex::default(),
            caches: Mutex::default(),
            leadership: Mutex::default(),
            instance: Mutex::default(),
            shard_objects: Mutex::default(),
            next_due: Mutex::default(),
            memory: ResidentMemory::new(),
        }
    }

    /// Reads from this guard whether this instance leads.
    pub fn follow_election(&self, guard: Arc<LeaseGuard>) {
        *lock(&self.leadership) = Some(guard);
    }

    /// Reads from this guard whether this instance works.
    pub(crate) fn follow_instance(&self, guard: Arc<InstanceGuard>) {
        *lock(&self.instance) = Some(guard);
    }

    /// Counts objects like this from now on.
    pub(crate) fn count_objects(&self, count: CountObjects) {
        *lock(&self.shard_objects) = Some(count);
    }

    /// This instance stands by: what it knew of every object is the business of the leader.
    pub(crate) fn forget_objects(&self) {
        lock(&self.objects).forget_all(&self.families);
        self.removals_held(0);
    }

    /// A controller runs with this connection from now on.
    pub(crate) fn attach(&self, connection: &Connection) {
        *lock(&self.connection) = Some(connection.clone());
    }

    /// Counts the reclaim agents in these caches from now on.
    pub(crate) fn attach_caches(&self, caches: &Arc<Caches>) {
        *lock(&self.caches) = Arc::downgrade(caches);
    }

    /// Also exports the metrics of the threads of a runtime.
    pub fn export_runtime(&self, runtime: &tokio::runtime::Handle) {
        // It fails only if it is registered already.
        let _ = self.registry.register(Box::new(runtime::Runtime::new(runtime.clone())));
    }

    /// Also exports the file descriptors of this process.
    pub fn export_descriptors(&self) {
        // It fails only if it is registered already.
        let _ = self.registry.register(Box::new(Descriptors::new()));
    }

    /// Also exports the memory of this process.
    pub fn export_memory(&self) {
        // It fails only if it is registered already.
        let _ = self.registry.register(Box::new(self.memory.clone()));
    }

    /// The controller has become ready.
    pub(crate) fn note_ready(&self) {
        self.memory.note_ready();
    }

    /// Notes the state of the queue.
    pub(crate) fn queued(&self, depth: usize, next_due: Option<Instant>) {
        #[allow(clippy::cast_precision_loss)]
        self.families.queue_depth.set(depth as f64);
        *lock(&self.next_due) = next_due;
    }

    /// The brake holds this many removals.
    pub(crate) fn removals_held(&self, removals: usize) {
        #[allow(clippy::cast_precision_loss)]
        self.families.removals_held.set(removals as f64);
    }

    /// A schedule was evaluated, or could not be.
    pub(crate) fn evaluated(&self, succeeded: bool) {
        let result = if succeeded { "success" } else { "failure" };
        self.families.schedule_evaluations.with_label_values(&[result]).inc();
    }

    /// A decision is on record, and with it everything that it announces.
    pub(crate) fn reported(&self, key: &ObjectKey, observed: &Observed, decision: &Decision) {
        let now = lock(&self.connection).as_ref().map(Connection::now);
        let mut objects = lock(&self.objects);
        let known = objects.report(&self.families, key, observed, decision, now);
        drains::count(&self.families, known, observed, decision, now);
        reclaims::measure(&self.families, &observed.world.status.reclaims, &decision.status.reclaims);
    }

    /// A reconcile has ended.
    pub(crate) fn reconciled(&self, key: &ObjectKey, phase: Option<Phase>, verdict: Verdict, took: Duration) {
        let phase = phase.or_else(|| lock(&self.objects).phase(key)).map_or(UNKNOWN_PHASE, Phase::as_str);
        self.families.reconciliations.with_label_values(&[phase, verdict.label()]).inc();
        self.families.reconciliation_duration.with_label_values(&[phase]).observe(took.as_secs_f64());
        if let Some(error) = verdict.error() {
            self.families.errors.with_label_values(&[error.as_str()]).inc();
        }
    }

    /// Counts an action whose precondition was gone.
    pub(crate) fn skipped(&self, reason: SkipReason) {
        self.families.actions_skipped.with_label_values(&[reason.as_str()]).inc();
    }

    /// Notes a failed call of the reconcile of an object.
    pub(crate) fn call_failed(&self, key: &ObjectKey) {
        if let Some(known) = lock(&self.objects).get(key) {
            drains::call_failed(&self.families, known);
        }
    }

    /// The same fault was found again. What its event has to say of that, unless it was said a moment ago.
    pub(crate) fn repeated(&self, key: &ObjectKey) -> Option<Repeat> {
        let now = lock(&self.connection).as_ref().map(Connection::now)?;
        lock(&self.objects).get(key)?.repeat(now)
    }

    /// An object is gone, and its series go with it.
    pub(crate) fn gone(&self, key: &ObjectKey) {
        lock(&self.objects).forget(&self.families, key);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Shard::ONLY)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A number that a panic has left behind wrong is corrected by the next report.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
