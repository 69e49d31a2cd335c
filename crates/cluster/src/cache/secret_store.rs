//! The kubeconfig Secrets of one namespace that objects name.

use crate::cache::lock::lock;
use crate::cache::store::Store;
use crate::cache::watch::WatchSignal;
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::SecretFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio_util::sync::DropGuard;

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
