//! Tests that every output fits the width.

use super::*;
use crate::preview::clock_change::ClockChange;
use crate::preview::clock_note::{ClockNote, Windows};
use crate::preview::forecast::{Piece, Window};
use crate::range::Range;
use crate::style::{Charset, MAX_WIDTH, MIN_WIDTH};
use five_spot_core::schedule::{Cause, Causes};
use jiff::tz::TimeZoneDatabase;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// A forecast with windows and gaps of these lengths in seconds.
fn forecast(zone_name: &str, first: Timestamp, seconds: &[i64], name_length: usize) -> Forecast {
    let zone = TimeZoneDatabase::bundled().get(zone_name).expect("a zone");
    let causes: Causes = Cause::ALL.into_iter().collect();
    let mut at = first;
    let mut windows = Vec::new();
    for pair in seconds.chunks(2) {
        let start = at + SignedDuration::from_secs(pair[0]);
        let end = start + SignedDuration::from_secs(*pair.last().expect("a chunk"));
        let pieces = vec![Piece { start, end, causes }];
        windows.push(Window { start, end, causes, pieces, began_before: false, goes_on: false });
        at = end;
    }
    let range = Range { from: first, to: at + SignedDuration::from_secs(1) };
    let for_notes = Windows { wanted: &windows, written: &[] };
    let clock_notes = ClockChange::all(&zone, &range)
        .iter()
        .map(|change| ClockNote::new(&zone, change, for_notes))
        .collect();
    Forecast {
        name: "n".repeat(name_length),
        namespace: "default".to_owned(),
        timezone: zone_name.to_owned(),
        zone,
        range,
        note: Some("disabled (spec.schedule.enabled: false): no machine is wanted".to_owned()),
        windows,
        clock_notes,
    }
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(
        zone in prop::sample::select(vec![
            "America/Argentina/ComodRivadavia", "Australia/Lord_Howe", "America/New_York", "Pacific/Apia", "UTC",
        ]),
        first in 1_300_000_000_i64..1_900_000_000,
        seconds in prop::collection::vec(1_i64..200_000, 0..40),
        name_length in 1_usize..=53,
        width in MIN_WIDTH..=MAX_WIDTH,
        ascii in any::<bool>(),
    ) {
        let forecast = forecast(zone, Timestamp::from_second(first).expect("an instant"), &seconds, name_length);
        let charset = if ascii { Charset::Ascii } else { Charset::Unicode };
        let text = render(&[forecast], Style { width, charset, colored: false });
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{width}: {line:?}");
            prop_assert_eq!(line.trim_end(), line);
        }
        prop_assert!(!ascii || text.is_ascii());
    }
}

#[test]
fn colours_change_nothing_but_the_colours() {
    let first = "2026-10-30T00:00:00Z".parse().expect("an instant");
    let forecast = forecast("America/New_York", first, &[3600, 90_000, 7200, 100_000, 1000], 8);
    let style = Style { width: 80, charset: Charset::Unicode, colored: false };
    let plain = render(std::slice::from_ref(&forecast), style);
    let colored = render(&[forecast], Style { colored: true, ..style });
    let mut stripped = String::new();
    for part in colored.split('\u{1b}') {
        stripped.push_str(
            part.strip_prefix('[').map_or(part, |code| code.split_once('m').map_or("", |(_, text)| text)),
        );
    }
    let without_margin = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_ne!(colored, plain);
    assert_eq!(without_margin(&stripped), without_margin(&plain));
}
