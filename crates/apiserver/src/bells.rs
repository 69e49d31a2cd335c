//! The signal that objects of a resource changed. Each open watch has a bell of its own.
//!
//! Bells are rung in the order in which their watches were opened, and only those of what changed: two runs of one
//! program wake the same watches in the same order, and a write costs nothing to those who look at something else.

use crate::kinds::StoreId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// All bells of one API. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells {
    hung: Arc<Mutex<Hung>>,
}

#[derive(Debug, Default)]
struct Hung {
    opened: u64,
    by_store: BTreeMap<StoreId, BTreeMap<u64, Tongue>>,
}

/// Whether a bell has rung since somebody last listened, and who listens.
#[derive(Debug, Default)]
struct Tongue {
    has_rung: bool,
    listener: Option<Waker>,
}

/// The bell of one watch. It comes down when it is dropped.
#[derive(Debug)]
pub(crate) struct Bell {
    bells: Bells,
    store: StoreId,
    number: u64,
}

impl Bells {
    /// A bell that rings when something of `store` changes from now on.
    pub(crate) fn hang(&self, store: &StoreId) -> Bell {
        let mut hung = self.lock();
        hung.opened += 1;
        let number = hung.opened;
        hung.by_store.entry(store.clone()).or_default().insert(number, Tongue::default());
        Bell { bells: self.clone(), store: store.clone(), number }
    }

    /// Rings every bell of what changed.
    pub(crate) fn ring(&self, changed: &BTreeSet<StoreId>) {
        let mut woken = BTreeMap::new();
        {
            let mut hung = self.lock();
            for store in changed {
                for (number, tongue) in hung.by_store.get_mut(store).into_iter().flatten() {
                    tongue.has_rung = true;
                    woken.extend(tongue.listener.take().map(|listener| (*number, listener)));
                }
            }
        }
        // Whoever is woken may listen again at once, so the lock must not be held any more.
        for listener in woken.into_values() {
            listener.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hung> {
        self.hung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Waits until the bell has rung since it was last silenced.
    pub(crate) async fn rung(&self) {
        std::future::poll_fn(|context| self.poll_rung(context)).await;
    }

    /// Forgets that it has rung: what is looked at from now on is not news.
    pub(crate) fn silence(&self) {
        if let Some(tongue) = self.tongue(&mut self.bells.lock()) {
            tongue.has_rung = false;
        }
    }

    fn poll_rung(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut hung = self.bells.lock();
        let Some(tongue) = self.tongue(&mut hung) else {
            return Poll::Ready(());
        };
        if tongue.has_rung {
            return Poll::Ready(());
        }
        match &mut tongue.listener {
            Some(listener) => listener.clone_from(context.waker()),
            None => tongue.listener = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn tongue<'a>(&self, hung: &'a mut Hung) -> Option<&'a mut Tongue> {
        hung.by_store.get_mut(&self.store)?.get_mut(&self.number)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut hung = self.bells.lock();
        if let Some(tongues) = hung.by_store.get_mut(&self.store) {
            tongues.remove(&self.number);
            if tongues.is_empty() {
                hung.by_store.remove(&self.store);
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

    /// Listens in a task of its own and writes its name down whenever its bell rings.
    fn listen(bells: &Bells, of: &str, name: &'static str, heard: &Arc<Mutex<Vec<&'static str>>>) {
        let (bell, heard) = (bells.hang(&store(of)), heard.clone());
        tokio::spawn(async move {
            loop {
                bell.rung().await;
                bell.silence();
                heard.lock().expect("the list").push(name);
            }
        });
    }

    #[tokio::test]
    async fn bells_ring_in_the_order_in_which_they_were_hung() {
        let (bells, heard) = (Bells::default(), Arc::default());
        let names = ["first", "second", "third", "fourth"];
        for (name, of) in names.into_iter().zip(["pods", "nodes", "pods", "nodes"]) {
            listen(&bells, of, name, &heard);
        }
        tokio::task::yield_now().await;
        for (changed, expected) in [
            (vec!["pods"], vec!["first", "third"]),
            (vec!["nodes", "pods"], names.to_vec()),
            (vec!["leases"], vec![]),
        ] {
            bells.ring(&changed.into_iter().map(store).collect());
            tokio::task::yield_now().await;
            assert_eq!(std::mem::take(&mut *heard.lock().expect("the list")), expected);
        }
    }

    #[tokio::test]
    async fn what_rang_while_nobody_listened_is_heard_later() {
        let bells = Bells::default();
        let bell = bells.hang(&store("pods"));
        bells.ring(&BTreeSet::from([store("pods")]));
        bell.rung().await;
        bell.silence();
        assert!(futures::poll!(std::pin::pin!(bell.rung())).is_pending());
        drop(bell);
        assert!(bells.lock().by_store.is_empty(), "nothing is left of a watch that has ended");
    }
}
