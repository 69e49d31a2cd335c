//! The weekly pattern: days and hours, and windows to the minute.

use super::cause::{Cause, Causes};
use super::clock::{MINUTES_PER_DAY, MINUTES_PER_HOUR, WallClock};
use super::grammar::{HourMask, Hours, Weekdays};
use super::pattern::{Interval, Pattern, Window, merged_in_week};
use jiff::Timestamp;

/// The two patterns of a week. They are separate because a period lists its causes.
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

    /// Returns the causes that make the week open at an instant, and an interval around it in which they are the same.
    pub(super) fn around(&self, clock: &WallClock, t: Timestamp) -> (Causes, Interval) {
        let (schedule, windows) = (self.schedule.around(clock, t), self.windows.around(clock, t));
        let causes = [(schedule, Cause::Schedule), (windows, Cause::Window)];
        let causes =
            causes.into_iter().filter(|(membership, _)| membership.inside).map(|(_, cause)| cause).collect();
        (causes, schedule.interval.within(windows.interval))
    }
}

fn pattern(windows: Vec<Window>) -> Pattern {
    Pattern::weekly(merged_in_week(windows))
}

/// Returns the windows of `hours` on each of `days`. Hours after midnight belong to the day on which their range starts.
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

/// The hours of a weekday that are completely open, and those that are completely closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WholeHours {
    pub(super) open: HourMask,
    pub(super) closed: HourMask,
}

impl WholeHours {
    /// Returns the whole hours of each weekday for the given windows.
    pub(super) fn of_week(windows: Vec<Window>) -> [Self; 7] {
        let windows = merged_in_week(windows);
        std::array::from_fn(|day| Self {
            open: HourMask::which(|hour| windows.iter().any(|window| window.covers(hour_of_week(day, hour)))),
            closed: HourMask::which(|hour| {
                !windows.iter().any(|window| window.overlaps(hour_of_week(day, hour)))
            }),
        })
    }
}

fn hour_of_week(day: usize, hour: i64) -> Window {
    let from = i64::try_from(day).unwrap_or_default() * MINUTES_PER_DAY + hour * MINUTES_PER_HOUR;
    Window { from, to: from + MINUTES_PER_HOUR }
}
