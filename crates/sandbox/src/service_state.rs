//! The state behind its lock, and the signal that something changed.

use crate::state::State;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What all handles of one API share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        let revision = watch::Sender::new(state.store.revision());
        Self { state: Mutex::new(state), revision }
    }

    /// The state, for reading. A panic elsewhere does not make it unusable: every change is a single step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the watches.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, revision) = {
            let mut state = self.lock();
            let result = change(&mut state);
            (result, state.store.revision())
        };
        self.revision.send_if_modified(|known| {
            let is_new = *known != revision;
            *known = revision;
            is_new
        });
        result
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}
