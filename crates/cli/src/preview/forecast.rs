//! The times at which a machine is wanted, as computed by `core`, prepared for display.

use crate::preview::clock_change::{ClockChange, LocalSpan};
use crate::preview::clock_note::{ClockNote, Windows};
use crate::range::Range;
use crate::validity::Checked;
use crate::wording;
use five_spot_api::ScheduleSpec;
use five_spot_core::schedule::{Cause, Causes, Period, Plan, PlanState, Schedule, Span};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// The preview of one object.
#[derive(Clone, Debug)]
pub struct Forecast {
    pub name: String,
    pub namespace: String,
    /// The zone as written in the object.
    pub timezone: String,
    pub zone: TimeZone,
    pub range: Range,
    /// The reason why there is no window, if it is not the schedule.
    pub note: Option<String>,
    /// Sorted by time; no two windows touch.
    pub windows: Vec<Window>,
    pub clock_notes: Vec<ClockNote>,
}

/// A period in which a machine is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The causes of the whole window.
    pub causes: Causes,
    /// Consecutive pieces with one set of causes each; together they cover the window.
    pub pieces: Vec<Piece>,
    /// The window began before the range; `start` is the start of the range.
    pub began_before: bool,
    /// The window continues after the range; `end` is the end of the range.
    pub goes_on: bool,
}

/// A part of a window with the same causes throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: Timestamp,
    pub end: Timestamp,
    pub causes: Causes,
}

impl Forecast {
    /// Computes the forecast of an object for the range.
    pub fn new(object: &Checked, range: Range) -> Self {
        let plan = object.spec.plan();
        let zone = plan.schedule().timezone().clone();
        let windows = if object.spec.handling.kill_switch { Vec::new() } else { windows(plan, range) };
        let written = written_times(&object.schedule, &zone, range);
        let for_notes = Windows { wanted: &windows, written: &written };
        let clock_notes = ClockChange::all(&zone, &range)
            .iter()
            .map(|change| ClockNote::new(&zone, change, for_notes))
            .collect();
        Self {
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            timezone: plan.schedule().timezone_name().to_owned(),
            note: note(object, &windows),
            zone,
            range,
            windows,
            clock_notes,
        }
    }

    /// The total time and the number of pieces.
    pub fn summary(&self) -> String {
        let up = self.windows.iter().map(|window| window.end.duration_since(window.start)).sum();
        match self.windows.len() {
            0 => "never up".to_owned(),
            windows => format!("up {} in {}", wording::duration(up), wording::count(windows, "window")),
        }
    }
}

/// The causes of a window, most important first.
pub fn by_prominence(causes: Causes) -> impl Iterator<Item = Cause> {
    const ORDER: [Cause; 5] =
        [Cause::Override, Cause::Exception, Cause::Window, Cause::Schedule, Cause::LeadTime];
    ORDER.into_iter().filter(move |cause| causes.contains(*cause))
}

fn windows(plan: &Plan, range: Range) -> Vec<Window> {
    let began_before = plan.at(range.from - SignedDuration::from_secs(1)).wanted();
    let goes_on = plan.at(range.to).wanted();
    plan.periods(range.from, range.to)
        .into_iter()
        .map(|Period { start, end, causes }| Window {
            start,
            end,
            causes,
            pieces: pieces(plan, start, end),
            began_before: began_before && start == range.from,
            goes_on: goes_on && end == range.to,
        })
        .collect()
}

/// Splits a wanted period at each change of its causes.
fn pieces(plan: &Plan, start: Timestamp, end: Timestamp) -> Vec<Piece> {
    let mut pieces = Pieces(Vec::new());
    let mut at = start;
    while at < end {
        let until = plan.next_boundary(at).map_or(end, |boundary| boundary.min(end));
        match plan.at(at) {
            PlanState::OverrideUp => pieces.add(at, until, Cause::Override.into()),
            PlanState::LeadTime => pieces.add(at, until, Cause::LeadTime.into()),
            PlanState::InWindow => {
                for Span { start, end, causes } in plan.schedule().spans(at, until) {
                    pieces.add(start, end, causes);
                }
            }
            // Outside a wanted period.
            PlanState::OverrideDown | PlanState::Disabled | PlanState::OutsideWindow => {}
        }
        at = until;
    }
    pieces.0
}

/// Merges adjacent pieces with equal causes.
struct Pieces(Vec<Piece>);

impl Pieces {
    fn add(&mut self, start: Timestamp, end: Timestamp, causes: Causes) {
        match self.0.last_mut() {
            Some(last) if last.end == start && last.causes == causes => last.end = end,
            Some(_) | None => self.0.push(Piece { start, end, causes }),
        }
    }
}

/// The local times of the windows without clock changes: those of the same schedule in UTC.
fn written_times(schedule: &ScheduleSpec, zone: &TimeZone, range: Range) -> Vec<LocalSpan> {
    let in_utc = ScheduleSpec { timezone: "UTC".to_owned(), ..schedule.clone() };
    let Ok(in_utc) = Schedule::parse(&in_utc, "spec.schedule") else {
        // The schedule was valid in another zone, and no other field depends on the zone.
        return Vec::new();
    };
    let local = |instant: Timestamp| Offset::UTC.to_timestamp(zone.to_datetime(instant)).unwrap_or(instant);
    // One more day on either side: a clock change at the edge of the range can move a boundary from beyond
    // it.
    let day = SignedDuration::from_hours(24);
    Plan::new(in_utc, SignedDuration::ZERO, true, None)
        .periods(local(range.from) - day, local(range.to) + day)
        .into_iter()
        .map(|period| (Offset::UTC.to_datetime(period.start), Offset::UTC.to_datetime(period.end)))
        .collect()
}

fn note(object: &Checked, windows: &[Window]) -> Option<String> {
    if object.spec.handling.kill_switch {
        return Some("the kill switch is on (spec.killSwitch: true): no machine is wanted".to_owned());
    }
    if object.spec.handling.enabled {
        return None;
    }
    let but = if windows.is_empty() { "" } else { " but for the override" };
    Some(format!("disabled (spec.schedule.enabled: false): no machine is wanted{but}"))
}
