//! The state behind its lock, and the bells of those who wait for changes.

use crate::bells::{Bell, Bells};
use crate::kinds::StoreId;
use crate::state::State;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all handles of one API share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    bells: Bells,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), bells: Bells::default() }
    }

    /// The state, for reading. A panic elsewhere does not make it unusable: every change is a single step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the watches of what changed.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, changed) = {
            let mut state = self.lock();
            let result = change(&mut state);
            (result, state.store.take_changed())
        };
        if !changed.is_empty() {
            self.bells.ring(&changed);
        }
        result
    }

    /// A bell that rings when objects of this resource change.
    pub(crate) fn bell(&self, store: &StoreId) -> Bell {
        self.bells.hang(store)
    }
}
