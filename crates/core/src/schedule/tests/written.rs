//! Schedules the way people write them.

use crate::FieldError;
use crate::schedule::Schedule;
use five_spot_api::{ScheduleException, ScheduleSpec, ScheduleState, WeeklyWindow};

/// A spec in the making; every method adds what its name says.
#[derive(Clone, Debug)]
pub(super) struct Written(pub(super) ScheduleSpec);

pub(super) fn in_zone(timezone: &str) -> Written {
    Written(ScheduleSpec { timezone: timezone.to_owned(), ..ScheduleSpec::default() })
}

impl Written {
    pub(super) fn days(mut self, entry: &str) -> Self {
        self.0.days_of_week.get_or_insert_default().push(entry.to_owned());
        self
    }

    pub(super) fn hours(mut self, entry: &str) -> Self {
        self.0.hours_of_day.get_or_insert_default().push(entry.to_owned());
        self
    }

    pub(super) fn window(mut self, from: &str, to: &str) -> Self {
        self.0.windows.push(WeeklyWindow { from: from.to_owned(), to: to.to_owned() });
        self
    }

    pub(super) fn exception(mut self, exception: ScheduleException) -> Self {
        self.0.exceptions.push(exception);
        self
    }

    /// A day, or days as `from..to`.
    pub(super) fn closed(self, days: &str) -> Self {
        self.exception(exception(ScheduleState::Closed, days))
    }

    pub(super) fn closed_hours(self, days: &str, hours: &str) -> Self {
        let hours = Some(vec![hours.to_owned()]);
        self.exception(ScheduleException { hours, ..exception(ScheduleState::Closed, days) })
    }

    pub(super) fn open(self, days: &str) -> Self {
        self.exception(exception(ScheduleState::Open, days))
    }

    pub(super) fn open_hours(self, days: &str, hours: &str) -> Self {
        let hours = Some(vec![hours.to_owned()]);
        self.exception(ScheduleException { hours, ..exception(ScheduleState::Open, days) })
    }

    pub(super) fn parse(&self) -> Result<Schedule, Vec<FieldError>> {
        Schedule::parse(&self.0, "spec.schedule")
    }

    #[track_caller]
    pub(super) fn schedule(&self) -> Schedule {
        self.parse().unwrap_or_else(|problems| panic!("{problems:?}"))
    }
}

/// An exception for a day, or for days as `from..to`.
pub(super) fn exception(state: ScheduleState, days: &str) -> ScheduleException {
    let (date, from, to) = match days.split_once("..") {
        Some((from, to)) => (None, Some(from.to_owned()), Some(to.to_owned())),
        None => (Some(days.to_owned()), None, None),
    };
    ScheduleException { date, from, to, state, hours: None, reason: None }
}
