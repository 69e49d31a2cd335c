//! Recovery of clusters.
//!
//! After many failures the next attempt is minutes away. If the cluster failed and answers again, there is no reason to wait
//! so long: objects that wait for a cluster are reconciled as soon as it has answered a few probes in a row. No probe is
//! sent while no object waits.

use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::{Caches, reachable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The time between two probes.
const INTERVAL: Duration = Duration::from_secs(10);

/// The answers in a row after which a cluster counts as recovered: a server that fails every other request should not get
/// more of them.
const ANSWERS: u32 = 3;

/// The objects that wait for a cluster, and how often it has answered since.
#[derive(Default)]
pub(crate) struct Recovery {
    waiting: BTreeMap<ObjectKey, u32>,
    due: Option<Instant>,
    probes: JoinSet<BTreeSet<ObjectKey>>,
}

impl Recovery {
    /// Notes whether an object waits for a cluster, at the end of a reconcile.
    pub(crate) fn note(&mut self, key: &ObjectKey, waits: bool, now: Instant) {
        if !waits {
            self.waiting.remove(key);
        } else if self.waiting.insert(key.clone(), 0).is_none() && self.due.is_none() {
            self.due = Some(now + INTERVAL);
        }
    }

    /// The time of the next probe, if none is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.probes.is_empty() && !self.waiting.is_empty())
    }

    /// Sends a probe to each cluster, if it is time.
    pub(crate) fn probe(&mut self, caches: &Arc<Caches>, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            let (caches, keys) = (caches.clone(), self.waiting.keys().cloned().collect());
            self.probes.spawn(async move { reachable(&caches, &keys).await });
        }
    }

    /// Waits for the answers, and returns the objects whose clusters have recovered. Never returns while no probe is under
    /// way.
    pub(crate) async fn recovered(&mut self) -> Vec<ObjectKey> {
        let Some(answer) = self.probes.join_next().await else { return std::future::pending().await };
        self.judge(&answer.unwrap_or_default(), Instant::now())
    }

    fn judge(&mut self, reachable: &BTreeSet<ObjectKey>, now: Instant) -> Vec<ObjectKey> {
        for (key, answers) in &mut self.waiting {
            *answers = if reachable.contains(key) { *answers + 1 } else { 0 };
        }
        let over: Vec<ObjectKey> = self
            .waiting
            .iter()
            .filter(|(_, answers)| **answers >= ANSWERS)
            .map(|(key, _)| key.clone())
            .collect();
        self.waiting.retain(|_, answers| *answers < ANSWERS);
        self.due = (!self.waiting.is_empty()).then(|| now + INTERVAL);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("a", name)
    }

    fn keys(names: &[&str]) -> BTreeSet<ObjectKey> {
        names.iter().map(|name| key(name)).collect()
    }

    #[test]
    fn three_answers_in_a_row_mean_recovery() {
        let now = Instant::now();
        let mut recovery = Recovery::default();
        assert_eq!(recovery.due(), None);
        recovery.note(&key("one"), true, now);
        recovery.note(&key("two"), true, now);
        assert_eq!(recovery.due(), Some(now + INTERVAL));
        assert_eq!(recovery.judge(&keys(&["one", "two"]), now), []);
        assert_eq!(recovery.judge(&keys(&["one"]), now), []);
        assert_eq!(recovery.judge(&keys(&["one", "two"]), now), [key("one")]);
        assert_eq!(recovery.judge(&keys(&["two"]), now), []);
        assert_eq!(recovery.judge(&keys(&["two"]), now), [key("two")]);
        assert_eq!(recovery.due(), None, "no object waits any more");
    }

    #[test]
    fn another_failure_restarts_the_count() {
        let now = Instant::now();
        let mut recovery = Recovery::default();
        recovery.note(&key("one"), true, now);
        recovery.judge(&keys(&["one"]), now);
        recovery.note(&key("one"), true, now);
        assert_eq!(recovery.judge(&keys(&["one"]), now), []);
        assert_eq!(recovery.judge(&keys(&["one"]), now), []);
        recovery.note(&key("one"), false, now);
        assert_eq!(recovery.due(), None);
    }
}
