//! The expected state of a machine over time. It is computed from the specs alone, with the same plan as
//! `5spot preview`, and does not depend on what the controller did.

use crate::sandbox::trace::{Key, Snapshot, Trace};
use five_spot_api::{OnTimeout, Phase};
use five_spot_core::schedule::PlanState;
use jiff::{SignedDuration, Timestamp};

/// The expected state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// A Machine exists, and its Node is Ready at the latest after the join timeout.
    Machine { join_timeout: SignedDuration },
    /// No Machine exists.
    Nothing(Removal),
    /// Unspecified: the spec is invalid, or the controller is paused for this object.
    Unspecified,
}

/// The expected removal of a Machine that is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The longest time until the Machine is deleted; zero with a kill switch.
    pub grace: SignedDuration,
    /// Blocked pods may delay the deletion.
    pub can_be_held: bool,
    /// The phase after the removal; `None` if the object is deleted too.
    pub rest: Option<Phase>,
}

/// A half-open interval with one expected state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub from: Timestamp,
    pub to: Timestamp,
    pub expected: Expectation,
}

/// Returns the expected states of an object up to `end`, without gaps; no two neighbours are equal.
pub fn intervals(trace: &Trace, key: &Key, end: Timestamp) -> Vec<Interval> {
    let snapshots: Vec<_> = trace.snapshots(key).collect();
    let mut intervals = Vec::new();
    for (index, (from, snapshot)) in snapshots.iter().enumerate() {
        let to = snapshots.get(index + 1).map_or(end, |(next, _)| *next).min(end);
        match snapshot {
            Some(snapshot) => of_snapshot(snapshot, *from, to, &mut intervals),
            None => add(&mut intervals, Interval { from: *from, to, expected: Expectation::Unspecified }),
        }
    }
    intervals
}

fn of_snapshot(snapshot: &Snapshot, from: Timestamp, to: Timestamp, intervals: &mut Vec<Interval>) {
    let whole = |expected| Interval { from, to, expected };
    let at_once =
        |rest| Expectation::Nothing(Removal { grace: SignedDuration::ZERO, can_be_held: false, rest });
    if snapshot.is_paused {
        return add(intervals, whole(Expectation::Unspecified));
    }
    if snapshot.kill_switch {
        let rest = snapshot.deleted_at.is_none().then_some(Phase::Terminated);
        return add(intervals, whole(at_once(rest)));
    }
    if snapshot.is_reclaimed {
        return add(intervals, whole(at_once(None)));
    }
    let Some(spec) = &snapshot.spec else {
        return add(intervals, whole(Expectation::Unspecified));
    };
    let gracefully = |rest| {
        Expectation::Nothing(Removal {
            grace: spec.handling.graceful_shutdown_timeout.min(spec.handling.node_drain_timeout),
            can_be_held: spec.handling.on_timeout == OnTimeout::Error,
            rest,
        })
    };
    if snapshot.deleted_at.is_some() {
        return add(intervals, whole(gracefully(None)));
    }
    let mut at = from;
    while at < to {
        let until = spec.plan().next_boundary(at).map_or(to, |boundary| boundary.min(to));
        let expected = match spec.plan().at(at) {
            PlanState::InWindow | PlanState::LeadTime | PlanState::OverrideUp => {
                Expectation::Machine { join_timeout: spec.join_timeout }
            }
            PlanState::Disabled => gracefully(Some(Phase::Disabled)),
            PlanState::OverrideDown | PlanState::OutsideWindow => gracefully(Some(Phase::Inactive)),
        };
        add(intervals, Interval { from: at, to: until, expected });
        at = until;
    }
}

fn add(intervals: &mut Vec<Interval>, interval: Interval) {
    match intervals.last_mut() {
        _ if interval.from >= interval.to => {}
        Some(last) if last.expected == interval.expected && last.to == interval.from => last.to = interval.to,
        Some(_) | None => intervals.push(interval),
    }
}
