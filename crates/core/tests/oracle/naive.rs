//! The oracle: the rules as they stand, applied to a row of minutes.

use crate::calendar::{day, weekday, weekdays};
use crate::cases::Case;
use five_spot_api::{OverrideState, ScheduleSpec, ScheduleState};
use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAY: i64 = 24 * 60;
const WEEK: i64 = 7 * DAY;

/// The readings of the local clock at consecutive minutes.
pub struct Samples {
    first: i64,
    /// The local minute that is shown, counted from 1970-01-01T00:00 local time.
    pub local: Vec<i64>,
    /// The latest local minute that has been shown so far.
    latest_so_far: Vec<i64>,
    /// The earliest local minute that will be shown from here on.
    earliest_from_here: Vec<i64>,
}

impl Samples {
    pub fn take(zone: &TimeZone, first: i64, count: usize) -> Self {
        let shown = |index: usize| {
            let minute = first + i64::try_from(index).unwrap();
            let offset = zone.to_offset(Timestamp::from_second(minute * 60).unwrap());
            minute + i64::from(offset.seconds() / 60)
        };
        let local: Vec<i64> = (0..count).map(shown).collect();
        let mut latest_so_far = local.clone();
        for index in 1..count {
            latest_so_far[index] = latest_so_far[index].max(latest_so_far[index - 1]);
        }
        let mut earliest_from_here = local.clone();
        for index in (1..count).rev() {
            earliest_from_here[index - 1] = earliest_from_here[index - 1].min(earliest_from_here[index]);
        }
        Self { first, local, latest_so_far, earliest_from_here }
    }

    pub fn instant(&self, index: usize) -> Timestamp {
        Timestamp::from_second((self.first + i64::try_from(index).unwrap()) * 60).unwrap()
    }

    /// From the first minute at which the clock shows `from` or later to the last at which it shows less than `to`.
    fn paint(&self, minutes: &mut [bool], from: i64, to: i64, value: bool) {
        let start = self.latest_so_far.partition_point(|&latest| latest < from);
        let end = self.earliest_from_here.partition_point(|&earliest| earliest < to);
        if start < end {
            minutes[start..end].fill(value);
        }
    }

    /// Every local day of which a window might show, from a week before the first minute.
    fn days(&self) -> impl Iterator<Item = i64> + use<> {
        let (first, last) = (self.earliest_from_here[0], self.latest_so_far[self.local.len() - 1]);
        first.div_euclid(DAY) - 8..=last.div_euclid(DAY) + 1
    }
}

/// Returns for each minute whether the schedule is open.
pub fn open(schedule: &ScheduleSpec, samples: &Samples) -> Vec<bool> {
    let mut open = vec![false; samples.local.len()];
    for day in samples.days() {
        if is_day_of(schedule, day) {
            for (from, to) in hours(schedule.hours_of_day.as_ref()) {
                samples.paint(&mut open, day * DAY + from, day * DAY + to, true);
            }
        }
        for window in &schedule.windows {
            let (from, to) = (split(&window.from), split(&window.to));
            if weekday(day) == from.0 {
                let days = i64::try_from(weekdays(from.0, to.0).len()).unwrap() - 1;
                let length = days * DAY + to.1 - from.1;
                let length = if length > 0 { length } else { length + WEEK };
                let from = day * DAY + from.1;
                samples.paint(&mut open, from, from + length, true);
            }
        }
    }
    for exception in &schedule.exceptions {
        let (first, last) = match &exception.date {
            Some(date) => (day(date), day(date)),
            None => (day(exception.from.as_ref().unwrap()), day(exception.to.as_ref().unwrap())),
        };
        for day in first..=last {
            for (from, to) in hours(exception.hours.as_ref()) {
                let state = exception.state == ScheduleState::Open;
                samples.paint(&mut open, day * DAY + from, day * DAY + to, state);
            }
        }
    }
    open
}

/// Returns for each minute whether a machine is wanted. The last minutes, whose lead time is not sampled, may be wrong.
pub fn wanted(open: &[bool], case: &Case, samples: &Samples) -> Vec<bool> {
    let lead = usize::try_from(case.lead_time.as_mins()).unwrap();
    let opens = next(open, |&open| open);
    let wanted_at = |index: usize| match case.overriding {
        Some(overriding) if samples.instant(index) < overriding.until => {
            overriding.state == OverrideState::Up
        }
        Some(_) | None => case.schedule.enabled && opens[index].is_some_and(|opens| opens <= index + lead),
    };
    (0..open.len()).map(wanted_at).collect()
}

/// For each minute the first one from it on at which it is open where it is closed, or the other way round.
pub fn next_change(open: &[bool]) -> Vec<Option<usize>> {
    let (opens, closes) = (next(open, |&open| open), next(open, |&open| !open));
    (0..open.len()).map(|index| if open[index] { closes[index] } else { opens[index] }).collect()
}

/// For each minute the first one from it on of which something is true.
fn next(minutes: &[bool], is_true: impl Fn(&bool) -> bool) -> Vec<Option<usize>> {
    let mut found = vec![None; minutes.len()];
    let mut next = None;
    for index in (0..minutes.len()).rev() {
        next = if is_true(&minutes[index]) { Some(index) } else { next };
        found[index] = next;
    }
    found
}

fn is_day_of(schedule: &ScheduleSpec, day: i64) -> bool {
    match &schedule.days_of_week {
        Some(entries) => parts(entries).any(|(first, last)| weekdays(first, last).contains(&weekday(day))),
        None => schedule.hours_of_day.is_some(),
    }
}

/// Windows in minutes of the day; those over midnight end on the next.
fn hours(entries: Option<&Vec<String>>) -> Vec<(i64, i64)> {
    let Some(entries) = entries else {
        return vec![(0, DAY)];
    };
    let window = |(first, last): (&str, &str)| {
        let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
        let last = if last < first { last + 24 } else { last };
        (first * 60, (last + 1) * 60)
    };
    parts(entries).map(window).collect()
}

/// The ranges and single values of a list of comma combinations, all as ranges.
fn parts(entries: &[String]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().flat_map(|entry| entry.split(',')).map(|part| part.split_once('-').unwrap_or((part, part)))
}

/// A weekday and a minute of the day.
fn split(text: &str) -> (&str, i64) {
    let (day, time) = text.split_once(' ').unwrap();
    let (hour, minute) = time.split_once(':').unwrap();
    (day, hour.parse::<i64>().unwrap() * 60 + minute.parse::<i64>().unwrap())
}
