//! The errors of the stand-ins. They retry and report nothing to the API, as real controllers do; this list
//! makes the errors visible to tests and users.

use super::kinds::ObjectKey;
use five_spot_apiserver::clock::Clock;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of errors kept: enough to see how a problem started, and bounded for runs of months.
const KEPT: usize = 256;

/// A failed attempt of an actor, which is retried.
#[derive(Clone, Debug)]
pub struct StandInError {
    /// The time of the failure.
    pub time: Timestamp,
    /// The actor.
    pub actor: &'static str,
    /// The object or watch: `Machine default/m`, or `watch of Machine`.
    pub subject: String,
    /// The cause.
    pub cause: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for StandInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: {}", self.time, self.actor, self.subject, self.cause)
    }
}

/// The latest errors of the stand-ins. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    latest: VecDeque<StandInError>,
    count: u64,
}

impl ErrorLog {
    /// The latest errors, oldest first.
    pub fn latest(&self) -> Vec<StandInError> {
        self.lock().latest.iter().cloned().collect()
    }

    /// The number of all errors, including those no longer kept.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    fn push(&self, error: StandInError) {
        let mut kept = self.lock();
        kept.count += 1;
        kept.latest.push_back(error);
        if kept.latest.len() > KEPT {
            kept.latest.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error log of one actor.
#[derive(Clone, Debug)]
pub(super) struct ErrorRecorder {
    pub(super) actor: &'static str,
    pub(super) clock: Clock,
    pub(super) errors: ErrorLog,
}

impl ErrorRecorder {
    /// Records that an object could not be reconciled.
    pub(super) fn object(&self, key: &ObjectKey, cause: impl Error + Send + Sync + 'static) {
        let name = if key.namespace.is_empty() {
            key.name.clone()
        } else {
            format!("{}/{}", key.namespace, key.name)
        };
        self.note(format!("{} {name}", key.kind.kind()), cause);
    }

    /// Records that a watch failed.
    pub(super) fn watch(&self, kind: &str, cause: impl Error + Send + Sync + 'static) {
        self.note(format!("watch of {kind}"), cause);
    }

    fn note(&self, subject: String, cause: impl Error + Send + Sync + 'static) {
        let cause = Arc::new(cause);
        self.errors.push(StandInError { time: self.clock.now(), actor: self.actor, subject, cause });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_all_are_counted() {
        let errors = ErrorLog::default();
        let clock = Clock::system();
        let recorder = ErrorRecorder { actor: "kubelet", clock, errors: errors.clone() };
        assert!(errors.latest().is_empty());
        for number in 0..300 {
            recorder.watch("Pod", std::io::Error::other(format!("failure {number}")));
        }
        let latest = errors.latest();
        assert_eq!((latest.len(), errors.count()), (KEPT, 300));
        let last = latest.last().expect("the last one").to_string();
        assert!(last.ends_with("kubelet: watch of Pod: failure 299"), "{last}");
    }
}
