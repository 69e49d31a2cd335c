//! The mutable state of the server, behind one lock: objects, kinds, identifiers.

use crate::clock::Clock;
use crate::ids::Ids;
use crate::kinds::{Registry, Resource};
use crate::store::Store;
use serde_json::Value;
use std::sync::Arc;

/// The state of the server.
#[derive(Debug)]
pub(crate) struct State {
    pub store: Store,
    pub kinds: Registry,
    pub ids: Ids,
    pub clock: Clock,
}

impl State {
    pub(crate) fn new(clock: Clock, seed: u64, history_limit: usize) -> Self {
        Self { store: Store::new(history_limit), kinds: Registry::builtin(), ids: Ids::new(seed), clock }
    }

    /// The stored object with this name, in the storage version.
    pub(crate) fn find(&self, resource: &Resource, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.store.get(&resource.store, namespace, name)
    }
}
