//! Wanted periods: what they are made of, and how far they may reach.

use super::plan::{office, with_override};
use super::written::{Written, in_zone};
use super::{at, shown_periods};
use crate::schedule::Plan;
use five_spot_api::OverrideState;
use jiff::SignedDuration;

#[track_caller]
fn check(plan: &Plan, from: &str, to: &str, expected: &[&str]) {
    assert_eq!(shown_periods(plan, at(from), at(to)), expected);
}

#[test]
fn periods_list_all_their_causes() {
    check(
        &office(30),
        "2026-11-16T00:00:00Z",
        "2026-11-17T08:45:00Z",
        &[
            "Mon 2026-11-16 08:30+00:00 .. Mon 2026-11-16 18:00+00:00 leadTime+schedule",
            "Tue 2026-11-17 08:30+00:00 .. Tue 2026-11-17 08:45+00:00 leadTime",
        ],
    );
    // What was before the range is no cause.
    check(
        &office(30),
        "2026-11-16T10:00:00Z",
        "2026-11-16T20:00:00Z",
        &["Mon 2026-11-16 10:00+00:00 .. Mon 2026-11-16 18:00+00:00 schedule"],
    );
    check(
        &with_override(&office(0), true, 30, OverrideState::Up, "2026-11-17T09:30:00Z"),
        "2026-11-16T20:00:00Z",
        "2026-11-18T00:00:00Z",
        &["Mon 2026-11-16 20:00+00:00 .. Tue 2026-11-17 18:00+00:00 override+schedule"],
    );
    check(
        &with_override(&office(0), true, 30, OverrideState::Down, "2026-11-17T08:45:00Z"),
        "2026-11-16T10:00:00Z",
        "2026-11-18T00:00:00Z",
        &["Tue 2026-11-17 08:45+00:00 .. Tue 2026-11-17 18:00+00:00 leadTime+schedule"],
    );
    let disabled = Plan::new(office(0).schedule().clone(), SignedDuration::ZERO, false, None);
    check(&disabled, "2026-11-16T00:00:00Z", "2026-11-18T00:00:00Z", &[]);
    check(&office(0), "2026-11-17T10:00:00Z", "2026-11-16T10:00:00Z", &[]);
}

#[test]
fn a_period_runs_through_windows_and_exceptions() {
    let schedule = in_zone("UTC")
        .days("fri")
        .hours("9-17")
        .window("fri 18:00", "sat 12:00")
        .open_hours("2026-11-21", "12-13")
        .schedule();
    check(
        &Plan::new(schedule, SignedDuration::from_hours(1), true, None),
        "2026-11-20T00:00:00Z",
        "2026-11-27T00:00:00Z",
        &["Fri 2026-11-20 08:00+00:00 .. Sat 2026-11-21 14:00+00:00 exception+leadTime+schedule+window"],
    );
}

/// A plan of which every night is bridged by the lead time, but for its exceptions.
fn bridged(zone: &str, exceptions: impl FnOnce(Written) -> Written) -> Plan {
    let schedule = exceptions(in_zone(zone).hours("0-22")).schedule();
    Plan::new(schedule, SignedDuration::from_hours(1), true, None)
}

/// Returns the end of the period of such a plan that contains noon of 16 November 2026.
#[track_caller]
fn check_end(plan: &Plan, cleanup: Option<&str>) {
    assert_eq!(plan.next_cleanup(at("2026-11-16T12:00:00Z")), cleanup.map(at));
}

#[test]
fn lead_time_may_bridge_every_night() {
    for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"] {
        let plan = bridged(zone, |written| written);
        check_end(&plan, None);
        assert_eq!(plan.next_activation(at("2026-11-16T12:00:00Z")), None);
    }
}

#[test]
fn a_bridged_period_ends_at_the_first_closed_day() {
    for (closed, cleanup) in [
        ("2026-11-17", "2026-11-16T22:00:00Z"),
        ("2026-11-24", "2026-11-23T22:00:00Z"),
        ("2026-11-30", "2026-11-29T22:00:00Z"),
        ("2027-02-15", "2027-02-14T22:00:00Z"),
        ("2027-03-28", "2027-03-27T22:00:00Z"),
        ("2027-03-30", "2027-03-29T21:00:00Z"),
        ("2027-06-15", "2027-06-14T21:00:00Z"),
        ("2040-05-05", "2040-05-04T21:00:00Z"),
        ("9990-05-05", "9990-05-04T21:00:00Z"),
    ] {
        check_end(&bridged("Europe/Berlin", |written| written.closed(closed)), Some(cleanup));
        // Days that are open all the same are no end, and do not hide it.
        let exceptions = |written: Written| written.open("2026-12-24").open("2035-12-24").closed(closed);
        check_end(&bridged("Europe/Berlin", exceptions), Some(cleanup));
    }
}

#[test]
fn lead_time_may_not_bridge_a_gap_that_a_repeated_hour_extends() {
    // Beirut repeats the hour before midnight once a year.
    let beirut = bridged("Asia/Beirut", |written| written);
    check_end(&beirut, Some("2027-10-30T20:00:00Z"));
    assert_eq!(beirut.next_activation(at("2026-11-16T12:00:00Z")), Some(at("2027-10-30T21:00:00Z")));
    assert_eq!(beirut.wanted_since(at("2026-11-16T12:00:00Z")), Some(at("2026-10-24T21:00:00Z")));
}

#[test]
fn lead_time_may_bridge_a_gap_only_across_a_clock_change() {
    // Two hours of Sunday night, of which the clock skips one in March: that week is like no other.
    let schedule = in_zone("Europe/Berlin").window("sun 03:30", "sun 01:30").schedule();
    let plan = Plan::new(schedule, SignedDuration::from_hours(1), true, None);
    let in_march = at("2026-03-28T12:00:00Z");
    assert_eq!(plan.next_cleanup(in_march), Some(at("2026-04-04T23:30:00Z")));
    assert_eq!(plan.wanted_since(at("2026-03-29T12:00:00Z")), Some(at("2026-03-22T01:30:00Z")));
}

#[test]
fn the_start_of_a_period_is_searched_for_about_a_year() {
    for (closed, since) in [
        ("2026-11-14", Some("2026-11-14T23:00:00Z")),
        ("2026-01-10", Some("2026-01-10T23:00:00Z")),
        ("2025-10-20", Some("2025-10-20T23:00:00Z")),
        ("2025-01-10", None),
    ] {
        let plan = bridged("UTC", |written| written.closed(closed));
        assert_eq!(plan.wanted_since(at("2026-11-16T12:00:00Z")), since.map(at), "{closed}");
        assert_eq!(plan.wanted_since(at("2026-11-16T23:30:00Z")), since.map(at), "{closed}");
    }
}

#[test]
fn an_override_starts_a_period_unless_a_gap_follows() {
    let now = at("2026-11-16T12:00:00Z");
    let closed_in_may = bridged("UTC", |written| written.closed("2025-05-10"));
    for (until, since) in [
        ("2026-01-10T09:00:00Z", Some("2026-01-10T09:00:00Z")),
        // Further back than anybody looks: before the day in May, or after it.
        ("2025-06-10T09:00:00Z", None),
        ("2025-01-10T09:00:00Z", None),
    ] {
        let plan = with_override(&closed_in_may, true, 60, OverrideState::Down, until);
        assert_eq!(plan.wanted_since(now), since.map(at), "{until}");
    }
    let schedule = in_zone("UTC").days("mon-sun").schedule();
    let never_closed = Plan::new(schedule, SignedDuration::ZERO, true, None);
    let plan = with_override(&never_closed, true, 0, OverrideState::Down, "2020-01-10T09:00:00Z");
    assert_eq!(plan.wanted_since(now), Some(at("2020-01-10T09:00:00Z")));
}
