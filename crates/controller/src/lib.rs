//! The controller: what goes first, when, and how many at once. What should happen is decided in `core`, and done by
//! `cluster`.

pub mod args;
pub mod logging;
pub mod program;
pub mod queue;
mod reconcile;
mod run;

pub use run::run;

use five_spot_core::world::Policy;

/// How the controller is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How it was told to behave.
    pub policy: Policy,
    /// The namespaces to look after; empty: all.
    pub namespaces: Vec<String>,
    /// How many objects are reconciled at the same time.
    pub concurrency: usize,
    /// The name of this instance in the events that it publishes.
    pub instance: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            namespaces: Vec::new(),
            concurrency: 16,
            instance: "5spot-controller".to_owned(),
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
