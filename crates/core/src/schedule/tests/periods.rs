//! Wanted periods: what they are made of, and how far they may reach.

use super::plan::{office, with_override};
use super::written::in_zone;
use super::{at, shown_periods};
use crate::schedule::Plan;
use five_spot_api::OverrideState;
use jiff::{SignedDuration, Timestamp};

#[track_caller]
fn check(plan: &Plan, from: &str, to: &str, expected: &[&str]) {
    assert_eq!(shown_periods(plan, at(from), at(to)), expected);
}

#[test]
fn periods_tell_all_their_causes() {
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

/// All of time from now on is one period, or up to an end.
#[track_caller]
fn check_cleanup(plan: &Plan, cleanup: Option<Timestamp>) {
    assert_eq!(plan.next_cleanup(at("2026-11-16T12:00:00Z")), cleanup);
}

#[test]
fn lead_time_may_bridge_every_night() {
    let by_day = |zone: &str| in_zone(zone).hours("0-22");
    let an_hour = SignedDuration::from_hours(1);
    check_cleanup(&Plan::new(by_day("UTC").schedule(), an_hour, true, None), None);
    check_cleanup(
        &Plan::new(by_day("Europe/Berlin").schedule(), an_hour, true, None),
        None,
    );
    // Years later a day is closed.
    let until_2040 = by_day("Europe/Berlin").closed("2040-05-05").schedule();
    check_cleanup(
        &Plan::new(until_2040, an_hour, true, None),
        Some(at("2040-05-04T21:00:00Z")),
    );
    // Beirut repeats the hour before midnight once a year: then the night is too long.
    let beirut = Plan::new(by_day("Asia/Beirut").schedule(), an_hour, true, None);
    check_cleanup(&beirut, Some(at("2027-10-30T20:00:00Z")));
    assert_eq!(
        beirut.next_activation(at("2026-11-16T12:00:00Z")),
        Some(at("2027-10-30T21:00:00Z"))
    );
    assert_eq!(
        beirut.wanted_since(at("2026-11-16T12:00:00Z")),
        Some(at("2026-10-24T21:00:00Z"))
    );
    // Nobody looks back for ever.
    let berlin = Plan::new(by_day("Europe/Berlin").schedule(), an_hour, true, None);
    assert_eq!(berlin.wanted_since(at("2026-11-16T12:00:00Z")), None);
}
