//! The signal that objects of a resource have changed. Each open watch has its own.
//!
//! Watches are notified in the order in which they were opened, and only those of resources that changed: two runs of a
//! program wake the same watches in the same order, and a write costs nothing to watches of other resources.

use crate::kinds::StoreId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The signals of all open watches of one API server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchSignals {
    registry: Arc<Mutex<Registry>>,
}

#[derive(Debug, Default)]
struct Registry {
    opened: u64,
    by_store: BTreeMap<StoreId, BTreeMap<u64, Flag>>,
}

/// The state of one signal: set since it was last cleared, and the task that waits for it.
#[derive(Debug, Default)]
struct Flag {
    is_set: bool,
    waiter: Option<Waker>,
}

/// The signal of one watch. Dropping it ends the subscription.
#[derive(Debug)]
pub(crate) struct WatchSignal {
    signals: WatchSignals,
    store: StoreId,
    number: u64,
}

impl WatchSignals {
    /// A signal that is set when an object of `store` changes from now on.
    pub(crate) fn subscribe(&self, store: &StoreId) -> WatchSignal {
        let mut registry = self.lock();
        registry.opened += 1;
        let number = registry.opened;
        registry.by_store.entry(store.clone()).or_default().insert(number, Flag::default());
        WatchSignal { signals: self.clone(), store: store.clone(), number }
    }

    /// Sets the signals of every watch of a resource that changed.
    pub(crate) fn notify(&self, changed: &BTreeSet<StoreId>) {
        let mut woken = BTreeMap::new();
        {
            let mut registry = self.lock();
            for store in changed {
                for (number, flag) in registry.by_store.get_mut(store).into_iter().flatten() {
                    flag.is_set = true;
                    woken.extend(flag.waiter.take().map(|waiter| (*number, waiter)));
                }
            }
        }
        // A woken task may wait again at once, so the lock must be released before.
        for waiter in woken.into_values() {
            waiter.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchSignal {
    /// Waits until the signal has been set since it was last cleared.
    pub(crate) async fn notified(&self) {
        std::future::poll_fn(|context| self.poll_notified(context)).await;
    }

    /// Clears the signal: a change up to now has been seen.
    pub(crate) fn clear(&self) {
        if let Some(flag) = self.flag(&mut self.signals.lock()) {
            flag.is_set = false;
        }
    }

    fn poll_notified(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut registry = self.signals.lock();
        let Some(flag) = self.flag(&mut registry) else {
            return Poll::Ready(());
        };
        if flag.is_set {
            return Poll::Ready(());
        }
        match &mut flag.waiter {
            Some(waiter) => waiter.clone_from(context.waker()),
            None => flag.waiter = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn flag<'a>(&self, registry: &'a mut Registry) -> Option<&'a mut Flag> {
        registry.by_store.get_mut(&self.store)?.get_mut(&self.number)
    }
}

impl Drop for WatchSignal {
    fn drop(&mut self) {
        let mut registry = self.signals.lock();
        if let Some(flags) = registry.by_store.get_mut(&self.store) {
            flags.remove(&self.number);
            if flags.is_empty() {
                registry.by_store.remove(&self.store);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(plural: &str) -> StoreId {
        StoreId::new("", plural)
    }

    /// Waits in a separate task and records its name whenever its signal is set.
    fn listen(signals: &WatchSignals, of: &str, name: &'static str, notes: &Arc<Mutex<Vec<&'static str>>>) {
        let (signal, notes) = (signals.subscribe(&store(of)), notes.clone());
        tokio::spawn(async move {
            loop {
                signal.notified().await;
                signal.clear();
                notes.lock().expect("the list").push(name);
            }
        });
    }

    #[tokio::test]
    async fn watches_are_notified_in_the_order_they_were_opened() {
        let (signals, notes) = (WatchSignals::default(), Arc::default());
        let names = ["first", "second", "third", "fourth"];
        for (name, of) in names.into_iter().zip(["pods", "nodes", "pods", "nodes"]) {
            listen(&signals, of, name, &notes);
        }
        tokio::task::yield_now().await;
        for (changed, expected) in [
            (vec!["pods"], vec!["first", "third"]),
            (vec!["nodes", "pods"], names.to_vec()),
            (vec!["leases"], vec![]),
        ] {
            signals.notify(&changed.into_iter().map(store).collect());
            tokio::task::yield_now().await;
            assert_eq!(std::mem::take(&mut *notes.lock().expect("the list")), expected);
        }
    }

    #[tokio::test]
    async fn a_signal_without_a_waiter_is_kept() {
        let signals = WatchSignals::default();
        let signal = signals.subscribe(&store("pods"));
        signals.notify(&BTreeSet::from([store("pods")]));
        signal.notified().await;
        signal.clear();
        assert!(futures::poll!(std::pin::pin!(signal.notified())).is_pending());
        drop(signal);
        assert!(signals.lock().by_store.is_empty(), "nothing is left of a watch that has ended");
    }
}
