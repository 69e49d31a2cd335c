//! The local clock of a time zone, and the instants that correspond to a local time.
//!
//! A local clock skips time when it is set forward and repeats time when it is set back. [`WallClock::first_at`] and
//! [`WallClock::last_before`] still have exactly one answer, whatever the size of the step.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

pub(super) const MINUTES_PER_HOUR: i64 = 60;
pub(super) const MINUTES_PER_DAY: i64 = 24 * MINUTES_PER_HOUR;
pub(super) const MINUTES_PER_WEEK: i64 = 7 * MINUTES_PER_DAY;

const SECONDS_PER_MINUTE: i64 = 60;

/// A minute of a local clock, counted from 1970-01-01T00:00 on that clock as if it never skipped or repeated a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalMinute(pub(super) i64);

/// A calendar day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalDay(pub(super) i64);

impl LocalDay {
    /// The Monday from which weeks are counted.
    pub(super) const SOME_MONDAY: Self = Self(4);

    pub(super) fn of(date: Date) -> Self {
        let epoch = Date::constant(1970, 1, 1);
        Self(date.duration_since(epoch).as_hours() / 24)
    }

    /// Returns the number of days since Monday.
    pub(super) fn weekday(self) -> usize {
        let days = (self.0 - Self::SOME_MONDAY.0).rem_euclid(7);
        usize::try_from(days).unwrap_or_default()
    }

    pub(super) const fn plus(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    pub(super) const fn midnight(self) -> LocalMinute {
        LocalMinute(self.0 * MINUTES_PER_DAY)
    }
}

/// A local clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WallClock {
    timezone: TimeZone,
}

impl WallClock {
    pub(super) const fn new(timezone: TimeZone) -> Self {
        Self { timezone }
    }

    pub(super) const fn timezone(&self) -> &TimeZone {
        &self.timezone
    }

    /// Returns the minute that the clock shows.
    pub(super) fn reads(&self, t: Timestamp) -> LocalMinute {
        // Timestamps before 1970 with a fraction round towards zero; a clock always rounds down.
        let second = t.as_second() - i64::from(t.subsec_nanosecond() < 0);
        let local = second + i64::from(self.timezone.to_offset(t).seconds());
        LocalMinute(local.div_euclid(SECONDS_PER_MINUTE))
    }

    /// Returns the first instant at which the clock shows this minute or a later one.
    pub(super) fn first_at(&self, minute: LocalMinute) -> Timestamp {
        let local = minute.0 * SECONDS_PER_MINUTE;
        match self.offset_at(local) {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                instant(local, offset)
            }
            AmbiguousOffset::Gap { before, after } => self.transition_over(local, before, after),
        }
    }

    /// Returns the end of the last instant at which the clock shows an earlier minute.
    ///
    /// The second before the minute determines the result. Where the clock is set back to 01:00, it shows 00:59:59 once, so
    /// the result for 01:00 is the first 01:00. It shows 01:29:59 twice, so the result for 01:30 is the second 01:30.
    pub(super) fn last_before(&self, minute: LocalMinute) -> Timestamp {
        let local = minute.0 * SECONDS_PER_MINUTE;
        match self.offset_at(local - 1) {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { after: offset, .. } => {
                instant(local, offset)
            }
            AmbiguousOffset::Gap { before, after } => self.transition_over(local - 1, before, after),
        }
    }

    fn offset_at(&self, local: i64) -> AmbiguousOffset {
        self.timezone.to_ambiguous_timestamp(civil(local)).offset()
    }

    /// Returns the instant at which the clock skips a local second.
    fn transition_over(&self, local: i64, before: Offset, after: Offset) -> Timestamp {
        let (earliest, latest) = (instant(local, after), instant(local, before));
        self.timezone
            .following(earliest)
            .take_while(|transition| transition.timestamp() <= latest)
            .find(|transition| transition.offset() == after)
            .map_or(latest, |transition| transition.timestamp())
    }
}

/// Returns a local second as a date and a time, clamped to the range of the calendar.
fn civil(local: i64) -> DateTime {
    Offset::UTC.to_datetime(instant(local, Offset::UTC))
}

/// Returns the instant of a local second under an offset, clamped to the range of timestamps.
fn instant(local: i64, offset: Offset) -> Timestamp {
    let second = local - i64::from(offset.seconds());
    let nearest = if second.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_second(second).unwrap_or(nearest)
}
