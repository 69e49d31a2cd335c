//! The weekly pattern: days and hours, and windows to the minute.

use super::cause::{Cause, Causes};
use super::clock::{MINUTES_PER_DAY, MINUTES_PER_HOUR, WallClock};
use super::grammar::{HourMask, Hours, Weekdays};
use super::pattern::{Pattern, Stretch, Window, united_in_the_week};
use jiff::Timestamp;

/// Two patterns that are open together. They are kept apart because a period tells what made it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Week {
    /// `daysOfWeek` and `hoursOfDay`.
    schedule: Pattern,
    /// `windows`.
    windows: Pattern,
}

impl Week {
    pub(super) fn new(schedule: Vec<Window>, windows: Vec<Window>) -> Self {
        Self { schedule: pattern(schedule), windows: pattern(windows) }
    }

    /// What makes it open at an instant, and a stretch around the instant over which nothing of it changes.
    pub(super) fn around(&self, clock: &WallClock, t: Timestamp) -> (Causes, Stretch) {
        let (schedule, windows) = (self.schedule.around(clock, t), self.windows.around(clock, t));
        let causes = [(schedule, Cause::Schedule), (windows, Cause::Window)];
        let causes =
            causes.into_iter().filter(|(membership, _)| membership.inside).map(|(_, cause)| cause).collect();
        (causes, schedule.stretch.within(windows.stretch))
    }
}

fn pattern(windows: Vec<Window>) -> Pattern {
    Pattern::weekly(united_in_the_week(windows))
}

/// The windows of `hours` on each of `days`. Hours after midnight belong to the day on which they begin.
pub(super) fn days_by_hours(days: Weekdays, hours: Hours) -> Vec<Window> {
    let of_day = |day: usize| {
        let next = (day + 1) % 7;
        [(day, hours.same_day), (next, hours.next_day)]
    };
    days.iter().flat_map(of_day).flat_map(|(day, mask)| on_weekday(day, mask)).collect()
}

fn on_weekday(day: usize, mask: HourMask) -> Vec<Window> {
    let midnight = i64::try_from(day).unwrap_or_default() * MINUTES_PER_DAY;
    let shift = |window: Window| Window { from: midnight + window.from, to: midnight + window.to };
    mask.windows().into_iter().map(shift).collect()
}

/// The hours of one weekday that are open from their first minute to their last, and those that are
/// closed all along. The rest are neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WholeHours {
    pub(super) open: HourMask,
    pub(super) closed: HourMask,
}

impl WholeHours {
    /// Those of each weekday, in a week of some windows.
    pub(super) fn of_week(windows: Vec<Window>) -> [Self; 7] {
        let windows = united_in_the_week(windows);
        std::array::from_fn(|day| Self {
            open: HourMask::which(|hour| windows.iter().any(|window| window.covers(hour_of_week(day, hour)))),
            closed: HourMask::which(|hour| {
                !windows.iter().any(|window| window.meets(hour_of_week(day, hour)))
            }),
        })
    }
}

fn hour_of_week(day: usize, hour: i64) -> Window {
    let from = i64::try_from(day).unwrap_or_default() * MINUTES_PER_DAY + hour * MINUTES_PER_HOUR;
    Window { from, to: from + MINUTES_PER_HOUR }
}
