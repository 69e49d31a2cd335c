//! The share of one namespace in the connections, the look-ups of host names, the memory and the log lines of all workload
//! clusters together.
//!
//! A tenant can name any number of Secrets, each of which leads to another server. Limits for each cluster are therefore
//! not enough to keep one tenant from taking everything.

use super::budget::Budget;
use super::limits::{
    Limits, NAMESPACE_BUFFERED_BYTES, NAMESPACE_BYTES_PER_MINUTE, NAMESPACE_CONNECTIONS, NAMESPACE_KEPT_BYTES,
};
use super::lookup::Lookups;
use super::rate::Rate;
use crate::transport::repeat::Repeats;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;

/// The share of one namespace.
#[derive(Debug)]
pub struct NamespaceShare {
    pub(super) connections: Arc<Semaphore>,
    pub(super) lookups: Lookups,
    /// Bytes that are received on all connections.
    pub(super) received: Rate,
    pub(super) budget: Budget,
    /// For what is kept of the objects of its clusters.
    kept: Budget,
    pub(super) warnings: Arc<Repeats>,
}

impl NamespaceShare {
    /// The budget for what is kept of the objects of one of its clusters.
    pub(crate) fn kept_budget(&self) -> Budget {
        Budget::new(Limits::WORKLOAD.kept_bytes).within(&self.kept)
    }

    /// The warnings that were logged of its clusters lately.
    pub(crate) fn warnings(&self) -> Arc<Repeats> {
        self.warnings.clone()
    }
}

/// The shares of all namespaces. Clones are the same shares.
#[derive(Clone, Debug)]
pub struct NamespaceShares {
    /// Those of namespaces with a client.
    in_use: Arc<Mutex<BTreeMap<String, Weak<NamespaceShare>>>>,
    connections: usize,
    /// Those of all namespaces together.
    lookups: Lookups,
}

impl NamespaceShares {
    /// Shares of so many connections to all workload clusters together: no namespace has more than half of them.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            in_use: Arc::default(),
            connections: (connections / 2).clamp(1, NAMESPACE_CONNECTIONS),
            lookups: Lookups::for_all(),
        }
    }

    /// The share of a namespace, which all its clients have in common.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Arc<NamespaceShare> {
        // Every change is one insertion or removal.
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = in_use.get(namespace).and_then(Weak::upgrade) {
            return share;
        }
        in_use.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(NamespaceShare {
            connections: Arc::new(Semaphore::new(self.connections)),
            lookups: self.lookups.for_namespace(),
            received: Rate::new(NAMESPACE_BYTES_PER_MINUTE),
            budget: Budget::new(NAMESPACE_BUFFERED_BYTES),
            kept: Budget::new(NAMESPACE_KEPT_BYTES),
            warnings: Arc::default(),
        });
        in_use.insert(namespace.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::{AddressRules, ConnectRules};

    #[test]
    fn clients_of_a_namespace_have_one_share_while_there_are_any() {
        let shares = NamespaceShares::new(8);
        let (one, same, other) = (shares.of("a"), shares.clone().of("a"), shares.of("b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert_eq!(one.connections.available_permits(), 4);
        drop((one, same, other));
        let _other = shares.of("c");
        assert_eq!(shares.in_use.lock().unwrap().len(), 1, "shares without a client are forgotten");
    }

    #[test]
    fn the_connections_of_a_namespace_are_read_at_its_rate() {
        let rules = ConnectRules::workload(AddressRules::Any, Arc::new(Semaphore::new(1)));
        assert!(rules.received.is_none());
        assert!(rules.within(&NamespaceShares::new(8).of("a")).received.is_some());
    }

    #[test]
    fn a_share_has_an_upper_and_a_lower_bound() {
        for (connections, expected) in [(1, 1), (16, 8), (768, 384), (65_536, NAMESPACE_CONNECTIONS)] {
            assert_eq!(
                NamespaceShares::new(connections).of("a").connections.available_permits(),
                expected,
                "{connections}"
            );
        }
    }
}
