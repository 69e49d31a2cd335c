//! The share of one namespace in the connections, the look-ups of host names, the memory and the log lines of all workload
//! clusters together.
//!
//! A tenant can name any number of Secrets, each of which leads to another server. Limits for each cluster are therefore
//! not enough to keep one tenant from taking everything. It can also change a Secret in a loop, and each change opens the
//! link again. So the share lasts longer than the links, and the rates of each cluster are kept in it.

use super::budget::Budget;
use super::limits::{
    Limits, NAMESPACE_BUFFERED_BYTES, NAMESPACE_BYTES_PER_MINUTE, NAMESPACE_CLUSTERS, NAMESPACE_CONNECTIONS,
    NAMESPACE_KEPT_BYTES,
};
use super::lookup::DnsLookups;
use super::rate::Rate;
use crate::transport::repeat::Repeats;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The time for which a share without a client is kept at least. All rates recover within a minute.
const KEPT_IDLE: Duration = Duration::from_mins(1);

/// The clusters of one namespace whose rates are kept: ten times as many as may be connected to at the same time. All others
/// share the same rates.
const CLUSTERS_WITH_RATES: usize = 10 * NAMESPACE_CLUSTERS;

/// The share of one namespace.
#[derive(Debug)]
pub struct NamespaceShare {
    pub(super) connections: Arc<Semaphore>,
    pub(super) lookups: DnsLookups,
    /// Bytes that are received on all connections.
    pub(super) received: Rate,
    pub(super) budget: Budget,
    /// For what is kept of the objects of its clusters.
    kept: Budget,
    pub(super) warnings: Arc<Repeats>,
    /// Refused evictions that were logged lately.
    refused_evictions: Arc<Repeats>,
    /// By the names of the clusters.
    rates: Mutex<BTreeMap<Arc<str>, ClusterRates>>,
    rates_of_others: ClusterRates,
}

/// The rates per minute of one cluster. Clones are the same rates.
#[derive(Clone, Debug)]
pub(super) struct ClusterRates {
    /// Bytes that are read from its watches.
    pub(super) watches: Rate,
    pub(super) requests: Rate,
    pub(super) failures: Rate,
}

impl ClusterRates {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            watches: Rate::new(limits.watch_bytes_per_minute),
            requests: Rate::new(limits.requests_per_minute as usize),
            failures: Rate::new(limits.failures_per_minute as usize),
        }
    }

    fn are_at_rest(&self) -> bool {
        [&self.watches, &self.requests, &self.failures].into_iter().all(Rate::is_at_rest)
    }
}

impl NamespaceShare {
    /// The rates of a cluster. A link that is opened again has those of the one before.
    pub(super) fn rates(&self, cluster: &Arc<str>) -> ClusterRates {
        // Every change is one insertion or removal.
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rates) = rates.get(cluster) {
            return rates.clone();
        }
        if rates.len() >= CLUSTERS_WITH_RATES {
            rates.retain(|_, rates| !rates.are_at_rest());
        }
        if rates.len() >= CLUSTERS_WITH_RATES {
            return self.rates_of_others.clone();
        }
        rates.entry(cluster.clone()).or_insert_with(|| ClusterRates::new(&Limits::WORKLOAD)).clone()
    }

    /// The refused evictions that were logged of its clusters lately.
    pub(crate) fn refused_evictions(&self) -> Arc<Repeats> {
        self.refused_evictions.clone()
    }

    /// The budget for what is kept of the objects of one of its clusters.
    pub(crate) fn kept_budget(&self) -> Budget {
        Budget::new(Limits::WORKLOAD.kept_bytes).within(&self.kept)
    }

    /// The warnings that were logged of its clusters lately.
    pub(crate) fn warnings(&self) -> Arc<Repeats> {
        self.warnings.clone()
    }
}

/// A share that is kept.
#[derive(Debug)]
struct Kept {
    share: Arc<NamespaceShare>,
    /// The time at which it was first seen without a client.
    idle_since: Option<Instant>,
}

/// The shares of all namespaces. Clones are the same shares.
#[derive(Clone, Debug)]
pub struct NamespaceShares {
    /// Those of namespaces that have or had a client.
    kept: Arc<Mutex<BTreeMap<String, Kept>>>,
    connections: usize,
    /// Those of all namespaces together.
    lookups: DnsLookups,
}

impl NamespaceShares {
    /// Shares of so many connections to all workload clusters together: no namespace has more than half of them.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            kept: Arc::default(),
            connections: (connections / 2).clamp(1, NAMESPACE_CONNECTIONS),
            lookups: DnsLookups::for_all(),
        }
    }

    /// The share of a namespace, which all its clients have in common.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Arc<NamespaceShare> {
        // Every change is one insertion, assignment or removal.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|name, kept| {
            if name == namespace || Arc::strong_count(&kept.share) > 1 {
                kept.idle_since = None;
                return true;
            }
            now.saturating_duration_since(*kept.idle_since.get_or_insert(now)) < KEPT_IDLE
        });
        if let Some(kept) = kept.get(namespace) {
            return kept.share.clone();
        }
        let share = Arc::new(NamespaceShare {
            connections: Arc::new(Semaphore::new(self.connections)),
            lookups: self.lookups.for_namespace(),
            received: Rate::new(NAMESPACE_BYTES_PER_MINUTE),
            budget: Budget::new(NAMESPACE_BUFFERED_BYTES),
            kept: Budget::new(NAMESPACE_KEPT_BYTES),
            warnings: Arc::default(),
            refused_evictions: Arc::default(),
            rates: Mutex::default(),
            rates_of_others: ClusterRates::new(&Limits::WORKLOAD),
        });
        kept.insert(namespace.to_owned(), Kept { share: share.clone(), idle_since: None });
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::{AddressRules, ConnectRules};
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn clients_of_a_namespace_have_one_share_for_a_minute_more() {
        let shares = NamespaceShares::new(8);
        let (one, same, other) = (shares.of("a"), shares.clone().of("a"), shares.of("b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert_eq!(one.connections.available_permits(), 4);
        one.warnings.note("refused");
        drop((one, same));
        assert_eq!(shares.of("a").warnings.note("refused"), None, "it is still the same");
        drop(shares.of("c"));
        advance(KEPT_IDLE).await;
        assert_eq!(shares.of("a").warnings.note("refused"), Some(1), "idle for a minute, but nobody looked");
        let names = |shares: &NamespaceShares| {
            shares.kept.lock().unwrap().keys().cloned().collect::<Vec<String>>().join(" ")
        };
        drop(shares.of("c"));
        advance(KEPT_IDLE).await;
        drop(other);
        drop(shares.of("d"));
        advance(KEPT_IDLE).await;
        drop(shares.of("d"));
        assert_eq!(names(&shares), "d", "those without a client are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_is_opened_again_has_the_rates_of_the_last() {
        let share = NamespaceShares::new(8).of("a");
        let (one, other): (Arc<str>, Arc<str>) = ("a/one".into(), "a/other".into());
        let failures = |cluster| (0..1000).filter(|_| share.rates(cluster).failures.take_one()).count();
        assert_eq!((failures(&one), failures(&one), failures(&other)), (120, 0, 120));
        advance(Duration::from_secs(10)).await;
        assert_eq!(failures(&one), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn clusters_without_end_share_the_same_rates() {
        let share = NamespaceShares::new(8).of("a");
        let fails = |number: usize| share.rates(&number.to_string().into()).failures.take_one();
        assert_eq!((0..10_000).filter(|number| fails(*number)).count(), CLUSTERS_WITH_RATES + 120);
        advance(Duration::from_mins(1)).await;
        assert!(fails(10_000));
        assert_eq!(share.rates.lock().unwrap().len(), 1, "those at rest are forgotten");
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
