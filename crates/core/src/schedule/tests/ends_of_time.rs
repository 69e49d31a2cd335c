//! Schedules that never change, or in a far future, and instants at the ends of time. All of them must be
//! answered at once.

use super::at;
use super::written::{Written, in_zone};
use jiff::Timestamp;

const ALL_YEARS: &str = "0000-01-01..9999-12-31";

#[track_caller]
fn check(written: &Written, now: &str, open: bool, next_change: Option<&str>, open_since: Option<&str>) {
    let schedule = written.schedule();
    let now = at(now);
    assert_eq!(schedule.is_open(now), open);
    assert_eq!(schedule.next_change(now), next_change.map(at), "next change");
    assert_eq!(schedule.open_since(now), open_since.map(at), "open since");
}

const NOW: &str = "2026-11-16T12:00:00Z";

#[test]
fn always_open() {
    check(&in_zone("Europe/Berlin").days("mon-sun"), NOW, true, None, None);
    check(&in_zone("Europe/Berlin").hours("0-23"), NOW, true, None, None);
    check(&in_zone("Europe/Berlin").days("mon-fri").window("sat 00:00", "mon 00:00"), NOW, true, None, None);
    check(&in_zone("Europe/Berlin").window("wed 10:00", "fri 10:00").window("fri 10:00", "wed 10:00"), NOW, true, None, None);
    check(&in_zone("Europe/Berlin").days("mon").open(ALL_YEARS), NOW, true, Some("9999-12-30T22:00:00.999999999Z"), None);
}

#[test]
fn never_open() {
    check(&in_zone("Europe/Berlin").days("mon").closed(ALL_YEARS), "2026-11-14T12:00:00Z", false, None, None);
}
