//! Tests with skipped and repeated local times, from zones with unusual clock changes.

use super::*;
use five_spot_core::schedule::Cause;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).expect("a zone")
}

fn window(start: Timestamp, end: Timestamp) -> Window {
    let causes = Cause::Schedule.into();
    let pieces = vec![Piece { start, end, causes }];
    Window { start, end, causes, pieces, began_before: false, goes_on: false }
}

fn instant(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

const HOUR: u32 = 3600;

#[test]
fn a_skipped_hour_is_a_hole_in_its_day() {
    let range = Range { from: instant("2026-03-08T05:00:00Z"), to: instant("2026-03-09T04:00:00Z") };
    let days = days(
        &zone("America/New_York"),
        &range,
        &[window(instant("2026-03-08T06:30:00Z"), instant("2026-03-08T08:00:00Z"))],
    );
    assert_eq!(days.len(), 1);
    let day = &days[0];
    assert_eq!(day.length(), SignedDuration::from_hours(23));
    assert_eq!(day.skipped, [Stretch { from: 2 * HOUR, to: 3 * HOUR }]);
    assert_eq!(day.covered, [Stretch { from: 0, to: 2 * HOUR }, Stretch { from: 3 * HOUR, to: 24 * HOUR }]);
    let up: Vec<Stretch> = day.up.iter().map(|up| up.stretch).collect();
    assert_eq!(up, [Stretch { from: 3 * HOUR / 2, to: 2 * HOUR }, Stretch { from: 3 * HOUR, to: 4 * HOUR }]);
    assert_eq!(day.up_for(), SignedDuration::from_mins(90));
}

#[test]
fn a_repeated_hour_overlaps_itself() {
    let range = Range { from: instant("2026-11-01T04:00:00Z"), to: instant("2026-11-02T05:00:00Z") };
    let days = days(
        &zone("America/New_York"),
        &range,
        &[window(instant("2026-11-01T04:30:00Z"), instant("2026-11-01T06:30:00Z"))],
    );
    assert_eq!(days.len(), 1);
    assert_eq!(days[0].length(), SignedDuration::from_hours(25));
    assert_eq!(days[0].repeated, [Stretch { from: HOUR, to: 2 * HOUR }]);
    let up: Vec<(u32, u32, Pass)> =
        days[0].up.iter().map(|up| (up.stretch.from, up.stretch.to, up.pass)).collect();
    assert_eq!(
        up,
        [(HOUR / 2, HOUR, Pass::Only), (HOUR, 2 * HOUR, Pass::First), (HOUR, 3 * HOUR / 2, Pass::Second),]
    );
}

/// Shifts of half an hour, across midnight, at one minute past midnight, of a whole day, and none.
const ZONES: [(&str, &str); 7] = [
    ("Australia/Lord_Howe", "2026-04-04T00:00:00Z"),
    ("America/Havana", "2026-10-31T00:00:00Z"),
    ("America/Goose_Bay", "2010-11-06T00:00:00Z"),
    ("Pacific/Apia", "2011-12-28T00:00:00Z"),
    ("America/Asuncion", "2023-03-24T00:00:00Z"),
    ("Europe/Berlin", "2026-03-28T00:00:00Z"),
    ("UTC", "2026-03-28T00:00:00Z"),
];

proptest! {
    #[test]
    fn nothing_is_lost_or_made_up_when_time_is_laid_out_on_days(
        (name, first) in prop::sample::select(ZONES.to_vec()),
        lead in 0_i64..200_000,
        length in 1_i64..700_000,
        cut in (0.0_f64..1.0, 0.0_f64..1.0),
    ) {
        let from = instant(first) + SignedDuration::from_secs(lead);
        let range = Range { from, to: from + SignedDuration::from_secs(length) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a point in the range")]
        let at = |share: f64| from + SignedDuration::from_secs((share * length as f64) as i64);
        let (start, end) = (at(cut.0.min(cut.1)), at(cut.0.max(cut.1)));
        let windows = if start < end { vec![window(start, end)] } else { vec![] };
        let days = days(&zone(name), &range, &windows);

        let covered: SignedDuration = days.iter().map(|day| total(day.covered.iter().copied())).sum();
        prop_assert_eq!(covered, range.duration());
        let up: SignedDuration = days.iter().map(Day::up_for).sum();
        prop_assert_eq!(up, end.duration_since(start));
        for day in &days {
            for stretch in day.covered.iter().chain(&day.skipped).chain(&day.repeated).chain(day.up.iter().map(|up| &up.stretch)) {
                prop_assert!(stretch.from < stretch.to && stretch.to <= SECONDS_OF_DAY, "{:?}", stretch);
            }
        }
        prop_assert!(days.is_sorted_by(|one, next| one.date < next.date));
    }
}
