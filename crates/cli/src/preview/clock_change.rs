//! The instants at which the clocks of a zone change.

use crate::range::Range;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// A clock change: forward, so that local times are skipped, or back, so that they repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockChange {
    pub at: Timestamp,
    pub before: Offset,
    pub after: Offset,
}

/// A half-open range of local times.
pub type LocalSpan = (DateTime, DateTime);

impl ClockChange {
    /// Every clock change inside the range, in order. A change of the zone's abbreviation alone does not
    /// count.
    pub fn all(zone: &TimeZone, range: &Range) -> Vec<Self> {
        let mut before = zone.to_offset(range.from);
        let mut changes = Vec::new();
        for transition in zone.following(range.from).take_while(|next| next.timestamp() < range.to) {
            let after = transition.offset();
            if after != before {
                changes.push(Self { at: transition.timestamp(), before, after });
            }
            before = after;
        }
        changes
    }

    /// The local time at the change, by the old offset.
    pub fn local_before(&self) -> DateTime {
        self.before.to_datetime(self.at)
    }

    /// The local time at the change, by the new offset.
    pub fn local_after(&self) -> DateTime {
        self.after.to_datetime(self.at)
    }

    /// The shift of the clocks; negative if they go back.
    pub fn shift(&self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.after.seconds() - self.before.seconds()))
    }

    /// The local times that are skipped.
    pub fn skipped(&self) -> Option<LocalSpan> {
        self.shift().is_positive().then(|| (self.local_before(), self.local_after()))
    }

    /// The local times that repeat.
    pub fn repeated(&self) -> Option<LocalSpan> {
        self.shift().is_negative().then(|| (self.local_after(), self.local_before()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    fn changes(zone: &str, from: &str, to: &str) -> Vec<(String, Option<LocalSpan>, Option<LocalSpan>)> {
        let zone = TimeZoneDatabase::bundled().get(zone).expect("a zone");
        let range = Range { from: from.parse().expect("from"), to: to.parse().expect("to") };
        ClockChange::all(&zone, &range)
            .into_iter()
            .map(|change| (change.at.to_string(), change.skipped(), change.repeated()))
            .collect()
    }

    fn span(from: &str, to: &str) -> LocalSpan {
        (from.parse().expect("local"), to.parse().expect("local"))
    }

    #[test]
    fn a_year_has_two_changes_with_skipped_and_repeated_times() {
        assert_eq!(
            changes("America/New_York", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            [
                ("2026-03-08T07:00:00Z".into(), Some(span("2026-03-08T02:00", "2026-03-08T03:00")), None),
                ("2026-11-01T06:00:00Z".into(), None, Some(span("2026-11-01T01:00", "2026-11-01T02:00"))),
            ]
        );
        assert_eq!(
            changes("Australia/Lord_Howe", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            [
                ("2026-04-04T15:00:00Z".into(), None, Some(span("2026-04-05T01:30", "2026-04-05T02:00"))),
                ("2026-10-03T15:30:00Z".into(), Some(span("2026-10-04T02:00", "2026-10-04T02:30")), None),
            ]
        );
        assert_eq!(changes("UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), []);
    }

    #[test]
    fn a_change_at_the_edge_of_the_range_is_outside() {
        assert_eq!(changes("Europe/Berlin", "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"), []);
        assert_eq!(changes("Europe/Berlin", "2026-03-29T00:59:59Z", "2026-10-25T01:00:01Z").len(), 2);
    }
}
