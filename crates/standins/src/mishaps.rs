//! What went wrong for the actors. They try again and say nothing to the API, as real controllers do; a test or a
//! person has to be able to see it all the same.

use super::kinds::Place;
use five_spot_apiserver::clock::Clock;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are kept: enough to see how trouble began and went on, little enough for a world that runs for months.
const KEPT: usize = 256;

/// Something that an actor tried in vain, and tries again.
#[derive(Clone, Debug)]
pub struct Mishap {
    /// When it failed.
    pub time: Timestamp,
    /// Whose it was.
    pub actor: &'static str,
    /// What it was about: `Machine default/m`, or `watch of Machine`.
    pub subject: String,
    /// Why it failed.
    pub cause: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: {}", self.time, self.actor, self.subject, self.cause)
    }
}

/// The latest mishaps of a troupe. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Mishaps {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    latest: VecDeque<Mishap>,
    count: u64,
}

impl Mishaps {
    /// The latest ones, oldest first.
    pub fn latest(&self) -> Vec<Mishap> {
        self.lock().latest.iter().cloned().collect()
    }

    /// How many there have been, also of those that are not kept any more.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    fn push(&self, mishap: Mishap) {
        let mut kept = self.lock();
        kept.count += 1;
        kept.latest.push_back(mishap);
        if kept.latest.len() > KEPT {
            kept.latest.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one actor writes its mishaps down.
#[derive(Clone, Debug)]
pub(super) struct Notebook {
    pub(super) actor: &'static str,
    pub(super) clock: Clock,
    pub(super) mishaps: Mishaps,
}

impl Notebook {
    /// An object could not be attended to.
    pub(super) fn object(&self, place: &Place, cause: impl Error + Send + Sync + 'static) {
        let name = if place.namespace.is_empty() {
            place.name.clone()
        } else {
            format!("{}/{}", place.namespace, place.name)
        };
        self.note(format!("{} {name}", place.kind.kind()), cause);
    }

    /// A watch broke.
    pub(super) fn watch(&self, kind: &str, cause: impl Error + Send + Sync + 'static) {
        self.note(format!("watch of {kind}"), cause);
    }

    fn note(&self, subject: String, cause: impl Error + Send + Sync + 'static) {
        let cause = Arc::new(cause);
        self.mishaps.push(Mishap { time: self.clock.now(), actor: self.actor, subject, cause });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_all_are_counted() {
        let mishaps = Mishaps::default();
        let clock = Clock::system();
        let notebook = Notebook { actor: "kubelet", clock, mishaps: mishaps.clone() };
        assert!(mishaps.latest().is_empty());
        for number in 0..300 {
            notebook.watch("Pod", std::io::Error::other(format!("failure {number}")));
        }
        let latest = mishaps.latest();
        assert_eq!((latest.len(), mishaps.count()), (KEPT, 300));
        let last = latest.last().expect("the last one").to_string();
        assert!(last.ends_with("kubelet: watch of Pod: failure 299"), "{last}");
    }
}
