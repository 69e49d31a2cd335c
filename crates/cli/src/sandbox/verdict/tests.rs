//! Every kind of violation is found, and correct behaviour is not reported.

use super::*;
use crate::sandbox::trace::Presence::{Gone, Terminating, There};
use crate::sandbox::trace_fixture::{TraceFixture, day};
use serde_json::json;

fn check(fixture: TraceFixture, expected: &[&str]) {
    let found: Vec<String> = violations(&fixture.done(), day().to).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_good_day_is_a_good_day() {
    check(TraceFixture::good().and_gone(), &[]);
}

#[test]
fn a_late_or_missing_machine_is_a_violation() {
    let late = TraceFixture::new()
        .phase("09:00:00", Phase::Pending)
        .machine("09:00:06", There)
        .phase("09:00:06", Phase::Active)
        .ready("09:01:10", true)
        .machine("18:00:00", Terminating)
        .phase("18:00:00", Phase::ShuttingDown);
    check(
        late.and_gone(),
        &["lab/bench-01 at 2026-11-09T09:00:00Z: there was no Machine for 6s although one was wanted"],
    );
    let never = TraceFixture::new();
    check(
        never,
        &["lab/bench-01 at 2026-11-09T09:00:00Z: there was no Machine for 9h although one was wanted"],
    );
}

#[test]
fn a_node_that_never_joins() {
    let fixture = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .machine("18:00:00", Terminating);
    check(
        fixture.and_gone(),
        &["lab/bench-01 at 2026-11-09T09:20:05Z: the Node was not Ready 20m after the Machine was created"],
    );
}

#[test]
fn deleting_a_wanted_machine_is_a_violation() {
    let fixture = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .delete("12:00:00")
        .machine("12:00:00", Terminating)
        .machine("12:00:06", Gone)
        .machine("12:00:07", There)
        .machine("18:00:00", Terminating)
        .and_gone();
    check(
        fixture,
        &["lab/bench-01 at 2026-11-09T12:00:00Z: the controller deleted the Machine while it was wanted"],
    );
}

#[test]
fn deletions_by_users_and_replacements_are_allowed() {
    let by_hand = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .machine("12:00:00", Terminating)
        .machine("12:00:06", Gone)
        .machine("12:00:07", There)
        .machine("18:00:00", Terminating);
    check(by_hand.and_gone(), &[]);
    let replaced = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .spec("12:00:00", &json!({"clusterName": "other"}))
        .phase("12:00:00", Phase::ShuttingDown)
        .delete("12:01:00")
        .machine("12:01:00", Terminating)
        .machine("12:01:06", Gone)
        .machine("12:01:07", There)
        .phase("12:01:08", Phase::Active)
        .machine("18:00:00", Terminating);
    check(replaced.and_gone(), &[]);
}

#[test]
fn a_phase_that_tells_another_story() {
    let asleep = TraceFixture::new()
        .machine("09:00:00", There)
        .ready("09:01:00", true)
        .machine("18:00:00", Terminating);
    check(
        asleep.and_gone(),
        &[
            "lab/bench-01 at 2026-11-09T09:00:05Z: in phase Inactive instead of Active while the Machine was wanted and existed",
        ],
    );
    let dreaming = TraceFixture::good().machine("18:00:12", Gone);
    check(
        dreaming,
        &["lab/bench-01 at 2026-11-09T18:02:12Z: in phase ShuttingDown instead of Inactive although \
             no Machine was wanted and none existed"],
    );
}

#[test]
fn creating_an_unwanted_machine_is_a_violation() {
    let fixture = TraceFixture::new().machine("07:00:00", There).machine("07:30:00", Gone);
    let found = violations(&fixture.done(), day().to);
    assert_eq!(
        found[0].to_string(),
        "lab/bench-01 at 2026-11-09T07:00:00Z: a Machine was created while none was wanted"
    );
}

#[test]
fn staying_after_the_grace_period_is_a_violation() {
    let fixture = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .phase("18:00:00", Phase::ShuttingDown)
        .machine("18:05:06", Terminating)
        .machine("18:05:10", Gone)
        .phase("18:05:11", Phase::Inactive);
    check(
        fixture,
        &["lab/bench-01 at 2026-11-09T18:05:05Z: the Machine was not deleted within 5m after its window"],
    );
}

/// A drain that pods block from 18:00:05 until `released`, with the Machine deleted at `deleted`.
fn held(released: &str, deleted: &str) -> TraceFixture {
    TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .phase("18:00:00", Phase::ShuttingDown)
        .held("18:00:05", true)
        .error("18:05:00", "drain deadline passed")
        .held(released, false)
        .phase(released, Phase::ShuttingDown)
        .machine(deleted, Terminating)
        .machine("20:30:00", Gone)
        .phase("20:30:01", Phase::Inactive)
}

#[test]
fn a_blocked_drain_is_not_late() {
    check(held("20:24:00", "20:28:30"), &[]);
    check(
        held("18:30:00", "20:28:30"),
        &["lab/bench-01 at 2026-11-09T18:35:05Z: the Machine was not deleted within 5m after its window"],
    );
    let forced = held("20:24:00", "20:28:30").done();
    let mut forced_entries = forced;
    for entry in &mut forced_entries.entries {
        if let crate::sandbox::trace::Fact::Object(_, Some(snapshot)) = &mut entry.fact
            && let Some(spec) = &mut snapshot.spec
        {
            std::sync::Arc::make_mut(spec).handling.on_timeout = five_spot_api::OnTimeout::Force;
        }
    }
    let found = violations(&forced_entries, day().to);
    assert_eq!(found.len(), 1, "with Force nothing may block the drain: {found:?}");
    assert!(found[0].to_string().contains("at 2026-11-09T18:05:05Z: the Machine was not deleted"));
}

#[test]
fn a_kill_switch_gives_no_grace() {
    let killed = |deleted: &str| {
        TraceFixture::new()
            .machine("09:00:00", There)
            .phase("09:00:00", Phase::Active)
            .ready("09:01:00", true)
            .spec("12:00:00", &json!({"killSwitch": true}))
            .phase("12:00:00", Phase::ShuttingDown)
            .machine(deleted, Terminating)
            .machine("12:01:00", Gone)
            .phase("12:01:00", Phase::Terminated)
    };
    check(killed("12:00:01"), &[]);
    check(
        killed("12:00:06"),
        &["lab/bench-01 at 2026-11-09T12:00:05Z: the Machine should have been deleted at once but was not"],
    );
    let inactive = killed("12:00:01").phase("14:00:00", Phase::Inactive);
    let found = violations(&inactive.done(), day().to);
    assert!(found[0].to_string().ends_with(
        "in phase Inactive instead of Terminated although no Machine was wanted and none existed"
    ));
}

#[test]
fn an_owner_gets_a_machine_back_at_once() {
    let fixture = TraceFixture::new()
        .machine("09:00:00", There)
        .phase("09:00:00", Phase::Active)
        .ready("09:01:00", true)
        .reclaimed("12:00:00")
        .phase("12:00:00", Phase::EmergencyRemove)
        .machine("12:03:00", Terminating)
        .machine("12:03:10", Gone);
    check(
        fixture,
        &["lab/bench-01 at 2026-11-09T12:00:05Z: the Machine should have been deleted at once but was not"],
    );
}

#[test]
fn a_deleted_machine_that_does_not_go() {
    check(
        TraceFixture::good().machine("18:03:00", Gone).phase("18:03:01", Phase::Inactive),
        &["lab/bench-01 at 2026-11-09T18:02:06Z: the deleted Machine still existed"],
    );
}

#[test]
fn an_error_without_a_blocked_drain_is_a_violation() {
    check(
        TraceFixture::good().and_gone().error("20:00:00", "no such kind").phase("21:00:00", Phase::Inactive),
        &["lab/bench-01 at 2026-11-09T20:00:00Z: in phase Error: no such kind"],
    );
}

#[test]
fn a_deleted_object_that_stays_is_a_violation() {
    let deleted = || TraceFixture::new().deleted("07:00:00").phase("07:00:00", Phase::ShuttingDown);
    check(deleted().forgotten("07:00:02"), &[]);
    check(
        deleted().forgotten("07:11:00"),
        &["lab/bench-01 at 2026-11-09T07:10:05Z: the object was deleted but still exists"],
    );
}

#[test]
fn ignoring_an_override_is_a_violation() {
    let until = json!({"override": {"state": "up", "until": "2026-11-09T23:00:00Z", "reason": "late"}});
    let ignored = TraceFixture::good().and_gone().spec("20:00:00", &until);
    check(
        ignored,
        &["lab/bench-01 at 2026-11-09T20:00:00Z: there was no Machine for 3h although one was wanted"],
    );
}

#[test]
fn invalid_and_paused_objects_have_no_expectation() {
    check(TraceFixture::new().nonsense("08:00:00"), &[]);
    check(TraceFixture::new().paused("08:00:00"), &[]);
}

#[test]
fn unfinished_intervals_are_not_checked() {
    let trace = TraceFixture::new().machine("09:00:00", There).phase("09:00:00", Phase::Active).done();
    assert_eq!(violations(&trace, crate::sandbox::trace_fixture::at("09:20:00")), []);
}
