//! Notes on the effects of a clock change on the windows around it.

use crate::preview::clock_change::{ClockChange, LocalSpan};
use crate::preview::forecast::{Piece, Window};
use crate::wording;
use five_spot_core::schedule::Cause;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// A clock change and its effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockNote {
    /// The local day on which the clocks are moved.
    pub date: Date,
    /// `clocks go back 1h at 02:00 EDT, to 01:00 EST`.
    pub change: String,
    /// One sentence per window whose length or boundary differs from its local times.
    pub effects: Vec<String>,
}

/// The windows as computed, and as written.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    pub wanted: &'a [Window],
    /// The local times of the same schedule in a zone without clock changes.
    pub written: &'a [LocalSpan],
}

impl ClockNote {
    pub fn new(zone: &TimeZone, change: &ClockChange, windows: Windows<'_>) -> Self {
        let direction = if change.shift().is_positive() { "forward" } else { "back" };
        // The instant before the change has the old abbreviation.
        let just_before = change.at - SignedDuration::from_secs(1);
        Self {
            date: change.local_before().min(change.local_after()).date(),
            change: format!(
                "clocks go {direction} {} at {} {}, to {}",
                wording::duration(change.shift()),
                wording::time(change.local_before().time()),
                wording::zone_at(zone, just_before),
                wording::time_in(zone, change.at),
            ),
            effects: moved_boundaries(zone, change, windows)
                .chain(stretched_windows(zone, change, windows.wanted))
                .collect(),
        }
    }
}

/// The change in one sentence, without its effects.
impl fmt::Display for ClockNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, change, effects } = self;
        write!(f, "{date}: {change}{}", if effects.is_empty() { "; no window is affected" } else { "" })
    }
}

/// The windows that are longer or shorter than their local times suggest because of the change.
fn stretched_windows<'a>(
    zone: &'a TimeZone,
    change: &'a ClockChange,
    wanted: &'a [Window],
) -> impl Iterator<Item = String> + 'a {
    let by = wording::duration(change.shift());
    let how = if change.shift().is_positive() { "less" } else { "longer" };
    let across = wanted.iter().filter(|window| window.start < change.at && change.at < window.end);
    across.map(move |window| {
        if window.began_before || window.goes_on {
            return format!("the window around it lasts {by} {how}");
        }
        let (start, end) = (window.start, window.end);
        format!(
            "the window from {} to {} lasts {by} {how}: {}",
            wording::moment_in(zone, start),
            wording::moment_in(zone, end),
            wording::duration(end.duration_since(start)),
        )
    })
}

/// The boundaries whose local time is skipped or repeated.
fn moved_boundaries<'a>(
    zone: &'a TimeZone,
    change: &'a ClockChange,
    windows: Windows<'a>,
) -> impl Iterator<Item = String> + 'a {
    let boundaries = windows.written.iter().flat_map(|(start, end)| {
        [Boundary { edge: Edge::Opens, local: *start }, Boundary { edge: Edge::Closes, local: *end }]
    });
    boundaries.filter_map(move |boundary| {
        let (instant, why) = boundary.moved_by(change)?;
        // An override may have removed the boundary.
        windows.has(boundary.edge, instant).then(|| {
            let edge = boundary.edge.word();
            format!(
                "{} {why}: the window {edge} at {}",
                wording::weekday_time(boundary.local),
                wording::time_in(zone, instant)
            )
        })
    })
}

impl Windows<'_> {
    /// Returns true if a window opens or closes at this instant. The lead time of the next window can hide
    /// it.
    fn has(&self, edge: Edge, instant: Timestamp) -> bool {
        let is_lead =
            |piece: Option<&Piece>| piece.is_none_or(|piece| piece.causes == Cause::LeadTime.into());
        self.wanted.iter().any(|Window { pieces, .. }| {
            pieces.iter().enumerate().any(|(index, piece)| {
                let before = index.checked_sub(1).and_then(|index| pieces.get(index));
                !is_lead(Some(piece))
                    && match edge {
                        Edge::Opens => piece.start == instant && is_lead(before),
                        Edge::Closes => piece.end == instant && is_lead(pieces.get(index + 1)),
                    }
            })
        })
    }
}

#[derive(Clone, Copy)]
enum Edge {
    Opens,
    Closes,
}

impl Edge {
    const fn word(self) -> &'static str {
        match self {
            Self::Opens => "opens",
            Self::Closes => "closes",
        }
    }
}

struct Boundary {
    edge: Edge,
    local: DateTime,
}

impl Boundary {
    /// The instant of a boundary whose local time is skipped or repeated, and the reason.
    fn moved_by(&self, change: &ClockChange) -> Option<(Timestamp, &'static str)> {
        let inside = |(start, end): &LocalSpan| *start <= self.local && self.local < *end;
        if change.skipped().as_ref().is_some_and(inside) {
            return Some((change.at, "does not come that day"));
        }
        let repeated = change.repeated().filter(inside)?;
        // A window closes at the last instant at which the clock shows less than its end. If the clock goes
        // back to exactly that time, the first occurrence counts, because the clock never shows less again.
        let offset = match self.edge {
            Edge::Closes if self.local > repeated.0 => change.after,
            Edge::Closes | Edge::Opens => change.before,
        };
        let why = if offset == change.before {
            "comes twice, and the first counts"
        } else {
            "comes twice, and the second counts"
        };
        Some((offset.to_timestamp(self.local).ok()?, why))
    }
}
