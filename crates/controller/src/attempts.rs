//! The history of the attempts at each object: failures, faults and rounds, and when to try again.
//!
//! Only objects with something to remember have an entry, so that an idle object takes no memory here.

use crate::urgency::Urgency;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::execute::ExecutionError;
use five_spot_core::action::EventCause;
use five_spot_core::world::{Failure, Failures, Uid};
use five_spot_core::{backoff, text};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The longest time without a live read while an object is not settled. A watch loses nothing by design; a proxy between
/// the controller and the API server may.
const LONGEST_WITHOUT_READ: SignedDuration = SignedDuration::from_mins(5);

/// The same in an emergency: a lost event must not cost the owner of the machine a minute.
const LONGEST_IN_EMERGENCY: SignedDuration = SignedDuration::from_secs(10);

/// A failure, and the wait before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The number of failures in a row before this one.
    pub(crate) retry_count: u32,
    /// The wait before the next attempt.
    pub(crate) backoff: SignedDuration,
}

/// The history of one object.
#[derive(Clone, Debug, Default, PartialEq)]
struct History {
    /// The object that it belongs to: another one of the same name starts again.
    uid: Option<Uid>,
    failures: Failures,
    /// Those of them since someone has been waiting for the machine.
    urgent_failures: u32,
    /// The decisions in a row that have found a fault of the object.
    faults: u32,
    /// The reconciles in a row that have each left something to do at once.
    rounds: u32,
    /// The time of the next live read, while the object is not settled.
    read_at: Option<Timestamp>,
    /// The shutdown whose forced end has been logged.
    forced: Option<EventCause>,
}

impl History {
    /// Counts a failure towards the wait before the next attempt, which it returns. Failures from before an emergency do not
    /// delay it.
    fn wait(&mut self, urgency: Urgency) -> SignedDuration {
        if !urgency.is_emergency() {
            self.urgent_failures = 0;
            return backoff::delay(self.failures.count);
        }
        let wait = backoff::urgent_delay(self.urgent_failures);
        self.urgent_failures = self.urgent_failures.saturating_add(1);
        wait
    }

    fn is_empty(&self) -> bool {
        *self == Self { uid: self.uid.clone(), ..Self::default() }
    }
}

/// The histories of all objects. Boxed, because a map has room for nearly twice as many entries as it holds.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    by_key: Mutex<BTreeMap<ObjectKey, Box<History>>>,
}

impl Attempts {
    /// The failures of the last attempts at an object.
    pub(crate) fn failures(&self, key: &ObjectKey, uid: Option<Uid>) -> Failures {
        self.update(key, uid, |history| history.failures.clone())
    }

    /// Notes that an attempt succeeded. True if the one before had failed, so that the status has to be corrected.
    pub(crate) fn succeeded(&self, key: &ObjectKey) -> bool {
        self.update(key, None, |history| {
            history.urgent_failures = 0;
            std::mem::take(&mut history.failures) != Failures::default()
        })
    }

    /// Notes that an attempt failed. Returns when the next one is due.
    pub(crate) fn failed(
        &self,
        key: &ObjectKey,
        uid: Option<Uid>,
        failure: &ExecutionError,
        urgency: Urgency,
        now: Timestamp,
    ) -> Retry {
        self.update(key, uid, |history| {
            let count = history.failures.count;
            let retry = Retry { retry_count: count, backoff: history.wait(urgency) };
            history.failures = Failures {
                count: count.saturating_add(1),
                last: Some(Failure {
                    message: text::bounded(&failure.to_string(), text::MAX_MESSAGE).into_owned(),
                    refused: failure.error.is_refused(),
                    taints: failure.taints,
                    retry_at: now.saturating_add(retry.backoff).unwrap_or(Timestamp::MAX),
                }),
            };
            retry
        })
    }

    /// True if the last attempt failed.
    pub(crate) fn is_failing(&self, key: &ObjectKey) -> bool {
        self.lock().get(key).is_some_and(|history| history.failures.count > 0)
    }

    /// True if the last attempt failed because a cluster did not answer as it should. A refusal is an answer.
    pub(crate) fn waits_for_cluster(&self, key: &ObjectKey) -> bool {
        let by_key = self.lock();
        let last = by_key.get(key).and_then(|history| history.failures.last.as_ref());
        last.is_some_and(|last| !last.refused)
    }

    /// Notes whether a decision has found a fault. Returns when to decide again, if nothing may report its end.
    pub(crate) fn found_fault(&self, key: &ObjectKey, uid: Option<Uid>, is_faulty: bool) -> Option<Retry> {
        self.update(key, uid, |history| {
            if !is_faulty {
                history.faults = 0;
                return None;
            }
            let retry = Retry { retry_count: history.faults, backoff: backoff::delay(history.faults) };
            history.faults = history.faults.saturating_add(1);
            Some(retry)
        })
    }

    /// True if a live read is due, because an object has not been settled for long.
    pub(crate) fn is_read_due(&self, key: &ObjectKey, now: Timestamp) -> bool {
        self.lock().get(key).and_then(|history| history.read_at).is_some_and(|time| time <= now)
    }

    /// Notes whether an object is settled. Returns the time of the next live read if it is not.
    pub(crate) fn note_settled(
        &self,
        key: &ObjectKey,
        uid: Option<Uid>,
        settled: bool,
        urgency: Urgency,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let longest = if urgency.is_emergency() { LONGEST_IN_EMERGENCY } else { LONGEST_WITHOUT_READ };
        self.update(key, uid, |history| {
            let next = now.saturating_add(longest).unwrap_or(Timestamp::MAX);
            // A time that lies further ahead comes from before the clock was set back.
            let due = history.read_at.filter(|time| *time > now && *time <= next);
            history.read_at = (!settled).then(|| due.unwrap_or(next));
            history.read_at
        })
    }

    /// Counts the reconciles in a row that have each left something to do at once.
    pub(crate) fn count_round(&self, key: &ObjectKey, uid: Option<Uid>, unfinished: bool) -> u32 {
        self.update(key, uid, |history| {
            history.rounds = if unfinished { history.rounds.saturating_add(1) } else { 0 };
            history.rounds
        })
    }

    /// Notes the forced end of a drain. True if it is new, and not another attempt at it.
    pub(crate) fn note_forced(&self, key: &ObjectKey, uid: Option<Uid>, cause: &EventCause) -> bool {
        self.update(key, uid, |history| history.forced.replace(cause.clone()).as_ref() != Some(cause))
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// Forgets all objects.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn update<R>(&self, key: &ObjectKey, uid: Option<Uid>, change: impl FnOnce(&mut History) -> R) -> R {
        let mut by_key = self.lock();
        let mut history = by_key.remove(key).unwrap_or_default();
        if let Some(uid) = uid
            && history.uid.as_ref() != Some(&uid)
        {
            *history = History { uid: Some(uid), ..History::default() };
        }
        let result = change(&mut history);
        if !history.is_empty() {
            by_key.insert(key.clone(), history);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Box<History>>> {
        // Every change is one insertion or removal.
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::urgency::Emergency;

    fn key() -> ObjectKey {
        ObjectKey::new("a", "one")
    }

    #[allow(clippy::unnecessary_wraps)]
    fn uid(text: &str) -> Option<Uid> {
        Some(Uid::from(text))
    }

    #[test]
    fn an_object_at_rest_takes_no_memory() {
        let (attempts, now) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(attempts.count_round(&key(), uid("1"), true), 1);
        assert!(attempts.note_settled(&key(), uid("1"), false, Urgency::default(), now).is_some());
        assert_eq!(attempts.lock().len(), 1);
        attempts.count_round(&key(), uid("1"), false);
        attempts.note_settled(&key(), uid("1"), true, Urgency::default(), now);
        assert_eq!(attempts.lock().len(), 0);
    }

    #[test]
    fn another_object_of_the_same_name_begins_anew() {
        let attempts = Attempts::default();
        for round in 1..=3 {
            assert_eq!(attempts.count_round(&key(), uid("1"), true), round);
        }
        assert_eq!(attempts.count_round(&key(), uid("2"), true), 1);
    }

    #[test]
    fn faults_are_retried_with_backoff() {
        let attempts = Attempts::default();
        let waits: Vec<i64> = (0..3)
            .filter_map(|_| attempts.found_fault(&key(), uid("1"), true))
            .map(|retry| retry.backoff.as_secs())
            .collect();
        assert_eq!(waits, [30, 60, 120]);
        assert_eq!(attempts.found_fault(&key(), uid("1"), false), None);
    }

    #[test]
    fn failures_before_an_emergency_do_not_delay_it() {
        let failures = Failures { count: 8, ..Failures::default() };
        let mut history = History { failures, ..History::default() };
        let mut waits = |emergency| {
            let urgency = Urgency { emergency, ..Urgency::default() };
            [history.wait(urgency).as_secs(), history.wait(urgency).as_secs()]
        };
        assert_eq!(waits(Emergency::None), [300, 300]);
        assert_eq!(waits(Emergency::KillSwitch), [1, 2]);
        assert_eq!(waits(Emergency::Overdue), [4, 8]);
        assert_eq!(waits(Emergency::None), [300, 300]);
        assert_eq!(waits(Emergency::Reclaim), [1, 2]);
    }

    #[test]
    fn an_unsettled_object_is_read_from_time_to_time() {
        let (attempts, start) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        let due = attempts.note_settled(&key(), uid("1"), false, Urgency::default(), start);
        assert_eq!(due, Some(start + LONGEST_WITHOUT_READ));
        let later = start + SignedDuration::from_mins(1);
        assert_eq!(attempts.note_settled(&key(), uid("1"), false, Urgency::default(), later), due);
        assert!(!attempts.is_read_due(&key(), later));
        assert!(attempts.is_read_due(&key(), start + LONGEST_WITHOUT_READ));
        let before = start - SignedDuration::from_hours(1);
        let reset = attempts.note_settled(&key(), uid("1"), false, Urgency::default(), before);
        assert_eq!(reset, Some(before + LONGEST_WITHOUT_READ), "the clock was set back");
    }
}
