//! Intervals in which the schedule does not change.
//!
//! A search for the next change goes from boundary to boundary. Normally that ends soon, but a `closed` from the year 1 to the
//! year 9999 hides every boundary of the week, and two exceptions may cancel each other day by day. Therefore the calendar is
//! divided into eras, at every day on which an exception begins or ends. Within an era all weeks are identical, and the hours
//! of one week tell whether the whole era is open or closed.
//!
//! The hours are compared on the local calendar, in which the clock never skips or repeats anything. That is sufficient: local
//! windows without a gap between them have no gap in time either, because the last instant before a local time is never earlier
//! than the first instant at it. The reverse does not hold.

use super::clock::{LocalDay, WallClock};
use super::exception::Layer;
use super::grammar::HourMask;
use super::pattern::Interval;
use super::week::WholeHours;
use five_spot_api::ScheduleState;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// An interval that is open or closed from its first instant to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConstantInterval {
    pub(super) open: bool,
    pub(super) interval: Interval,
}

/// Returns the constant intervals, in order.
pub(super) fn constant_intervals(
    week: &[WholeHours; 7],
    layers: &[Layer],
    clock: &WallClock,
) -> Vec<ConstantInterval> {
    let constant = |era: Era| {
        let open = era.constant(week)?;
        Some(ConstantInterval { open, interval: era.interval(clock) })
    };
    eras(layers).into_iter().filter_map(constant).collect()
}

/// Returns the constant interval that contains an instant.
pub(super) fn constant_at(constants: &[ConstantInterval], t: Timestamp) -> Option<ConstantInterval> {
    let begun = constants.partition_point(|constant| constant.interval.since <= t);
    let latest = constants[..begun].last()?;
    let endless = latest.interval.until == Timestamp::MAX;
    (t < latest.interval.until || endless).then_some(*latest)
}

/// Consecutive days on which the same layers apply.
struct Era {
    /// The first day; `None` in the era before all layers.
    first: Option<LocalDay>,
    /// The first day of the next era; `None` in the era after all layers.
    end: Option<LocalDay>,
    /// The hours that the layers open and close on each of these days, whatever the weekday.
    decided: WholeHours,
}

fn eras(layers: &[Layer]) -> Vec<Era> {
    let begins = layers.iter().enumerate().map(|(index, layer)| (*layer.days.start(), true, index));
    let ends = layers.iter().enumerate().map(|(index, layer)| (layer.days.end().plus(1), false, index));
    let mut turns: Vec<_> = begins.chain(ends).collect();
    turns.sort_unstable();

    let mut eras = Vec::new();
    let (mut first, mut active) = (None, BTreeSet::new());
    for same_day in turns.chunk_by(|one, other| one.0 == other.0) {
        let end = same_day.first().map(|turn| turn.0);
        eras.push(Era { first, end, decided: decided(&active, layers) });
        first = end;
        for &(_, begins, index) in same_day {
            if begins {
                active.insert(index);
            } else {
                active.remove(&index);
            }
        }
    }
    eras.push(Era { first, end: None, decided: decided(&active, layers) });
    eras
}

/// Returns the hours that some of the layers open and close; a later layer takes precedence. They are computed once for each
/// era and not for each of its weekdays: four hundred exceptions that lie inside each other make sixteen hundred eras.
fn decided(active: &BTreeSet<usize>, layers: &[Layer]) -> WholeHours {
    let mut decided = WholeHours::default();
    for layer in active.iter().rev().filter_map(|&index| layers.get(index)) {
        let known = decided.open | decided.closed;
        if known == HourMask::ALL {
            break;
        }
        let hours = layer.hours.without(known);
        match layer.state {
            ScheduleState::Open => decided.open = decided.open | hours,
            ScheduleState::Closed => decided.closed = decided.closed | hours,
        }
    }
    decided
}

impl Era {
    /// Returns true if the era is always open and false if it is always closed; `None` if it changes.
    fn constant(&self, week: &[WholeHours; 7]) -> Option<bool> {
        let mut days = self.weekdays().map(|weekday| self.hours(week[weekday]));
        let open = days.clone().all(|day| day.open == HourMask::ALL);
        let closed = days.all(|day| day.closed == HourMask::ALL);
        (open || closed).then_some(open)
    }

    /// Returns the weekdays that occur in the era.
    fn weekdays(&self) -> impl Iterator<Item = usize> + Clone {
        let (first, count) = match (self.first, self.end) {
            (Some(first), Some(end)) => (first, (end.0 - first.0).min(7)),
            (Some(day), None) | (None, Some(day)) => (day, 7),
            (None, None) => (LocalDay::SOME_MONDAY, 7),
        };
        (0..count).map(move |step| first.plus(step).weekday())
    }

    fn hours(&self, day: WholeHours) -> WholeHours {
        let WholeHours { open, closed } = self.decided;
        WholeHours { open: day.open.without(closed) | open, closed: day.closed.without(open) | closed }
    }

    /// Returns the instants that certainly belong to the days of the era. Where the clock is set back across midnight, the
    /// instants in between belong to neither of two eras.
    fn interval(&self, clock: &WallClock) -> Interval {
        Interval {
            since: self.first.map_or(Timestamp::MIN, |day| clock.last_before(day.midnight())),
            until: self.end.map_or(Timestamp::MAX, |day| clock.first_at(day.midnight())),
        }
    }
}
