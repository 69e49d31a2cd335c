//! The state behind its lock, and the signals for waiting watches.

use crate::kinds::StoreId;
use crate::state::State;
use crate::watch_signals::{WatchSignal, WatchSignals};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that all handles of an API server share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    signals: WatchSignals,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), signals: WatchSignals::default() }
    }

    /// Locks the state for reading. A panic elsewhere does not make it unusable: every change is a single
    /// step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the watches of the changed resources.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, changed) = {
            let mut state = self.lock();
            let result = change(&mut state);
            (result, state.store.take_changed())
        };
        if !changed.is_empty() {
            self.signals.notify(&changed);
        }
        result
    }

    /// A signal that is set when objects of this resource change.
    pub(crate) fn signal(&self, store: &StoreId) -> WatchSignal {
        self.signals.subscribe(store)
    }
}
