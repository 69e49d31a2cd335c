//! The room for what is kept of the objects of a cluster that is not trusted.
//!
//! The number of its objects is limited, and so is each of them, but the product of the two is more than there is memory.

use crate::transport::http::{Budget, Share, TransportError};
use crate::transport::key::ObjectKey;
use std::sync::Arc;

/// Bytes that every object takes besides its facts: its key, its version, and its places in maps.
const OVERHEAD: usize = 256;

/// The bytes of memory that the facts about an object take, apart from their own size.
pub(crate) trait Footprint {
    /// The bytes of all texts and lists.
    fn heap_bytes(&self) -> usize;
}

/// The room for objects of one kind, which share it with other kinds.
#[derive(Clone, Debug)]
pub(crate) struct Room<V> {
    budget: Budget,
    heap_bytes: fn(&V) -> usize,
}

/// The part of a room that one object takes. Clones are the same part.
#[derive(Clone, Debug)]
pub(super) struct Place {
    bytes: usize,
    _share: Arc<Share>,
}

impl<V: Footprint> Room<V> {
    /// Room within a budget.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), heap_bytes: V::heap_bytes }
    }
}

impl<V> Room<V> {
    /// A place for an object: the one that it has, if that is large enough. The error is a message for people.
    pub(super) fn place(&self, view: &V, before: Option<&Place>) -> Result<Place, String> {
        let bytes = OVERHEAD + size_of::<V>() + (self.heap_bytes)(view);
        if let Some(before) = before.filter(|before| before.bytes >= bytes) {
            return Ok(before.clone());
        }
        let mut share = self.budget.share();
        match share.grow(bytes) {
            Ok(()) => Ok(Place { bytes, _share: Arc::new(share) }),
            Err(TransportError::NamespaceOverBudget { limit }) => Err(format!(
                "the objects of all workload clusters of the namespace take more than {limit} bytes of memory"
            )),
            Err(_) => Err("the objects of the cluster take more memory than one cluster may take".to_owned()),
        }
    }

    /// A place for the name of an object that is gone, if there is room for it.
    pub(super) fn place_of_name(&self, key: &ObjectKey) -> Option<Place> {
        let bytes = OVERHEAD + key.namespace.len() + key.name.len();
        let mut share = self.budget.share();
        share.grow(bytes).ok()?;
        Some(Place { bytes, _share: Arc::new(share) })
    }
}
