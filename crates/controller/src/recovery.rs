//! Noticing that trouble is over.
//!
//! After many failures the next attempt is minutes away. When it was the cluster that failed, and it answers again, there
//! is no reason to wait for that: objects that wait for a cluster are looked at as soon as it has answered a few times
//! in a row. Nothing is asked while nothing waits.

use five_spot_cluster::{Fleet, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long between two questions.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many answers in a row it takes to believe that the trouble is over: a server that fails every other request
/// should not be met with more of them.
const ANSWERS: u32 = 3;

/// Objects that wait for a cluster, and how often it has answered since.
#[derive(Default)]
pub(crate) struct Recovery {
    waiting: BTreeMap<ObjectKey, u32>,
    due: Option<Instant>,
    asking: JoinSet<BTreeSet<ObjectKey>>,
}

impl Recovery {
    /// A reconcile has ended, and its object waits for a cluster, or not.
    pub(crate) fn note(&mut self, key: &ObjectKey, waits: bool, now: Instant) {
        if !waits {
            self.waiting.remove(key);
        } else if self.waiting.insert(key.clone(), 0).is_none() && self.due.is_none() {
            self.due = Some(now + INTERVAL);
        }
    }

    /// When the next question is due, if nobody is asked already.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.asking.is_empty() && !self.waiting.is_empty())
    }

    /// Asks, if it is time.
    pub(crate) fn ask(&mut self, fleet: &Fleet, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            let (fleet, keys) = (fleet.clone(), self.waiting.keys().cloned().collect());
            self.asking.spawn(async move { fleet.reachable(&keys).await });
        }
    }

    /// Waits for the answer, and returns those for which the trouble seems to be over. Never returns while nobody is
    /// asked.
    pub(crate) async fn recovered(&mut self) -> Vec<ObjectKey> {
        let Some(answer) = self.asking.join_next().await else { return std::future::pending().await };
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
    fn three_answers_in_a_row_end_the_wait() {
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
        assert_eq!(recovery.due(), None, "nobody waits any more");
    }

    #[test]
    fn another_failure_begins_anew_and_success_ends_it() {
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
