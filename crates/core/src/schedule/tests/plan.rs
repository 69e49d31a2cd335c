//! Lead time, override and `enabled` on top of a schedule.

use super::at;
use super::written::in_zone;
use crate::schedule::{Override, Plan, PlanState};
use five_spot_api::OverrideState;
use jiff::SignedDuration;

/// A plan over mon-fri 9-17 UTC. The 16th of November 2026 is a Monday.
pub(super) fn office(lead_minutes: i64) -> Plan {
    let schedule = in_zone("UTC").days("mon-fri").hours("9-17").schedule();
    Plan::new(schedule, SignedDuration::from_mins(lead_minutes), true, None)
}

pub(super) fn with_override(
    plan: &Plan,
    enabled: bool,
    lead_minutes: i64,
    state: OverrideState,
    until: &str,
) -> Plan {
    let overriding = Some(Override { state, until: at(until) });
    Plan::new(plan.schedule().clone(), SignedDuration::from_mins(lead_minutes), enabled, overriding)
}

/// Everything that a plan says about an instant: state, next activation, cleanup and boundary, start.
#[track_caller]
fn check(plan: &Plan, now: &str, state: PlanState, [activation, cleanup, boundary, since]: [&str; 4]) {
    let now = at(now);
    let instant = |text: &str| (text != "-").then(|| at(text));
    assert_eq!(plan.at(now), state, "state");
    assert_eq!(plan.next_activation(now), instant(activation), "next activation");
    assert_eq!(plan.next_cleanup(now), instant(cleanup), "next cleanup");
    assert_eq!(plan.next_boundary(now), instant(boundary), "next boundary");
    assert_eq!(plan.wanted_since(now), instant(since), "wanted since");
}

#[test]
fn the_schedule_alone() {
    check(
        &office(0),
        "2026-11-16T08:00:00Z",
        PlanState::OutsideWindow,
        ["2026-11-16T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T09:00:00Z", "-"],
    );
    check(
        &office(0),
        "2026-11-16T09:00:00Z",
        PlanState::InWindow,
        ["2026-11-17T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T09:00:00Z"],
    );
    check(
        &office(0),
        "2026-11-20T17:59:59.999999999Z",
        PlanState::InWindow,
        ["2026-11-23T09:00:00Z", "2026-11-20T18:00:00Z", "2026-11-20T18:00:00Z", "2026-11-20T09:00:00Z"],
    );
    check(
        &office(0),
        "2026-11-20T18:00:00Z",
        PlanState::OutsideWindow,
        ["2026-11-23T09:00:00Z", "2026-11-23T18:00:00Z", "2026-11-23T09:00:00Z", "-"],
    );
}

#[test]
fn lead_time_comes_before_the_window() {
    check(
        &office(30),
        "2026-11-16T08:29:59Z",
        PlanState::OutsideWindow,
        ["2026-11-16T08:30:00Z", "2026-11-16T18:00:00Z", "2026-11-16T08:30:00Z", "-"],
    );
    check(
        &office(30),
        "2026-11-16T08:30:00Z",
        PlanState::LeadTime,
        ["2026-11-17T08:30:00Z", "2026-11-16T18:00:00Z", "2026-11-16T09:00:00Z", "2026-11-16T08:30:00Z"],
    );
    check(
        &office(30),
        "2026-11-16T12:00:00Z",
        PlanState::InWindow,
        ["2026-11-17T08:30:00Z", "2026-11-16T18:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T08:30:00Z"],
    );
}

#[test]
fn lead_time_that_reaches_the_window_before_keeps_the_machine() {
    // Fifteen hours from 18:00 to 09:00.
    check(
        &office(15 * 60),
        "2026-11-17T12:00:00Z",
        PlanState::InWindow,
        ["2026-11-22T18:00:00Z", "2026-11-20T18:00:00Z", "2026-11-17T18:00:00Z", "2026-11-15T18:00:00Z"],
    );
    check(
        &office(15 * 60),
        "2026-11-17T18:00:00Z",
        PlanState::LeadTime,
        ["2026-11-22T18:00:00Z", "2026-11-20T18:00:00Z", "2026-11-18T09:00:00Z", "2026-11-15T18:00:00Z"],
    );
    check(
        &office(15 * 60 - 1),
        "2026-11-17T18:00:00Z",
        PlanState::OutsideWindow,
        ["2026-11-17T18:01:00Z", "2026-11-18T18:00:00Z", "2026-11-17T18:01:00Z", "-"],
    );
}

#[test]
fn an_override_wins_until_it_expires() {
    let up = with_override(&office(0), true, 0, OverrideState::Up, "2026-11-16T22:00:00Z");
    check(
        &up,
        "2026-11-16T20:00:00Z",
        PlanState::OverrideUp,
        ["2026-11-17T09:00:00Z", "2026-11-16T22:00:00Z", "2026-11-16T22:00:00Z", "-"],
    );
    // The schedule changes meanwhile, which shows in `inSchedule` only.
    check(
        &up,
        "2026-11-16T17:00:00Z",
        PlanState::OverrideUp,
        ["2026-11-17T09:00:00Z", "2026-11-16T22:00:00Z", "2026-11-16T18:00:00Z", "-"],
    );
    check(
        &up,
        "2026-11-16T22:00:00Z",
        PlanState::OutsideWindow,
        ["2026-11-17T09:00:00Z", "2026-11-17T18:00:00Z", "2026-11-17T09:00:00Z", "-"],
    );
    let down = with_override(&office(0), true, 0, OverrideState::Down, "2026-11-16T12:00:00Z");
    check(
        &down,
        "2026-11-16T10:00:00Z",
        PlanState::OverrideDown,
        ["2026-11-16T12:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T12:00:00Z", "-"],
    );
    check(
        &down,
        "2026-11-16T13:00:00Z",
        PlanState::InWindow,
        ["2026-11-17T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T12:00:00Z"],
    );
}

#[test]
fn an_override_without_effect_at_its_end_is_no_boundary() {
    let up = with_override(&office(0), true, 0, OverrideState::Up, "2026-11-16T12:00:00Z");
    check(
        &up,
        "2026-11-16T08:00:00Z",
        PlanState::OverrideUp,
        ["2026-11-17T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T09:00:00Z", "-"],
    );
    // The machine existed before the override ended, since an unknown time.
    check(
        &up,
        "2026-11-16T13:00:00Z",
        PlanState::InWindow,
        ["2026-11-17T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T18:00:00Z", "-"],
    );
    let until_lead = with_override(&office(0), true, 30, OverrideState::Up, "2026-11-17T08:30:00Z");
    check(
        &until_lead,
        "2026-11-17T08:45:00Z",
        PlanState::LeadTime,
        ["2026-11-18T08:30:00Z", "2026-11-17T18:00:00Z", "2026-11-17T09:00:00Z", "-"],
    );
    let down_in_time = with_override(&office(0), true, 30, OverrideState::Down, "2026-11-17T08:30:00Z");
    check(
        &down_in_time,
        "2026-11-17T08:45:00Z",
        PlanState::LeadTime,
        ["2026-11-18T08:30:00Z", "2026-11-17T18:00:00Z", "2026-11-17T09:00:00Z", "2026-11-17T08:30:00Z"],
    );
    let down = with_override(&office(0), true, 0, OverrideState::Down, "2026-11-16T20:00:00Z");
    check(
        &down,
        "2026-11-16T19:00:00Z",
        PlanState::OverrideDown,
        ["2026-11-17T09:00:00Z", "2026-11-17T18:00:00Z", "2026-11-16T20:00:00Z", "-"],
    );
}

#[test]
fn an_expired_override_has_no_effect() {
    for state in [OverrideState::Up, OverrideState::Down] {
        check(
            &with_override(&office(0), true, 0, state, "2026-11-16T08:59:59Z"),
            "2026-11-16T13:00:00Z",
            PlanState::InWindow,
            ["2026-11-17T09:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T18:00:00Z", "2026-11-16T09:00:00Z"],
        );
    }
}

#[test]
fn a_disabled_schedule_still_opens_and_closes() {
    let disabled = Plan::new(office(0).schedule().clone(), SignedDuration::ZERO, false, None);
    check(&disabled, "2026-11-16T10:00:00Z", PlanState::Disabled, ["-", "-", "2026-11-16T18:00:00Z", "-"]);
    let up = with_override(&office(0), false, 0, OverrideState::Up, "2026-11-16T12:00:00Z");
    check(
        &up,
        "2026-11-16T10:00:00Z",
        PlanState::OverrideUp,
        ["-", "2026-11-16T12:00:00Z", "2026-11-16T12:00:00Z", "-"],
    );
    let down = with_override(&office(0), false, 0, OverrideState::Down, "2026-11-16T12:00:00Z");
    check(&down, "2026-11-16T10:00:00Z", PlanState::OverrideDown, ["-", "-", "2026-11-16T12:00:00Z", "-"]);
}
