//! What is laid over the week: days that are open or closed whatever the weekday.

use super::clock::{LocalDay, WallClock};
use super::grammar::{HourMask, Hours};
use super::pattern::{Membership, Pattern, Stretch};
use five_spot_api::ScheduleState;
use jiff::Timestamp;
use std::ops::RangeInclusive;

/// The same hours on some days in a row, open or closed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    pub(super) state: ScheduleState,
    pub(super) days: RangeInclusive<LocalDay>,
    pub(super) hours: HourMask,
    pattern: Pattern,
    /// From its first instant to its last: most instants are outside, and need no closer look.
    extent: Stretch,
}

impl Layer {
    /// The layers that one exception amounts to. Hours over midnight belong to the day on which they
    /// begin, so they are missing on the first day and left over on the day after the last.
    pub(super) fn of_exception(
        state: ScheduleState,
        days: &RangeInclusive<LocalDay>,
        hours: Hours,
        clock: &WallClock,
    ) -> Vec<Self> {
        let (first, last) = (*days.start(), *days.end());
        let Hours { same_day, next_day } = hours;
        if next_day == HourMask::NONE {
            return vec![Self::new(state, first..=last, same_day, clock)];
        }
        [
            (first..=first, same_day),
            (first.plus(1)..=last, same_day | next_day),
            (last.plus(1)..=last.plus(1), next_day),
        ]
        .into_iter()
        .filter(|(days, _)| !days.is_empty())
        .map(|(days, hours)| Self::new(state, days, hours, clock))
        .collect()
    }

    fn new(state: ScheduleState, days: RangeInclusive<LocalDay>, hours: HourMask, clock: &WallClock) -> Self {
        let pattern = Pattern::daily(days.clone(), hours);
        let extent = pattern.extent(clock);
        Self { state, days, hours, pattern, extent }
    }

    /// Whether an instant is ruled by this layer, and a stretch around it over which that holds.
    pub(super) fn around(&self, clock: &WallClock, t: Timestamp) -> Membership {
        let Stretch { since, until } = self.extent;
        if t < since {
            Membership::outside(Timestamp::MIN, since)
        } else if until <= t && until < Timestamp::MAX {
            Membership::outside(until, Timestamp::MAX)
        } else {
            self.pattern.around(clock, t)
        }
    }

    /// The instants at which the layer begins and ends.
    pub(super) const fn extent(&self) -> Stretch {
        self.extent
    }
}
