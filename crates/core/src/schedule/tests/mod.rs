//! Tables and properties of the schedule as a whole.

mod dst;
mod periods;
mod plan;
mod properties;
mod refusals;
mod rules;
mod time_limits;
mod written;

use super::{Causes, Plan, Schedule};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use written::Written;

/// An instant from a text in RFC 3339.
fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The first instant of a local day.
fn midnight(date: &str, zone: &TimeZone) -> Timestamp {
    let date: Date = date.parse().unwrap();
    zone.to_ambiguous_timestamp(date.to_datetime(jiff::civil::Time::midnight())).compatible().unwrap()
}

/// A half-open interval the way the tables write it: local times with their offsets, and the causes.
fn shown(start: Timestamp, end: Timestamp, causes: Causes, zone: &TimeZone) -> String {
    let local = |t: Timestamp| t.to_zoned(zone.clone()).strftime("%a %F %H:%M%:z").to_string();
    format!("{} .. {} {}", local(start), local(end), causes)
}

fn shown_spans(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<String> {
    let zone = schedule.timezone();
    schedule.spans(from, to).iter().map(|span| shown(span.start, span.end, span.causes, zone)).collect()
}

fn shown_periods(plan: &Plan, from: Timestamp, to: Timestamp) -> Vec<String> {
    let zone = plan.schedule().timezone();
    plan.periods(from, to).iter().map(|period| shown(period.start, period.end, period.causes, zone)).collect()
}

/// The open spans of a schedule between two local days, the second not included.
#[track_caller]
fn check(written: &Written, from: &str, to: &str, expected: &[&str]) {
    let schedule = written.schedule();
    let zone = schedule.timezone();
    let spans = shown_spans(&schedule, midnight(from, zone), midnight(to, zone));
    assert_eq!(spans, expected);
}
