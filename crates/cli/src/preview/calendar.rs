//! A range of instants arranged by local days, as clocks in the zone show them. A skipped hour is a gap in
//! its day, and a repeated hour overlaps itself. This module computes what charts draw, not how they look.

use crate::preview::clock_change::{ClockChange, LocalSpan};
use crate::preview::forecast::{Piece, Window};
use crate::range::Range;
use five_spot_core::schedule::Causes;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// The seconds that a clock shows from one midnight to the next, on every day.
pub const SECONDS_OF_DAY: u32 = 24 * 60 * 60;

/// A part of a local day, half-open, in seconds since midnight as the clock shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: u32,
    pub to: u32,
}

impl Stretch {
    pub fn seconds(self) -> u32 {
        self.to - self.from
    }

    /// Returns the intersection.
    pub fn overlap(self, other: Self) -> Option<Self> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        (from < to).then_some(Self { from, to })
    }
}

/// The occurrence of a local time: clocks can show one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The clock shows it once.
    Only,
    /// The first of two occurrences.
    First,
    /// The second of two occurrences.
    Second,
}

/// A part of a window on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up {
    pub stretch: Stretch,
    pub pass: Pass,
    /// The index of the window.
    pub window: usize,
    /// The causes of this part.
    pub causes: Causes,
}

/// One local day, or the part of it in the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    pub date: Date,
    /// The parts of the day that exist and lie within the range.
    pub covered: Vec<Stretch>,
    /// Local times that the clock skips on this day.
    pub skipped: Vec<Stretch>,
    /// Local times that the clock shows twice on this day.
    pub repeated: Vec<Stretch>,
    pub up: Vec<Up>,
}

impl Day {
    /// The time for which a machine is wanted on this day.
    pub fn up_for(&self) -> SignedDuration {
        total(self.up.iter().map(|up| up.stretch))
    }

    /// The length of the day from midnight to midnight, usually 24 hours.
    pub fn length(&self) -> SignedDuration {
        let whole = SignedDuration::from_secs(i64::from(SECONDS_OF_DAY));
        whole - total(self.skipped.iter().copied()) + total(self.repeated.iter().copied())
    }
}

fn total(stretches: impl Iterator<Item = Stretch>) -> SignedDuration {
    SignedDuration::from_secs(stretches.map(|stretch| i64::from(stretch.seconds())).sum())
}

/// Every local day in the range, in order. A day that a zone skips entirely, as Samoa skipped 2011-12-30, is
/// included and marked as skipped.
pub fn days(zone: &TimeZone, range: &Range, windows: &[Window]) -> Vec<Day> {
    let changes = ClockChange::all(zone, range);
    let mut days = Days::default();
    for (index, change) in changes.iter().enumerate() {
        for (date, stretch) in change.skipped().into_iter().flat_map(by_day) {
            days.at(date).day.skipped.push(stretch);
        }
        for (date, stretch) in change.repeated().into_iter().flat_map(by_day) {
            let entry = days.at(date);
            entry.day.repeated.push(stretch);
            entry.repeated_by.push(index);
        }
    }
    for steady in steady_stretches(zone, range, &changes) {
        for (date, stretch) in steady.local(steady.start, steady.end) {
            days.at(date).day.covered.push(stretch);
        }
        for (window, piece) in pieces(windows) {
            let (start, end) = (piece.start.max(steady.start), piece.end.min(steady.end));
            if start < end {
                for (date, stretch) in steady.local(start, end) {
                    let up = Up { stretch, pass: Pass::Only, window, causes: piece.causes };
                    days.at(date).add_up(up, steady.index);
                }
            }
        }
    }
    days.0.into_values().map(|entry| entry.day).collect()
}

fn pieces(windows: &[Window]) -> impl Iterator<Item = (usize, &Piece)> {
    windows
        .iter()
        .enumerate()
        .flat_map(|(index, window)| window.pieces.iter().map(move |piece| (index, piece)))
}

/// Days under construction.
#[derive(Default)]
struct Days(BTreeMap<Date, Entry>);

struct Entry {
    day: Day,
    /// For each part of `day.repeated`, the index of the clock change that repeats it.
    repeated_by: Vec<usize>,
}

impl Days {
    fn at(&mut self, date: Date) -> &mut Entry {
        let empty = || Entry {
            day: Day { date, covered: vec![], skipped: vec![], repeated: vec![], up: vec![] },
            repeated_by: vec![],
        };
        self.0.entry(date).or_insert_with(empty)
    }
}

impl Entry {
    /// Splits a part where the clock repeats itself, so that each piece has one [`Pass`].
    fn add_up(&mut self, up: Up, steady: usize) {
        let mut rest = up.stretch;
        let mut parts = Vec::new();
        for (repeated, change) in self.day.repeated.iter().zip(&self.repeated_by) {
            let Some(twice) = rest.overlap(*repeated) else {
                continue;
            };
            parts.push((Stretch { from: rest.from, to: twice.from }, Pass::Only));
            parts.push((twice, if steady <= *change { Pass::First } else { Pass::Second }));
            rest.from = twice.to;
        }
        parts.push((rest, Pass::Only));
        let parts = parts.into_iter().filter(|(part, _)| part.from < part.to);
        self.day.up.extend(parts.map(|(stretch, pass)| Up { stretch, pass, ..up }));
    }
}

/// A part of the range without a clock change.
struct Steady {
    /// The index among the changes.
    index: usize,
    start: Timestamp,
    end: Timestamp,
    offset: Offset,
}

impl Steady {
    /// The local times between two instants of this part, by day.
    fn local(&self, start: Timestamp, end: Timestamp) -> Vec<(Date, Stretch)> {
        by_day((self.offset.to_datetime(start), self.offset.to_datetime(end)))
    }
}

fn steady_stretches(zone: &TimeZone, range: &Range, changes: &[ClockChange]) -> Vec<Steady> {
    let starts = std::iter::once(range.from).chain(changes.iter().map(|change| change.at));
    let ends = changes.iter().map(|change| change.at).chain(std::iter::once(range.to));
    starts
        .zip(ends)
        .enumerate()
        .map(|(index, (start, end))| Steady { index, start, end, offset: zone.to_offset(start) })
        .collect()
}

/// Splits at midnight.
fn by_day((start, end): LocalSpan) -> Vec<(Date, Stretch)> {
    let mut parts = Vec::new();
    let mut at = start;
    while at.date() < end.date() {
        parts.push((at.date(), Stretch { from: second_of_day(at), to: SECONDS_OF_DAY }));
        // The last day of the calendar has no next day; no range includes it.
        let Ok(tomorrow) = at.date().tomorrow() else {
            return parts;
        };
        at = tomorrow.to_datetime(jiff::civil::Time::midnight());
    }
    if at < end {
        parts.push((at.date(), Stretch { from: second_of_day(at), to: second_of_day(end) }));
    }
    parts
}

fn second_of_day(local: DateTime) -> u32 {
    let (hour, minute, second) = (local.hour(), local.minute(), local.second());
    [hour, minute, second].into_iter().fold(0, |sum, part| sum * 60 + u32::from(part.unsigned_abs()))
}

#[cfg(test)]
mod tests;
