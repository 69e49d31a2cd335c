//! The log line about objects that belong to another instance: once for each object and change of ownership.

use super::view::{Ownership, View};
use five_spot_cluster::ObjectKey;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use tracing::debug;

/// The objects that the line was written about. Hashes only: most objects belong to another instance, and two of the same
/// hash cost no more than one line.
#[derive(Debug, Default)]
pub(crate) struct OwnershipLog {
    logged: HashSet<u64>,
    hasher: RandomState,
}

impl OwnershipLog {
    /// Writes the line, unless it was written since the ownership of the object changed.
    pub(crate) fn not_owned(&mut self, view: &View, key: &ObjectKey, ownership: Ownership) {
        if !self.logged.insert(self.hasher.hash_one(key)) {
            return;
        }
        let state = match ownership {
            Ownership::Owned => return,
            Ownership::Foreign => "foreign",
            Ownership::Waiting => "waiting",
        };
        debug!(
            resource = &*key.name,
            namespace = &*key.namespace,
            instance_id = view.shard().id(),
            instance_count = view.shard().count(),
            state,
            "Resource not owned by this instance"
        );
    }

    /// Forgets an object that is gone, or whose ownership has changed.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.logged.remove(&self.hasher.hash_one(key));
    }
}
