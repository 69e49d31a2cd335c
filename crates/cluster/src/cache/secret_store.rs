//! The kubeconfig Secrets of one namespace that objects name.

use crate::cache::lock::lock;
use crate::cache::store::Store;
use crate::cache::watch::WatchSignal;
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::SecretFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

/// The time in which one more read of a Secret is permitted. A tenant can change it in a loop, and each read wakes all objects
/// that name it and opens their link again.
const INTERVAL: Duration = Duration::from_secs(1);

/// The burst, as the time in which it is permitted again: ten reads, more than a rotation needs.
const BURST: Duration = Duration::from_secs(10);

/// The Secrets of one namespace, and the watch of their versions. Clones share both.
#[derive(Clone)]
pub(super) struct NamespaceSecrets {
    pub(super) secrets: Arc<SecretVersions>,
    _ends_watch: Arc<DropGuard>,
}

impl NamespaceSecrets {
    pub(super) fn new(secrets: Arc<SecretVersions>, ends_watch: DropGuard) -> Self {
        Self { secrets, _ends_watch: Arc::new(ends_watch) }
    }

    /// Forgets the Secrets and the keys in them that no object names any more. True if some are left.
    pub(super) fn retain(
        &self,
        is_used: impl Fn(&ObjectKey) -> bool,
        is_key_used: impl Fn(&ObjectKey, &str) -> bool,
    ) -> bool {
        let mut used = lock(&self.secrets.used);
        used.retain(|name, used| {
            let secret = self.secrets.key(name);
            used.keys.retain(|key| is_key_used(&secret, key));
            is_used(&secret)
        });
        !used.is_empty()
    }
}

/// The versions of all Secrets of a namespace, and the content of those that objects name.
pub(super) struct SecretVersions {
    pub(super) namespace: Arc<str>,
    pub(super) versions: Store<String>,
    pub(super) used: Mutex<BTreeMap<Arc<str>, UsedSecret>>,
    /// Secrets that have to be read.
    pub(super) pending: Mutex<BTreeSet<Arc<str>>>,
    pub(super) wake: Notify,
}

/// A Secret that objects name.
pub(super) struct UsedSecret {
    pub(super) store: Store<SecretFacts>,
    /// The keys that objects name. Nothing else is kept of it.
    pub(super) keys: BTreeSet<String>,
    pace: ReadPace,
}

impl UsedSecret {
    /// A Secret that has not been read.
    pub(super) fn new(keys: BTreeSet<String>) -> Self {
        Self { store: Store::new([None]), keys, pace: ReadPace::default() }
    }
}

/// The reads of a Secret of late.
#[derive(Debug, Default)]
struct ReadPace {
    /// The time at which the whole burst is permitted again. Absent if it is now.
    recovered_at: Option<Instant>,
    /// True if a read has been put off.
    is_waiting: bool,
}

/// The permission to read a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadPermit {
    /// Now.
    Now,
    /// After this time.
    After(Duration),
    /// A read has been put off already: it sees this change as well.
    Waits,
}

impl ReadPace {
    fn permit(&mut self, now: Instant) -> ReadPermit {
        if self.is_waiting {
            return ReadPermit::Waits;
        }
        let recovered_at = self.recovered_at.map_or(now, |time| time.max(now));
        let wait = recovered_at.duration_since(now).saturating_sub(BURST);
        if wait.is_zero() {
            self.recovered_at = Some(recovered_at + INTERVAL);
            return ReadPermit::Now;
        }
        self.is_waiting = true;
        ReadPermit::After(wait)
    }
}

impl SecretVersions {
    pub(super) fn new(namespace: Arc<str>) -> Self {
        Self {
            namespace,
            versions: Store::new([None]),
            used: Mutex::default(),
            pending: Mutex::default(),
            wake: Notify::new(),
        }
    }

    pub(super) fn read_later(&self, names: impl IntoIterator<Item = Arc<str>>) {
        lock(&self.pending).extend(names);
        self.wake.notify_one();
    }

    /// The permission to read a Secret now.
    pub(super) fn permit_read(&self, name: &Arc<str>) -> ReadPermit {
        let mut used = lock(&self.used);
        used.get_mut(name).map_or(ReadPermit::Now, |used| used.pace.permit(Instant::now()))
    }

    /// Reads a Secret that was put off.
    pub(super) fn end_wait(&self, name: &Arc<str>) {
        if let Some(used) = lock(&self.used).get_mut(name) {
            used.pace.is_waiting = false;
        }
        self.read_later([name.clone()]);
    }

    pub(super) fn key(&self, name: &Arc<str>) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), name.clone())
    }

    /// Handles a signal of the watch: the Secrets in use that it concerns have to be read.
    pub(super) fn handle(&self, signal: &WatchSignal) {
        let used = lock(&self.used);
        let names: Vec<Arc<str>> = match signal {
            WatchSignal::Changed(key) => used.keys().filter(|name| **name == key.name).cloned().collect(),
            WatchSignal::SyncState | WatchSignal::NotServed => used.keys().cloned().collect(),
            WatchSignal::Failed => Vec::new(),
        };
        drop(used);
        if !names.is_empty() {
            self.read_later(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_secret_that_changes_without_end_is_read_once_a_second() {
        let mut pace = ReadPace::default();
        let (begin, mut reads) = (Instant::now(), 0);
        while begin.elapsed() < Duration::from_mins(1) {
            match pace.permit(Instant::now()) {
                ReadPermit::Now => reads += 1,
                ReadPermit::After(wait) => {
                    assert!(wait <= INTERVAL, "{wait:?}");
                    assert_eq!(pace.permit(Instant::now()), ReadPermit::Waits);
                    advance(wait).await;
                    pace.is_waiting = false;
                }
                ReadPermit::Waits => unreachable!("it was read"),
            }
        }
        assert!((69..=72).contains(&reads), "{reads} reads in a minute");
    }
}
