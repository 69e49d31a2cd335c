//! Parsing of schedules.

use super::clock::{LocalDay, MINUTES_PER_WEEK, WallClock};
use super::compiled::Schedule;
use super::exception::Layer;
use super::grammar::{Hours, Weekdays, parse_date, parse_minute_of_week};
use super::pattern::Window;
use super::week::days_by_hours;
use super::zone;
use crate::FieldError;
use five_spot_api::{ScheduleException, ScheduleSpec, WeeklyWindow, rules};
use std::cmp::Ordering;
use std::ops::{BitOr, RangeInclusive};

// The maximum numbers of entries, as in the CRD.
const MAX_DAYS: usize = 16;
const MAX_HOURS: usize = 24;
const MAX_WINDOWS: usize = 64;
const MAX_EXCEPTIONS: usize = 400;
const MAX_EXCEPTION_HOURS: usize = 8;

impl Schedule {
    /// Parses the schedule at `path`, or returns all errors in it. The fields `enabled` and `leadTime` are not part of it; they
    /// belong to a [`Plan`](super::Plan).
    pub fn parse(spec: &ScheduleSpec, path: &str) -> Result<Self, Vec<FieldError>> {
        let mut problems = Problems::default();
        let timezone = problems.keep(zone::parse(&spec.timezone, &format!("{path}.timezone")));
        let schedule = weekly_hours(spec, path, &mut problems);
        let windows = list(&spec.windows, &format!("{path}.windows"), 0..=MAX_WINDOWS, &mut problems, window);
        let exceptions = list(
            &spec.exceptions,
            &format!("{path}.exceptions"),
            0..=MAX_EXCEPTIONS,
            &mut problems,
            Exception::parse,
        );
        if spec.days_of_week.is_none() && spec.hours_of_day.is_none() && spec.windows.is_empty() {
            problems.push(path, rules::SCHEDULE_PRESENT.message);
        }
        match timezone {
            Some(timezone) if problems.0.is_empty() => {
                let clock = WallClock::new(timezone);
                let layers = exceptions.iter().flat_map(|exception| exception.layers(&clock)).collect();
                Ok(Self::compile(spec.timezone.clone(), clock, schedule, windows, layers))
            }
            Some(_) | None => Err(problems.0),
        }
    }
}

/// The errors, in the order in which they were found.
#[derive(Default)]
struct Problems(Vec<FieldError>);

impl Problems {
    fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError::new(field, message));
    }

    /// Returns the parsed value, or records the error and returns `None`.
    fn keep<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem)).ok()
    }
}

/// Parses a list. Each entry may have errors of its own.
fn list<Entry, T>(
    entries: &[Entry],
    path: &str,
    allowed: RangeInclusive<usize>,
    problems: &mut Problems,
    read: impl Fn(&Entry, &str, &mut Problems) -> Option<T>,
) -> Vec<T> {
    let (least, most) = allowed.clone().into_inner();
    if !allowed.contains(&entries.len()) {
        let found = entries.len();
        problems.push(path, format!("found {found} entries; must have {least} to {most}"));
        // The errors of a huge list are not reported one by one.
        return Vec::new();
    }
    let entries = entries.iter().enumerate();
    entries.filter_map(|(index, entry)| read(entry, &format!("{path}[{index}]"), problems)).collect()
}

/// Returns the union of a list of days or hours; `None` if the list is absent.
fn union<T: BitOr<Output = T> + Default>(
    entries: Option<&Vec<String>>,
    path: &str,
    most: usize,
    problems: &mut Problems,
    read: fn(&str, &str) -> Result<T, FieldError>,
) -> Option<T> {
    let read = |entry: &String, path: &str, problems: &mut Problems| problems.keep(read(entry, path));
    let sets = list(entries?, path, 1..=most, problems, read);
    Some(sets.into_iter().fold(T::default(), T::bitor))
}

/// Returns the windows of `daysOfWeek` and `hoursOfDay`. If one is absent, all of its values count; if both are, there are none.
fn weekly_hours(spec: &ScheduleSpec, path: &str, problems: &mut Problems) -> Vec<Window> {
    let days = spec.days_of_week.as_ref();
    let days = union(days, &format!("{path}.daysOfWeek"), MAX_DAYS, problems, Weekdays::parse);
    let hours = spec.hours_of_day.as_ref();
    let hours = union(hours, &format!("{path}.hoursOfDay"), MAX_HOURS, problems, Hours::parse);
    if days.is_none() && hours.is_none() {
        return Vec::new();
    }
    days_by_hours(days.unwrap_or(Weekdays::ALL), hours.unwrap_or(Hours::ALL_DAY))
}

fn window(window: &WeeklyWindow, path: &str, problems: &mut Problems) -> Option<Window> {
    let from = problems.keep(parse_minute_of_week(&window.from, &format!("{path}.from")));
    let to = problems.keep(parse_minute_of_week(&window.to, &format!("{path}.to")));
    let (from, to) = (from?, to?);
    match to.cmp(&from) {
        Ordering::Greater => Some(Window { from, to }),
        Ordering::Less => Some(Window { from, to: to + MINUTES_PER_WEEK }),
        Ordering::Equal => {
            let message =
                format!("found {:?} for both from and to; {}", window.to, rules::WINDOW_NOT_EMPTY.message);
            problems.push(format!("{path}.to"), message);
            None
        }
    }
}

/// A valid exception.
struct Exception {
    state: five_spot_api::ScheduleState,
    days: RangeInclusive<LocalDay>,
    hours: Hours,
}

impl Exception {
    fn parse(exception: &ScheduleException, path: &str, problems: &mut Problems) -> Option<Self> {
        let hours_path = format!("{path}.hours");
        let hours = union(exception.hours.as_ref(), &hours_path, MAX_EXCEPTION_HOURS, problems, Hours::parse);
        let days = days(exception, path, problems)?;
        Some(Self { state: exception.state, days, hours: hours.unwrap_or(Hours::ALL_DAY) })
    }

    fn layers(&self, clock: &WallClock) -> Vec<Layer> {
        Layer::of_exception(self.state, &self.days, self.hours, clock)
    }
}

fn days(
    exception: &ScheduleException,
    path: &str,
    problems: &mut Problems,
) -> Option<RangeInclusive<LocalDay>> {
    let mut read = |text: &Option<String>, name: &str| {
        let text = text.as_ref()?;
        Some(problems.keep(parse_date(text, &format!("{path}.{name}"))))
    };
    let (date, from, to) =
        (read(&exception.date, "date"), read(&exception.from, "from"), read(&exception.to, "to"));
    match (date, from, to) {
        (Some(date), None, None) => date.map(|date| date..=date),
        (None, Some(from), Some(to)) => in_order(from?, to?, path, problems),
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (None, _, None) | (None, None, _) => {
            problems.push(path, rules::EXCEPTION_DAYS.message);
            None
        }
    }
}

fn in_order(
    from: LocalDay,
    to: LocalDay,
    path: &str,
    problems: &mut Problems,
) -> Option<RangeInclusive<LocalDay>> {
    if to < from {
        problems.push(format!("{path}.to"), rules::EXCEPTION_ORDER.message);
        return None;
    }
    Some(from..=to)
}
