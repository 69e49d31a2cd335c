//! The schedules that the oracle is asked about. Some are made for the transition at hand: their edges lie
//! just before it, in it and just after it.

use crate::calendar::{date, weekday};
use crate::naive::Samples;
use five_spot_api::{OverrideState, ScheduleException, ScheduleSpec, ScheduleState, WeeklyWindow};
use five_spot_core::schedule::Override;
use jiff::{SignedDuration, Timestamp};

const DAY: i64 = 24 * 60;

/// A schedule, and what goes with it by the clock.
#[derive(Clone, Debug)]
pub struct Case {
    pub schedule: ScheduleSpec,
    pub lead_time: SignedDuration,
    pub overriding: Option<Override>,
}

impl Case {
    fn days(mut self, entry: &str) -> Self {
        self.schedule.days_of_week.get_or_insert_default().push(entry.to_owned());
        self
    }

    fn hours(mut self, entry: &str) -> Self {
        self.schedule.hours_of_day.get_or_insert_default().push(entry.to_owned());
        self
    }

    /// A weekly window between two local minutes.
    fn window(mut self, from: i64, to: i64) -> Self {
        let text = |minute: i64| {
            let (day, minute) = (minute.div_euclid(DAY), minute.rem_euclid(DAY));
            format!("{} {:02}:{:02}", weekday(day), minute / 60, minute % 60)
        };
        self.schedule.windows.push(WeeklyWindow { from: text(from), to: text(to) });
        self
    }

    fn exception(mut self, state: ScheduleState, first: i64, last: i64, hours: Option<&str>) -> Self {
        let hours = hours.map(|entry| vec![entry.to_owned()]);
        let (first, last) = (date(first), date(last));
        let (date, from, to) =
            if first == last { (Some(first), None, None) } else { (None, Some(first), Some(last)) };
        self.schedule.exceptions.push(ScheduleException { date, from, to, state, hours, reason: None });
        self
    }

    fn open(self, day: i64, hours: Option<&str>) -> Self {
        self.exception(ScheduleState::Open, day, day, hours)
    }

    fn closed(self, day: i64, hours: Option<&str>) -> Self {
        self.exception(ScheduleState::Closed, day, day, hours)
    }

    fn lead(mut self, minutes: i64) -> Self {
        self.lead_time = SignedDuration::from_mins(minutes);
        self
    }

    fn overridden(mut self, state: OverrideState, until_minute: i64) -> Self {
        self.overriding = Some(Override { state, until: Timestamp::from_second(until_minute * 60).unwrap() });
        self
    }
}

/// The cases for a transition of a zone, or for any minute of one that has none.
pub fn around(zone: &str, samples: &Samples, transition: i64) -> Vec<Case> {
    let new = || {
        let schedule = ScheduleSpec { timezone: zone.to_owned(), enabled: true, ..ScheduleSpec::default() };
        Case { schedule, lead_time: SignedDuration::ZERO, overriding: None }
    };
    let middle = usize::try_from(crate::AROUND).unwrap();
    // What the clock shows when it is put forward or back, and what it shows then.
    let (before, after) = (samples.local[middle - 1] + 1, samples.local[middle]);
    let (earlier, later) = (before.min(after), before.max(after));
    let today = before.div_euclid(DAY);

    vec![
        new().days("mon-fri").hours("9-17"),
        new().days("fri-mon").hours("22-6"),
        new().hours("0,2,4,6,8,10,12,14,16,18,20,22"),
        new().hours("1,3,5,7,9,11,13,15,17,19,21,23").lead(20),
        // Windows that end, begin, and lie inside what is skipped or repeated.
        new()
            .window(earlier - 90, earlier - 20)
            .window(earlier - 10, earlier + 5)
            .window(later - 5, later + 20),
        new().window(earlier + 7, earlier + 11).window(later - 9, later - 4).window(later + 1, later + 2),
        // Windows whose ends are exactly those of what is skipped or repeated.
        new().window(earlier - 60, earlier).window(later, later + 60),
        new().window(earlier, later.max(earlier + 1)).lead(45),
        new()
            .days("sat-sun")
            .closed(today, None)
            .open(today + 1, Some("0-2"))
            .closed(today - 1, Some("22-6")),
        new()
            .days("mon-sun")
            .closed(today, Some("1-2"))
            .closed(today + 1, Some("0"))
            .open(today, Some("2,23-0")),
        new()
            .hours("0-23")
            .exception(ScheduleState::Closed, today - 1, today + 1, Some("23-0,2-3"))
            .open(today, None)
            .closed(today, Some("3-5")),
        new().hours("9-17").lead(15 * 60).overridden(OverrideState::Up, transition + 10),
        new().days("sat-sun").hours("1-3").lead(90).overridden(OverrideState::Down, transition - 30),
    ]
}
