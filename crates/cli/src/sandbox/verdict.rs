//! Checks that every machine was up when it was wanted and only then. The specs say when a machine was
//! wanted, and the Machine objects say when it existed. The controller's status is used only for what no
//! other object shows: whether pods block a drain.

mod machine_history;
#[cfg(test)]
mod tests;

use crate::sandbox::expectation::{Expectation, Interval, Removal, intervals};
use crate::sandbox::trace::{Key, Presence, Trace};
use crate::wording;
use five_spot_api::Phase;
use jiff::{SignedDuration, Timestamp};
use machine_history::MachineHistory;

/// The time within which the controller acts. It wakes up at the boundary; this leaves time for its requests.
const REACTION: SignedDuration = SignedDuration::from_secs(5);

/// The longest interval between retries of a blocked drain: the last step of the backoff.
const LAST_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// The time that the provider may take to remove a deleted Machine and its objects.
const RELEASE: SignedDuration = SignedDuration::from_mins(2);

/// The time for which a deleted object may still exist: the default of the controller.
const FINALIZER_TIMEOUT: SignedDuration = SignedDuration::from_secs(600);

/// A deviation of a machine from its expected state.
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

/// All violations up to `end`, sorted by time.
pub fn violations(trace: &Trace, end: Timestamp) -> Vec<Violation> {
    let mut violations = Vec::new();
    for key in trace.keys() {
        let mut checker =
            Checker { key, history: MachineHistory::of(trace, key, end), end, violations: Vec::new() };
        checker.errors();
        checker.deletion();
        for interval in intervals(trace, key, end) {
            match interval.expected {
                Expectation::Machine { join_timeout } => checker.wanted(interval, join_timeout),
                Expectation::Nothing(removal) => checker.unwanted(interval, removal),
                Expectation::Unspecified => {}
            }
        }
        violations.append(&mut checker.violations);
    }
    violations.sort();
    violations
}

struct Checker<'a> {
    key: &'a Key,
    history: MachineHistory<'a>,
    end: Timestamp,
    violations: Vec<Violation>,
}

impl Checker<'_> {
    fn report(&mut self, time: Timestamp, what: impl Into<String>) {
        self.violations.push(Violation { time, key: self.key.clone(), what: what.into() });
    }

    /// Phase Error is a violation, except during a blocked drain and until the next retry after it.
    fn errors(&mut self) {
        for (from, to, message) in self.history.errors() {
            let mut excused = from;
            for (began, released) in self.history.holds_since(Timestamp::MIN) {
                if began <= excused && released >= from {
                    excused = excused.max(released + LAST_RETRY + REACTION);
                }
            }
            if excused < to {
                self.report(excused, format!("in phase Error: {message}"));
            }
        }
    }

    /// A deleted object must disappear before the finalizer timeout.
    fn deletion(&mut self) {
        let mut snapshots = self.history.snapshots.iter();
        let Some(deleted) = snapshots.find_map(|(_, one)| one.and_then(|one| one.deleted_at)) else {
            return;
        };
        let gone = snapshots.find(|(_, one)| one.is_none()).map_or(self.end, |(time, _)| *time);
        let deadline = deleted + FINALIZER_TIMEOUT + REACTION;
        if gone > deadline {
            self.report(deadline, "the object was deleted but still exists");
        }
    }

    fn wanted(&mut self, interval: Interval, join_timeout: SignedDuration) {
        for (from, to, presence) in self.history.machine_between(interval.from, interval.to) {
            match presence {
                Presence::Gone => self.missing(from, to),
                Presence::There => self.lent(from, to, join_timeout),
                // A Machine that is being deleted must be gone before the next one is created.
                Presence::Terminating => {}
            }
        }
        for time in self.history.deletions_between(interval.from, interval.to) {
            if !self.history.is_replaced(time) {
                self.report(time, "the controller deleted the Machine while it was wanted");
            }
        }
    }

    fn missing(&mut self, from: Timestamp, to: Timestamp) {
        if to > from + REACTION && !self.history.is_faulty(from, to) {
            let long = wording::duration(to.duration_since(from));
            self.report(from, format!("there was no Machine for {long} although one was wanted"));
        }
    }

    fn lent(&mut self, from: Timestamp, to: Timestamp, join_timeout: SignedDuration) {
        let (settled, deadline) = (from + REACTION, from + join_timeout + REACTION);
        if to > deadline && !self.history.is_ready_between(from, deadline) {
            let long = wording::duration(join_timeout);
            self.report(deadline, format!("the Node was not Ready {long} after the Machine was created"));
        }
        if let Some((time, phase)) = self.history.first_other_phase(settled, to, Phase::Active)
            && !self.history.is_replaced(time)
        {
            self.report(
                time,
                format!("in phase {phase} instead of Active while the Machine was wanted and existed"),
            );
        }
    }

    fn unwanted(&mut self, interval: Interval, removal: Removal) {
        let history = self.history.machine_between(interval.from, interval.to);
        for (from, to, presence) in history {
            let came_late = from > interval.from + REACTION;
            match presence {
                Presence::There if came_late => {
                    self.report(from, "a Machine was created while none was wanted");
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
                "the Machine should have been deleted at once but was not".to_owned()
            } else {
                format!(
                    "the Machine was not deleted within {} after its window",
                    wording::duration(removal.grace)
                )
            };
            self.report(deadline, why);
        }
    }

    fn lingered(&mut self, from: Timestamp, to: Timestamp) {
        if to > from + RELEASE {
            self.report(from + RELEASE, "the deleted Machine still existed");
        }
    }

    fn resting(&mut self, from: Timestamp, to: Timestamp, removal: Removal) {
        let Some(rest) = removal.rest else {
            return;
        };
        if let Some((time, phase)) = self.history.first_other_phase(from + RELEASE, to, rest) {
            self.report(
                time,
                format!("in phase {phase} instead of {rest} although no Machine was wanted and none existed"),
            );
        }
    }
}

/// Truncates to whole seconds.
fn to_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
