//! Repeating sequences of local windows.

use super::clock::{LocalDay, LocalMinute, MINUTES_PER_DAY, MINUTES_PER_WEEK, WallClock};
use super::grammar::HourMask;
use jiff::Timestamp;
use std::ops::{Range, RangeInclusive};

/// A half-open window of local time, in minutes from the start of its cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Window {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Window {
    /// Returns true if another window lies inside this one.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Returns true if another window overlaps this one.
    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// A half-open interval in which an answer is the same. [`Timestamp::MIN`] and [`Timestamp::MAX`] stand for an interval
/// without a start or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Interval {
    pub(super) const EVER: Self = Self { since: Timestamp::MIN, until: Timestamp::MAX };

    /// Returns the intersection of two intervals around the same instant.
    #[must_use]
    pub(super) fn within(self, other: Self) -> Self {
        Self { since: self.since.max(other.since), until: self.until.min(other.until) }
    }
}

/// The membership of an instant in a pattern, and an interval around it in which it is certainly the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) inside: bool,
    pub(super) interval: Interval,
}

impl Membership {
    pub(super) const fn outside(since: Timestamp, until: Timestamp) -> Self {
        Self { inside: false, interval: Interval { since, until } }
    }

    const fn inside(since: Timestamp, until: Timestamp) -> Self {
        Self { inside: true, interval: Interval { since, until } }
    }
}

/// Windows of local time that repeat in every cycle. They are numbered in order through all cycles, and both their starts and
/// their ends are ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    /// The start of cycle 0.
    origin: LocalMinute,
    /// The length of a cycle, in minutes.
    cycle: i64,
    /// The windows of one cycle, in order.
    windows: Vec<Window>,
    /// The numbers of the windows that exist.
    numbers: Range<i64>,
}

impl Pattern {
    /// Returns the pattern of windows from [`merged_in_week`] that repeat every week.
    pub(super) fn weekly(windows: Vec<Window>) -> Self {
        let numbers = if windows.is_empty() { 0..0 } else { i64::MIN..i64::MAX };
        Self { origin: LocalDay::SOME_MONDAY.midnight(), cycle: MINUTES_PER_WEEK, windows, numbers }
    }

    /// Returns the pattern of the same hours on each day of a range.
    pub(super) fn daily(days: RangeInclusive<LocalDay>, hours: HourMask) -> Self {
        let (first, last) = days.into_inner();
        let windows = hours.windows();
        let count = i64::try_from(windows.len()).unwrap_or_default();
        let numbers = 0..count * (last.0 - first.0 + 1);
        Self { origin: first.midnight(), cycle: MINUTES_PER_DAY, windows, numbers }
    }

    /// Returns the membership of an instant. Its interval need not be the longest possible one.
    pub(super) fn around(&self, clock: &WallClock, t: Timestamp) -> Membership {
        let (number, since) = self.first_ending_after(clock, t);
        let Some(window) = self.window(number) else {
            return Membership::outside(since, Timestamp::MAX);
        };
        let start = clock.first_at(window.from);
        if start > t {
            Membership::outside(since, start)
        } else {
            Membership::inside(start, clock.last_before(window.to))
        }
    }

    /// Returns the interval from the start of the first window to the end of the last one.
    pub(super) fn extent(&self, clock: &WallClock) -> Interval {
        let (first, last) =
            (self.window(self.numbers.start), self.window(self.numbers.end.saturating_sub(1)));
        match (first, last) {
            (Some(first), Some(last)) => {
                Interval { since: clock.first_at(first.from), until: clock.last_before(last.to) }
            }
            (None, _) | (_, None) => Interval { since: Timestamp::MAX, until: Timestamp::MAX },
        }
    }

    /// Returns the number of the first window that ends after `t`, and the end of the window before it.
    fn first_ending_after(&self, clock: &WallClock, t: Timestamp) -> (i64, Timestamp) {
        // A window is not over before the clock shows its end. While the clock repeats an hour, windows that seem to be over
        // may continue, so the search goes backwards from there.
        let mut number =
            self.first_ending_after_minute(clock.reads(t)).clamp(self.numbers.start, self.numbers.end);
        loop {
            let Some(previous) = self.window(number - 1) else {
                return (number, Timestamp::MIN);
            };
            let end = clock.last_before(previous.to);
            if end <= t {
                return (number, end);
            }
            number -= 1;
        }
    }

    fn first_ending_after_minute(&self, minute: LocalMinute) -> i64 {
        let since_origin = minute.0 - self.origin.0;
        let (cycle, minute) = (since_origin.div_euclid(self.cycle), since_origin.rem_euclid(self.cycle));
        let ended = self.windows.partition_point(|window| window.to <= minute);
        cycle * self.count() + i64::try_from(ended).unwrap_or_default()
    }

    fn window(&self, number: i64) -> Option<LocalWindow> {
        if !self.numbers.contains(&number) {
            return None;
        }
        let (cycle, index) = (number.div_euclid(self.count()), number.rem_euclid(self.count()));
        let window = self.windows.get(usize::try_from(index).ok()?)?;
        let start = self.origin.0 + cycle * self.cycle;
        Some(LocalWindow { from: LocalMinute(start + window.from), to: LocalMinute(start + window.to) })
    }

    fn count(&self) -> i64 {
        i64::try_from(self.windows.len()).unwrap_or(i64::MAX)
    }
}

/// A window of a pattern in a particular cycle.
struct LocalWindow {
    from: LocalMinute,
    to: LocalMinute,
}

/// Returns the union of windows in minutes since Monday 00:00, in order. A window across the end of the week is split there,
/// which makes no difference because there is no gap between adjacent windows.
pub(super) fn merged_in_week(windows: Vec<Window>) -> Vec<Window> {
    merged(windows.into_iter().flat_map(split_at_week_end).collect())
}

fn split_at_week_end(window: Window) -> impl Iterator<Item = Window> {
    let over = (window.to - MINUTES_PER_WEEK).max(0);
    [Window { from: 0, to: over }, Window { from: window.from, to: window.to - over }]
        .into_iter()
        .filter(|part| part.from < part.to)
}

fn merged(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_unstable();
    let mut merged: Vec<Window> = Vec::with_capacity(windows.len());
    for window in windows {
        match merged.last_mut() {
            Some(last) if window.from <= last.to => last.to = last.to.max(window.to),
            Some(_) | None => merged.push(window),
        }
    }
    merged
}
