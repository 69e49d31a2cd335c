//! Whether a workload cluster answers at all.
//!
//! One that takes connections and never answers would hold every request for half a minute, and a controller with many
//! objects in it would do nothing else. While somebody has been waiting in vain for a while, nobody else is sent after
//! them: it is said at once that the cluster does not answer, and the queue tries again later.

use super::DoorError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long somebody waits in vain before the others are told so. Longer than a slow admission webhook is waited for by
/// default.
pub(super) const SILENCE: Duration = Duration::from_secs(12);

/// The pulse of a cluster. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    asked: BTreeMap<u64, Instant>,
    next: u64,
    heard: Option<Instant>,
}

/// Somebody waits for an answer, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    pulse: Pulse,
    number: u64,
}

impl Pulse {
    /// Somebody wants to ask. Not if others wait in vain, unless it is to find out whether they still do.
    pub(super) fn ask(&self, finds_out: bool) -> Result<Waiting, DoorError> {
        let (mut state, now) = (self.lock(), Instant::now());
        if let Some(silent) = state.silent_for(now).filter(|_| !finds_out) {
            return Err(DoorError::Silent(silent));
        }
        let number = state.next;
        state.next += 1;
        state.asked.insert(number, now);
        Ok(Waiting { pulse: self.clone(), number })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one insertion, removal or assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How long it has been silent, if that is too long.
    fn silent_for(&self, now: Instant) -> Option<Duration> {
        let unheard = |asked: &&Instant| self.heard.is_none_or(|heard| heard < **asked);
        let longest = self.asked.values().filter(unheard).min()?;
        Some(now.duration_since(*longest)).filter(|silent| *silent >= SILENCE)
    }
}

impl Waiting {
    /// Something was heard of the cluster, if only that it cannot be reached.
    pub(super) fn heard(&self) {
        self.pulse.lock().heard = Some(Instant::now());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pulse.lock().asked.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn nobody_is_sent_after_those_who_wait_in_vain() {
        let pulse = Pulse::default();
        let first = pulse.ask(false).unwrap();
        advance(SILENCE / 2).await;
        let second = pulse.ask(false).unwrap();
        advance(SILENCE / 2).await;
        assert_eq!(pulse.ask(false).unwrap_err(), DoorError::Silent(SILENCE));
        let probe = pulse.ask(true).unwrap();
        probe.heard();
        assert!(pulse.ask(false).is_ok(), "it answers");
        drop((first, second));
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_gave_up_keeps_nobody_from_asking() {
        let pulse = Pulse::default();
        let first = pulse.ask(false).unwrap();
        advance(SILENCE).await;
        assert!(pulse.ask(false).is_err());
        drop(first);
        assert!(pulse.ask(false).is_ok());
    }
}
