//! Stretches of days over which nothing can change.
//!
//! A search for the next change goes from edge to edge. That ends soon while the week has its ups and
//! downs, but a `closed` from the year 1 to the year 9999 hides every edge of the week for ever, and two
//! exceptions may undo each other day by day. So the calendar is cut into eras, at every day on which an
//! exception begins or ends. Inside an era each week is like the one before, and looking at the hours of
//! one week tells whether the whole era is open or closed throughout.
//!
//! The hours are looked at on the local calendar, where the clock never skips or repeats anything. That is
//! enough: local windows that leave no hole between them leave none in time either, since the last instant
//! before a local time is never earlier than the first instant at it. It is the other way round that does not hold.

use super::clock::{LocalDay, WallClock};
use super::exception::Layer;
use super::grammar::HourMask;
use super::pattern::Stretch;
use super::week::WholeHours;
use five_spot_api::ScheduleState;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// A stretch that is open or closed from its first instant to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quiet {
    pub(super) open: bool,
    pub(super) stretch: Stretch,
}

/// The quiet stretches, in order.
pub(super) fn quiet_stretches(week: &[WholeHours; 7], layers: &[Layer], clock: &WallClock) -> Vec<Quiet> {
    let quiet = |era: Era| {
        let open = era.constant(week, layers)?;
        Some(Quiet { open, stretch: era.stretch(clock) })
    };
    eras(layers).into_iter().filter_map(quiet).collect()
}

/// The quiet stretch that an instant is in.
pub(super) fn quiet_at(quiet: &[Quiet], t: Timestamp) -> Option<Quiet> {
    let begun = quiet.partition_point(|quiet| quiet.stretch.since <= t);
    let latest = quiet[..begun].last()?;
    let endless = latest.stretch.until == Timestamp::MAX;
    (t < latest.stretch.until || endless).then_some(*latest)
}

/// Days in a row on which the same layers apply.
struct Era {
    /// The first day; none in the era before all layers.
    first: Option<LocalDay>,
    /// The first day of the next era; none in the era after all layers.
    end: Option<LocalDay>,
    /// The layers, by their index.
    layers: BTreeSet<usize>,
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
        eras.push(Era { first, end, layers: active.clone() });
        first = end;
        for &(_, begins, index) in same_day {
            if begins {
                active.insert(index);
            } else {
                active.remove(&index);
            }
        }
    }
    eras.push(Era { first, end: None, layers: active });
    eras
}

impl Era {
    /// Whether it is always open or always closed; `None` if it changes.
    fn constant(&self, week: &[WholeHours; 7], layers: &[Layer]) -> Option<bool> {
        let mut days = self.weekdays().map(|weekday| self.hours(week[weekday], layers));
        let open = days.clone().all(|day| day.open == HourMask::ALL);
        let closed = days.all(|day| day.closed == HourMask::ALL);
        (open || closed).then_some(open)
    }

    /// Every weekday that occurs in it.
    fn weekdays(&self) -> impl Iterator<Item = usize> + Clone {
        let (first, count) = match (self.first, self.end) {
            (Some(first), Some(end)) => (first, (end.0 - first.0).min(7)),
            (Some(day), None) | (None, Some(day)) => (day, 7),
            (None, None) => (LocalDay::SOME_MONDAY, 7),
        };
        (0..count).map(move |step| first.plus(step).weekday())
    }

    fn hours(&self, day: WholeHours, layers: &[Layer]) -> WholeHours {
        let applied = self.layers.iter().filter_map(|&index| layers.get(index));
        applied.fold(day, |WholeHours { open, closed }, Layer { state, hours, .. }| match state {
            ScheduleState::Open => WholeHours { open: open | *hours, closed: closed.without(*hours) },
            ScheduleState::Closed => WholeHours { open: open.without(*hours), closed: closed | *hours },
        })
    }

    /// The instants that belong to its days for certain. Where the clock goes back over midnight, those
    /// in between belong to neither of two eras.
    fn stretch(&self, clock: &WallClock) -> Stretch {
        Stretch {
            since: self.first.map_or(Timestamp::MIN, |day| clock.last_before(day.midnight())),
            until: self.end.map_or(Timestamp::MAX, |day| clock.first_at(day.midnight())),
        }
    }
}
