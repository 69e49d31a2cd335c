//! The behaviour of the provider by namespace, so that concurrent tests do not interfere.

use std::collections::BTreeMap;
use std::sync::Mutex;

use five_spot_standins::ProviderBehaviour;
use tokio::sync::broadcast;

/// The behaviour of every namespace, and the notifications of its changes.
#[derive(Debug)]
pub(super) struct Book {
    namespaces: Mutex<BTreeMap<String, ProviderBehaviour>>,
    changes: broadcast::Sender<String>,
}

impl Book {
    pub(super) fn new() -> Self {
        Self { namespaces: Mutex::default(), changes: broadcast::Sender::new(256) }
    }

    pub(super) fn behaviour(&self, namespace: &str) -> ProviderBehaviour {
        self.namespaces().get(namespace).cloned().unwrap_or_default()
    }

    pub(super) fn change(&self, namespace: &str, change: impl FnOnce(&mut ProviderBehaviour)) {
        change(self.namespaces().entry(namespace.into()).or_default());
        // Without a receiver the actor has ended, and the behaviour no longer matters.
        let _ = self.changes.send(namespace.into());
    }

    pub(super) fn changes(&self) -> broadcast::Receiver<String> {
        self.changes.subscribe()
    }

    fn namespaces(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, ProviderBehaviour>> {
        // A panic while the lock is held leaves at worst one namespace partly changed, in a test that has
        // failed anyway.
        self.namespaces.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
