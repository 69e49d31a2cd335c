//! Was every machine where it was wanted? What is wanted comes from the specs, where it was from the Machines
//! themselves; the controller's own word counts only for what it alone can know: whether pods hold a node.

mod machine_history;
#[cfg(test)]
mod tests;

use crate::sandbox::expectation::{Expectation, Interval, Removal, intervals};
use crate::sandbox::trace::{Key, Presence, Trace};
use crate::wording;
use five_spot_api::Phase;
use jiff::{SignedDuration, Timestamp};
use machine_history::MachineHistory;

/// The time within which the controller acts. It wakes up at the boundary; this leaves room for its requests.
const REACTION: SignedDuration = SignedDuration::from_secs(5);

/// The longest time until a blocked drain is retried: the last step of the backoff.
const LAST_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// The time that the provider may take to remove a deleted Machine and its parts.
const RELEASE: SignedDuration = SignedDuration::from_mins(2);

/// The time a deleted object may stay: the controller's default.
const FINALIZER_TIMEOUT: SignedDuration = SignedDuration::from_secs(600);

/// A machine that was not where it was wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub time: Timestamp,
    pub key: Key,
    /// The problem, without the machine and the time.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.key, to_seconds(self.time), self.what)
    }
}

/// Everything that was wrong up to `end`, in the order of time.
pub fn violations(trace: &Trace, end: Timestamp) -> Vec<Violation> {
    let mut violations = Vec::new();
    for key in trace.keys() {
        let mut judge =
            Judge { key, history: MachineHistory::of(trace, key, end), end, violations: Vec::new() };
        judge.errors();
        judge.deletion();
        for interval in intervals(trace, key, end) {
            match interval.expected {
                Expectation::Machine { join_timeout } => judge.wanted(interval, join_timeout),
                Expectation::Nothing(removal) => judge.unwanted(interval, removal),
                Expectation::Whatever => {}
            }
        }
        violations.append(&mut judge.violations);
    }
    violations.sort();
    violations
}

struct Judge<'a> {
    key: &'a Key,
    history: MachineHistory<'a>,
    end: Timestamp,
    violations: Vec<Violation>,
}

impl Judge<'_> {
    fn blame(&mut self, time: Timestamp, what: impl Into<String>) {
        self.violations.push(Violation { time, key: self.key.clone(), what: what.into() });
    }

    /// An error needs someone, unless it is a drain that is held: that is in time for as long as it is held, and until
    /// it has been tried again.
    fn errors(&mut self) {
        for (from, to, message) in self.history.errors() {
            let mut excused = from;
            for (began, released) in self.history.holds_since(Timestamp::MIN) {
                if began <= excused && released >= from {
                    excused = excused.max(released + LAST_RETRY + REACTION);
                }
            }
            if excused < to {
                self.blame(excused, format!("in phase Error: {message}"));
            }
        }
    }

    /// A deleted object goes, whatever stands in its way.
    fn deletion(&mut self) {
        let mut snapshots = self.history.snapshots.iter();
        let Some(deleted) = snapshots.find_map(|(_, one)| one.and_then(|one| one.deleted_at)) else {
            return;
        };
        let gone = snapshots.find(|(_, one)| one.is_none()).map_or(self.end, |(time, _)| *time);
        let deadline = deleted + FINALIZER_TIMEOUT + REACTION;
        if gone > deadline {
            self.blame(deadline, "it was deleted and is still not gone");
        }
    }

    fn wanted(&mut self, interval: Interval, join_timeout: SignedDuration) {
        for (from, to, presence) in self.history.machine_between(interval.from, interval.to) {
            match presence {
                Presence::Gone => self.missing(from, to),
                Presence::There => self.lent(from, to, join_timeout),
                // One that was on its way out already, or that somebody deleted, has to be gone before the next one.
                Presence::Terminating => {}
            }
        }
        for time in self.history.deletions_between(interval.from, interval.to) {
            if !self.history.is_replaced(time) {
                self.blame(time, "the controller deleted its machine while it was wanted");
            }
        }
    }

    fn missing(&mut self, from: Timestamp, to: Timestamp) {
        if to > from + REACTION && !self.history.is_faulty(from, to) {
            let long = wording::duration(to.duration_since(from));
            self.blame(from, format!("a machine was wanted and there was none for {long}"));
        }
    }

    fn lent(&mut self, from: Timestamp, to: Timestamp, join_timeout: SignedDuration) {
        let (settled, deadline) = (from + REACTION, from + join_timeout + REACTION);
        if to > deadline && !self.history.is_ready_between(from, deadline) {
            let long = wording::duration(join_timeout);
            self.blame(deadline, format!("its node was not Ready {long} after its machine was made"));
        }
        if let Some((time, phase)) = self.history.first_other_phase(settled, to, Phase::Active)
            && !self.history.is_replaced(time)
        {
            self.blame(
                time,
                format!("in phase {phase} while its machine was wanted and there, not in Active"),
            );
        }
    }

    fn unwanted(&mut self, interval: Interval, removal: Removal) {
        let history = self.history.machine_between(interval.from, interval.to);
        for (from, to, presence) in history {
            let came_late = from > interval.from + REACTION;
            match presence {
                Presence::There if came_late => {
                    self.blame(from, "a machine was made while none was wanted");
                }
                Presence::There => self.overstayed(interval.from, to, removal),
                Presence::Terminating => self.lingered(from, to),
                Presence::Gone => self.resting(from, to, removal),
            }
        }
    }

    fn overstayed(&mut self, since: Timestamp, to: Timestamp, removal: Removal) {
        let mut deadline = since + removal.grace + REACTION;
        for (began, released) in self.history.holds_since(since) {
            if removal.can_be_held && began <= deadline {
                deadline = deadline.max(released + LAST_RETRY + REACTION);
            }
        }
        if to > deadline {
            let why = if removal.grace.is_zero() {
                "its machine was to go at once, and was not deleted".to_owned()
            } else {
                format!(
                    "its machine was not deleted within {} of its window",
                    wording::duration(removal.grace)
                )
            };
            self.blame(deadline, why);
        }
    }

    fn lingered(&mut self, from: Timestamp, to: Timestamp) {
        if to > from + RELEASE {
            self.blame(from + RELEASE, "its deleted machine was still not gone");
        }
    }

    fn resting(&mut self, from: Timestamp, to: Timestamp, removal: Removal) {
        let Some(rest) = removal.rest else {
            return;
        };
        if let Some((time, phase)) = self.history.first_other_phase(from + RELEASE, to, rest) {
            self.blame(
                time,
                format!("in phase {phase} though its machine was not wanted and gone, not in {rest}"),
            );
        }
    }
}

/// To the second, as a person reads it.
fn to_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
