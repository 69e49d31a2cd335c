//! The clock on the wall of a zone: which instants a local time means.
//!
//! A local clock skips time when it is put forward and shows it twice when it is put back. The two
//! questions below have one answer all the same, whatever the size of the step.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

pub(super) const MINUTES_PER_HOUR: i64 = 60;
pub(super) const MINUTES_PER_DAY: i64 = 24 * MINUTES_PER_HOUR;
pub(super) const MINUTES_PER_WEEK: i64 = 7 * MINUTES_PER_DAY;

const SECONDS_PER_MINUTE: i64 = 60;

/// A minute on a local clock, counted from 1970-01-01T00:00 on that clock as if it never skipped or
/// repeated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalMinute(pub(super) i64);

/// A calendar day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalDay(pub(super) i64);

impl LocalDay {
    /// A Monday: weeks are counted from here.
    pub(super) const SOME_MONDAY: Self = Self(4);

    pub(super) fn of(date: Date) -> Self {
        let epoch = Date::constant(1970, 1, 1);
        Self(date.duration_since(epoch).as_hours() / 24)
    }

    /// Days since Monday.
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

    /// The minute that the clock shows.
    pub(super) fn reads(&self, t: Timestamp) -> LocalMinute {
        // Timestamps before 1970 with a fraction round towards zero; a clock always rounds down.
        let second = t.as_second() - i64::from(t.subsec_nanosecond() < 0);
        let local = second + i64::from(self.timezone.to_offset(t).seconds());
        LocalMinute(local.div_euclid(SECONDS_PER_MINUTE))
    }

    /// The first instant at which the clock shows this minute or a later one.
    pub(super) fn first_at(&self, minute: LocalMinute) -> Timestamp {
        let local = minute.0 * SECONDS_PER_MINUTE;
        match self.offset_at(local) {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                instant(local, offset)
            }
            AmbiguousOffset::Gap { before, after } => self.transition_over(local, before, after),
        }
    }

    /// The end of the last instant at which the clock shows an earlier minute.
    ///
    /// What counts is the second before the minute. Where the clock goes back to 01:00, 00:59:59 is
    /// shown once, so that the first 01:00 is meant; 01:29:59 is shown twice, so for 01:30 it is the second.
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

    /// The instant at which the clock jumps over a local second that it never shows.
    fn transition_over(&self, local: i64, before: Offset, after: Offset) -> Timestamp {
        let (earliest, latest) = (instant(local, after), instant(local, before));
        self.timezone
            .following(earliest)
            .take_while(|transition| transition.timestamp() <= latest)
            .find(|transition| transition.offset() == after)
            .map_or(latest, |transition| transition.timestamp())
    }
}

/// A local second as a date and a time; near the ends of the calendar the nearest that exists.
fn civil(local: i64) -> DateTime {
    Offset::UTC.to_datetime(instant(local, Offset::UTC))
}

/// The instant of a local second under an offset; beyond the ends of time, the nearest of the two.
fn instant(local: i64, offset: Offset) -> Timestamp {
    let second = local - i64::from(offset.seconds());
    let nearest = if second.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_second(second).unwrap_or(nearest)
}
