//! The brake: removals that were not planned are held when the gate is closed. All others go, whatever the gate says.

use super::at_work;
use crate::simulation::{Simulation, time};
use five_spot_api::{OverrideState, Phase};
use five_spot_core::Unplanned;
use five_spot_core::world::{PauseLevel, RemovalGate};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A lent machine under a brake that lets nothing unplanned go.
fn braked() -> Simulation {
    let mut simulation = at_work();
    simulation.world.brake.gate = RemovalGate::Closed;
    simulation.take_log();
    simulation.take_events();
    simulation
}

#[track_caller]
fn check_held(simulation: &mut Simulation) {
    assert_eq!(simulation.condition("Paused"), ("True", "TooManyRemovals"));
    assert_eq!(simulation.condition("Ready"), ("False", "Paused"));
    assert_eq!(simulation.take_log(), [""; 0]);
    let removal = simulation.world.status.unplanned_removal.as_ref().expect("it is recorded");
    assert_eq!((&removal.begun_at, &simulation.world.status.shutdown_started_at), (&None, &None));
    assert_eq!(simulation.take_events(), ["TooManyRemovals"]);
    assert_eq!(simulation.decide().unplanned, Some(Unplanned::Held));
}

#[track_caller]
fn check_gone(simulation: &Simulation, phase: Phase) {
    assert_eq!(simulation.phase(), phase);
    assert_eq!(simulation.condition("Paused").0, "False");
    assert_eq!(simulation.world.status.unplanned_removal, None);
}

#[test]
fn an_ordinary_closing_does_not_ask() {
    let mut simulation = braked();
    simulation.advance_to("2026-11-16T18:30:00Z");
    check_gone(&simulation, Phase::Inactive);
}

#[test]
fn a_closing_that_was_missed_is_still_planned() {
    let mut simulation = braked();
    simulation.now = time("2026-11-18T03:00:00Z");
    simulation.settle();
    check_gone(&simulation, Phase::Inactive);
}

#[test]
fn the_wish_of_a_person_does_not_ask() {
    type Wish = (fn(&mut Simulation), Phase);
    let wishes: [Wish; 5] = [
        (
            |simulation| simulation.edit(|spec| spec.schedule.hours_of_day = Some(vec!["20".to_owned()])),
            Phase::Inactive,
        ),
        (|simulation| simulation.edit(|spec| spec.schedule.enabled = false), Phase::Disabled),
        (|simulation| simulation.edit(|spec| spec.kill_switch = true), Phase::Terminated),
        (|simulation| simulation.overrule(OverrideState::Down, "2026-11-17T00:00:00Z"), Phase::Inactive),
        (Simulation::ask_for_reclaim, Phase::Disabled),
    ];
    for (wish, phase) in wishes {
        let mut simulation = braked();
        simulation.world.brake.clock_is_trusted = false;
        wish(&mut simulation);
        simulation.settle();
        assert_eq!(simulation.phase(), phase);
        assert_eq!(simulation.condition("Paused").0, "False");
    }
}

#[test]
fn a_boundary_that_moved_is_held_until_the_recorded_time() {
    let mut simulation = braked();
    // Recorded with other time-zone data, by which the window is open until seven.
    simulation.world.status.next_cleanup = Some(Time(time("2026-11-16T19:00:00Z")));
    simulation.now = time("2026-11-16T18:10:00Z");
    simulation.settle();
    check_held(&mut simulation);
    simulation.advance_to("2026-11-16T18:59:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.take_events(), [""; 0], "it is announced once");
    simulation.advance_to("2026-11-16T19:10:00Z");
    check_gone(&simulation, Phase::Inactive);
}

#[test]
fn a_clock_that_is_not_trusted_closes_no_window() {
    let mut simulation = braked();
    simulation.world.brake.clock_is_trusted = false;
    simulation.advance_to("2026-11-16T18:10:00Z");
    check_held(&mut simulation);
    // A restart trusts the clock, because it has not seen it jump; the hold goes on for a while.
    simulation.world.brake.clock_is_trusted = true;
    simulation.advance_to("2026-11-16T18:59:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.advance_to("2026-11-16T19:30:00Z");
    check_gone(&simulation, Phase::Inactive);
}

#[test]
fn a_clock_far_back_closes_no_window() {
    let mut simulation = braked();
    simulation.now = time("2026-11-08T10:00:00Z");
    simulation.world.brake.clock_is_trusted = false;
    simulation.settle();
    check_held(&mut simulation);
    simulation.now = time("2026-11-16T10:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.world.status.unplanned_removal, None, "a machine is wanted again");
}

#[test]
fn a_clock_far_ahead_is_forgotten_when_it_is_right_again() {
    let mut simulation = braked();
    simulation.now = time("2026-11-16T19:00:00Z");
    simulation.world.brake.clock_is_trusted = false;
    simulation.settle();
    check_held(&mut simulation);
    simulation.now = time("2026-11-16T10:05:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.world.brake.clock_is_trusted = true;
    simulation.advance_to("2026-11-16T18:30:00Z");
    check_gone(&simulation, Phase::Inactive);
}

#[test]
fn the_gate_lets_a_held_removal_go_and_records_when() {
    let mut simulation = braked();
    simulation.world.brake.clock_is_trusted = false;
    simulation.advance_to("2026-11-16T18:10:00Z");
    check_held(&mut simulation);
    simulation.world.brake.gate = RemovalGate::Open;
    simulation.advance_to("2026-11-16T18:20:00Z");
    assert_eq!(simulation.phase(), Phase::Inactive);
    let removal = simulation.world.status.unplanned_removal.clone().expect("it counts for a while");
    assert_eq!(removal.begun_at, Some(Time(time("2026-11-16T18:10:00Z"))));
    simulation.world.brake.clock_is_trusted = true;
    simulation.advance_to("2026-11-17T09:10:00Z");
    assert_eq!(simulation.world.status.unplanned_removal, None, "until a machine is wanted again");
}

#[test]
fn an_unplanned_removal_is_asked_for() {
    let mut simulation = braked();
    simulation.world.brake.gate = RemovalGate::Unasked;
    simulation.world.brake.clock_is_trusted = false;
    simulation.now = time("2026-11-16T18:10:00Z");
    assert_eq!(simulation.decide().unplanned, Some(Unplanned::Asks));
    assert_eq!(simulation.decide().actions, []);
    // Something else holds it back: nobody need be asked.
    simulation.world.object.paused = Some(PauseLevel::Ordinary);
    assert_eq!(simulation.decide().unplanned, Some(Unplanned::Held));
}

#[test]
fn a_planned_closing_during_a_pause_stays_planned() {
    let mut simulation = braked();
    simulation.world.object.paused = Some(PauseLevel::Ordinary);
    simulation.advance_to("2026-11-16T18:10:00Z");
    assert_eq!(simulation.condition("Paused"), ("True", "ObjectAnnotation"));
    simulation.world.object.paused = None;
    simulation.now += SignedDuration::from_mins(1);
    simulation.settle();
    check_gone(&simulation, Phase::Inactive);
}
