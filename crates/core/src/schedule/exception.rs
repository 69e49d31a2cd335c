//! Exceptions to the weekly pattern: days that are open or closed whatever the weekday.

use super::clock::{LocalDay, WallClock};
use super::grammar::{HourMask, Hours};
use super::pattern::{Interval, Membership, Pattern};
use five_spot_api::ScheduleState;
use jiff::Timestamp;
use std::ops::RangeInclusive;

/// The same hours on consecutive days, open or closed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    pub(super) state: ScheduleState,
    pub(super) days: RangeInclusive<LocalDay>,
    pub(super) hours: HourMask,
    pattern: Pattern,
    /// The interval from its first instant to its last. Most instants are outside and need no further evaluation.
    extent: Interval,
}

impl Layer {
    /// Returns the layers of an exception. Hours after midnight belong to the day on which their range starts, so the first day
    /// lacks them and the day after the last one has them.
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

    /// Returns the membership of an instant in this layer.
    pub(super) fn around(&self, clock: &WallClock, t: Timestamp) -> Membership {
        let Interval { since, until } = self.extent;
        if t < since {
            Membership::outside(Timestamp::MIN, since)
        } else if until <= t && until < Timestamp::MAX {
            Membership::outside(until, Timestamp::MAX)
        } else {
            self.pattern.around(clock, t)
        }
    }

    /// Returns the interval from the first instant of the layer to the last.
    pub(super) const fn extent(&self) -> Interval {
        self.extent
    }
}
