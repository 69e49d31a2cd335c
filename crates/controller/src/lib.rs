//! The controller: what goes first, when, and how many at once. What should happen is decided in `core`, and done by
//! `cluster`.

pub mod args;
mod attempts;
pub mod audit;
pub mod descriptors;
pub mod health;
pub mod leader;
pub mod logging;
pub mod metrics;
pub mod program;
pub mod queue;
mod reconcile;
mod reconcile_report;
mod recovery;
mod run;
pub mod servers;
pub mod urgency;
mod worker_slots;

pub use run::run;

use five_spot_core::world::Policy;
use health::Health;
use leader::ElectionSettings;
use metrics::Metrics;
use std::sync::Arc;

/// With heap profiles that `MALLOC_CONF` turns on: `docs/profiling.md`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How the controller is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How it was told to behave.
    pub policy: Policy,
    /// The namespaces to look after; empty: all.
    pub namespaces: Vec<String>,
    /// The namespaces whose Nodes may be in the management cluster itself.
    pub management_nodes: Vec<String>,
    /// How many objects are reconciled at the same time.
    pub concurrency: usize,
    /// The name of this instance in the events that it publishes.
    pub instance: String,
    /// What is counted and measured; requests only if it is also the witness of the connection.
    pub metrics: Arc<Metrics>,
    /// Who is told how the controller is.
    pub health: Arc<Health>,
    /// How a leader is elected among several instances; absent: this instance always works.
    pub election: Option<ElectionSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            namespaces: Vec::new(),
            management_nodes: Vec::new(),
            concurrency: 16,
            instance: "5spot-controller".to_owned(),
            metrics: Arc::default(),
            health: Arc::default(),
            election: None,
        }
    }
}

/// Why the controller has ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no way to the management cluster.
    #[error("failed to make a client of the management cluster: {0}")]
    Client(#[from] kube::Error),
}
