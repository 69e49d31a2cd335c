//! The controller: which object is reconciled first, when, and how many at once. What should happen is decided in `core`,
//! and carried out by `cluster`.

pub mod args;
mod attempts;
pub mod audit;
pub mod brake;
pub mod descriptors;
pub mod health;
pub mod leader;
pub mod logging;
mod memory;
pub mod metrics;
pub mod program;
pub mod queue;
mod reconcile;
mod reconcile_report;
mod recovery;
mod run;
pub mod servers;
pub mod shards;
pub mod urgency;
mod worker_slots;

pub use run::run;

use brake::BrakeSettings;
use five_spot_core::world::Policy;
use health::Health;
use leader::ElectionSettings;
use metrics::Metrics;
use shards::ShardSettings;
use std::sync::Arc;

/// With heap profiles that `MALLOC_CONF` turns on: `docs/profiling.md`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The settings of a controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The options that decisions depend on.
    pub policy: Policy,
    /// The namespaces to watch; empty: all.
    pub namespaces: Vec<String>,
    /// The namespaces whose Nodes may be in the management cluster itself.
    pub management_nodes: Vec<String>,
    /// The number of objects that are reconciled at the same time.
    pub concurrency: usize,
    /// The name of this instance in the events that it publishes.
    pub instance: String,
    /// The namespace of the controller: of the Leases that claim physical machines, and of annotations for the controller itself.
    pub controller_namespace: String,
    /// The metrics. Requests are counted only if it is also the observer of the connection.
    pub metrics: Arc<Metrics>,
    /// The health of the controller.
    pub health: Arc<Health>,
    /// The settings of the election among several instances; absent: this instance always works.
    pub election: Option<ElectionSettings>,
    /// The settings of this instance among several; absent: it works on all objects, and does not announce it.
    pub shards: Option<ShardSettings>,
    /// The settings of the brake.
    pub brake: BrakeSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            namespaces: Vec::new(),
            management_nodes: Vec::new(),
            concurrency: 16,
            instance: "5spot-controller".to_owned(),
            controller_namespace: five_spot_api::names::SYSTEM_NAMESPACE.to_owned(),
            metrics: Arc::default(),
            health: Arc::default(),
            election: None,
            shards: None,
            brake: BrakeSettings::default(),
        }
    }
}

/// The error that ended the controller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no way to the management cluster.
    #[error("failed to create a client for the management cluster: {0}")]
    Client(#[from] kube::Error),
}
