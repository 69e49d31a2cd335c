//! The progress of workers.

use super::Health;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

tokio::task_local! {
    static WORK: Work;
}

/// A reconcile in flight, and the time of its last progress. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) key: Arc<str>,
    last: Arc<Mutex<Instant>>,
}

impl Work {
    pub(super) fn new(key: String) -> Self {
        Self { key: key.into(), last: Arc::new(Mutex::new(Instant::now())) }
    }

    pub(super) fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn got_on(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Notes progress of the current reconcile: a request was answered, or was given up.
pub(crate) fn progress() {
    // Requests of watches belong to no work.
    let _ = WORK.try_with(Work::got_on);
}

/// Work that is watched for as long as this lives.
pub(crate) struct Working {
    health: Arc<Health>,
    id: u64,
    work: Work,
}

impl Working {
    pub(super) const fn new(health: Arc<Health>, id: u64, work: Work) -> Self {
        Self { health, id, work }
    }

    /// Does it.
    pub(crate) async fn through<F: Future>(self, work: F) -> F::Output {
        WORK.scope(self.work.clone(), work).await
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.health.end(self.id);
    }
}
