//! Rows of local windows, and what they say about an instant.

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
    /// Whether another window lies inside this one.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether another window has a minute in common with this one.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// A stretch of time, half open, over which some answer stays the same. The first and the last instant
/// of all stand for a stretch without beginning and without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Stretch {
    pub(super) const EVER: Self = Self { since: Timestamp::MIN, until: Timestamp::MAX };

    /// What two stretches around the same instant have in common.
    #[must_use]
    pub(super) fn within(self, other: Self) -> Self {
        Self { since: self.since.max(other.since), until: self.until.min(other.until) }
    }
}

/// Whether an instant is inside a pattern, and the stretch around it over which that holds at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) inside: bool,
    pub(super) stretch: Stretch,
}

impl Membership {
    pub(super) const fn outside(since: Timestamp, until: Timestamp) -> Self {
        Self { inside: false, stretch: Stretch { since, until } }
    }

    const fn inside(since: Timestamp, until: Timestamp) -> Self {
        Self { inside: true, stretch: Stretch { since, until } }
    }
}

/// Windows of local time that come again in every cycle. They are numbered in their order, through all
/// cycles; neither their starts nor their ends ever go back from one to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    /// Where cycle 0 starts.
    origin: LocalMinute,
    /// The length of a cycle, in minutes.
    cycle: i64,
    /// The windows of one cycle, in order.
    windows: Vec<Window>,
    /// The numbers of the windows that exist.
    numbers: Range<i64>,
}

impl Pattern {
    /// Windows of [`united_in_the_week`] that come again every week for ever.
    pub(super) fn weekly(windows: Vec<Window>) -> Self {
        let numbers = if windows.is_empty() { 0..0 } else { i64::MIN..i64::MAX };
        Self { origin: LocalDay::SOME_MONDAY.midnight(), cycle: MINUTES_PER_WEEK, windows, numbers }
    }

    /// The same hours on each of some days.
    pub(super) fn daily(days: RangeInclusive<LocalDay>, hours: HourMask) -> Self {
        let (first, last) = days.into_inner();
        let windows = hours.windows();
        let count = i64::try_from(windows.len()).unwrap_or_default();
        let numbers = 0..count * (last.0 - first.0 + 1);
        Self { origin: first.midnight(), cycle: MINUTES_PER_DAY, windows, numbers }
    }

    /// What holds at an instant. The stretch need not be the longest: the next one may say the same.
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

    /// From the first instant of the first window to the last of the last.
    pub(super) fn extent(&self, clock: &WallClock) -> Stretch {
        let (first, last) =
            (self.window(self.numbers.start), self.window(self.numbers.end.saturating_sub(1)));
        match (first, last) {
            (Some(first), Some(last)) => {
                Stretch { since: clock.first_at(first.from), until: clock.last_before(last.to) }
            }
            (None, _) | (_, None) => Stretch { since: Timestamp::MAX, until: Timestamp::MAX },
        }
    }

    /// The first window that ends after `t`, by its number, and the end of the one before it.
    fn first_ending_after(&self, clock: &WallClock, t: Timestamp) -> (i64, Timestamp) {
        // A window whose end the clock does not show yet is not over. While the clock repeats itself, windows
        // that it seems to have passed may come back, so the search goes on backwards from there.
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

/// One of the windows of a pattern, in its place in time.
struct LocalWindow {
    from: LocalMinute,
    to: LocalMinute,
}

/// The union of windows in minutes since Monday 00:00, in order. Windows over the end of the week are cut there,
/// which makes no difference: where two windows touch there is no hole between them.
pub(super) fn united_in_the_week(windows: Vec<Window>) -> Vec<Window> {
    united(windows.into_iter().flat_map(split_at_the_end_of_the_week).collect())
}

fn split_at_the_end_of_the_week(window: Window) -> impl Iterator<Item = Window> {
    let over = (window.to - MINUTES_PER_WEEK).max(0);
    [Window { from: 0, to: over }, Window { from: window.from, to: window.to - over }]
        .into_iter()
        .filter(|part| part.from < part.to)
}

fn united(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_unstable();
    let mut united: Vec<Window> = Vec::with_capacity(windows.len());
    for window in windows {
        match united.last_mut() {
            Some(last) if window.from <= last.to => last.to = last.to.max(window.to),
            Some(_) | None => united.push(window),
        }
    }
    united
}
