//! The responsiveness of a workload cluster.
//!
//! A cluster that accepts connections and never answers would block every request for half a minute, and a controller
//! with many objects in it would do nothing else. While a request has waited too long for an answer, others are not
//! sent: they fail at once, and the queue retries later.

use super::TransportError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The time that a request waits for an answer before others fail at once. Longer than the default timeout of an admission
/// webhook.
pub(super) const SILENCE: Duration = Duration::from_secs(12);

/// The responsiveness of a cluster. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Responsiveness {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    asked: BTreeMap<u64, Instant>,
    next: u64,
    last_answer: Option<Instant>,
}

/// A request that waits for an answer, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    responsiveness: Responsiveness,
    number: u64,
}

impl Responsiveness {
    /// Registers a request. Refuses it while others have waited too long, unless it is a probe.
    pub(super) fn ask(&self, finds_out: bool) -> Result<Waiting, TransportError> {
        let (mut state, now) = (self.lock(), Instant::now());
        if let Some(silent) = state.silent_for(now).filter(|_| !finds_out) {
            return Err(TransportError::Silent(silent));
        }
        let number = state.next;
        state.next += 1;
        state.asked.insert(number, now);
        Ok(Waiting { responsiveness: self.clone(), number })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one insertion, removal or assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The time for which the cluster has not answered, if that is too long.
    fn silent_for(&self, now: Instant) -> Option<Duration> {
        let unanswered = |asked: &&Instant| self.last_answer.is_none_or(|last_answer| last_answer < **asked);
        let longest = self.asked.values().filter(unanswered).min()?;
        Some(now.duration_since(*longest)).filter(|silent| *silent >= SILENCE)
    }
}

impl Waiting {
    /// Records any result from the cluster, even that it cannot be reached.
    pub(super) fn note_answer(&self) {
        self.responsiveness.lock().last_answer = Some(Instant::now());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.responsiveness.lock().asked.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn no_request_is_sent_while_others_get_no_answer() {
        let responsiveness = Responsiveness::default();
        let first = responsiveness.ask(false).unwrap();
        advance(SILENCE / 2).await;
        let second = responsiveness.ask(false).unwrap();
        advance(SILENCE / 2).await;
        assert_eq!(responsiveness.ask(false).unwrap_err(), TransportError::Silent(SILENCE));
        let probe = responsiveness.ask(true).unwrap();
        probe.note_answer();
        assert!(responsiveness.ask(false).is_ok(), "it answers");
        drop((first, second));
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_request_does_not_block_others() {
        let responsiveness = Responsiveness::default();
        let first = responsiveness.ask(false).unwrap();
        advance(SILENCE).await;
        assert!(responsiveness.ask(false).is_err());
        drop(first);
        assert!(responsiveness.ask(false).is_ok());
    }
}
