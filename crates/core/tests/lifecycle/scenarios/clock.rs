//! A clock that is put back or forward.

use super::at_work;
use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::Phase;
use five_spot_core::world::{PauseLevel, Slot};
use jiff::SignedDuration;

/// Steps that a clock takes when a zone was mistaken, or a time server corrects it.
const STEPS: [SignedDuration; 5] = [
    SignedDuration::from_secs(1),
    SignedDuration::from_secs(59),
    SignedDuration::from_mins(10),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(24),
];

#[test]
fn a_clock_step_back_does_not_remove_a_new_machine() {
    for step in STEPS {
        let mut simulation = at_work();
        simulation.now = time("2026-11-16T09:00:00Z") - step + SignedDuration::from_millis(1);
        simulation.settle();
        assert_eq!(simulation.take_log(), [""; 0], "back by {step}");
        assert_eq!(simulation.phase(), Phase::Active);
        simulation.advance_to("2026-11-16T10:00:00Z");
        assert_eq!(simulation.take_log(), [""; 0], "the boundary is not crossed again after {step}");
    }
}

#[test]
fn a_clock_step_back_does_not_recreate_a_removed_machine() {
    for step in STEPS {
        let mut simulation = at_work();
        simulation.advance_to("2026-11-16T18:00:00Z");
        assert_eq!(simulation.phase(), Phase::Inactive);
        simulation.take_log();
        simulation.now = time("2026-11-16T18:00:00Z") - step + SignedDuration::from_millis(1);
        simulation.settle();
        simulation.advance_to("2026-11-16T19:00:00Z");
        assert_eq!(simulation.take_log(), [""; 0], "back by {step}");
    }
}

#[test]
fn a_drain_keeps_its_counts_when_the_clock_is_set_back() {
    let counted = |simulation: &Simulation| {
        let drain = simulation.world.status.drain.as_ref().expect("a drain");
        (drain.evicted, drain.total)
    };
    for step in STEPS {
        let mut simulation = at_work();
        simulation.start_pods(&["api", "web"]);
        simulation.budget_blocks = true;
        simulation.advance_to("2026-11-16T18:01:00Z");
        simulation.pods.retain(|pod| pod.id.name == "web");
        simulation.advance_to("2026-11-16T18:02:00Z");
        assert_eq!(counted(&simulation), (1, 2));
        simulation.now -= step;
        simulation.settle();
        assert_eq!(counted(&simulation), (1, 2), "back by {step}");
        assert_eq!(simulation.phase(), Phase::ShuttingDown);
    }
}

#[test]
fn join_timeout_ignores_the_clock_of_the_api_server() {
    let mut simulation = Simulation::new(office_hours());
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T09:00:00Z");
    if let Slot::Ours(machine) = &mut simulation.world.machine {
        machine.created_at = time("2026-11-15T09:00:00Z");
    }
    simulation.take_log();
    simulation.advance_to("2026-11-16T09:19:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.phase(), Phase::Active);
    simulation.advance_to("2026-11-16T09:20:00Z");
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
}

#[test]
fn join_timeout_starts_when_a_pause_ends() {
    let mut simulation = Simulation::new(office_hours());
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T09:10:00Z");
    simulation.world.object.paused = Some(PauseLevel::Ordinary);
    if let Slot::Ours(machine) = &mut simulation.world.machine {
        machine.uid = "restored".into();
    }
    simulation.advance_to("2026-11-16T09:25:00Z");
    assert_ne!(simulation.condition("Ready"), ("False", "JoinFailed"));
    simulation.world.object.paused = None;
    simulation.advance_to("2026-11-16T09:44:59Z");
    assert_ne!(simulation.condition("Ready"), ("False", "JoinFailed"));
    simulation.advance_to("2026-11-16T09:45:00Z");
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
}

#[test]
fn an_edit_takes_effect_even_after_a_clock_change() {
    let mut simulation = at_work();
    simulation.now = time("2026-11-16T08:30:00Z");
    simulation.edit(|spec| spec.schedule.hours_of_day = Some(vec!["10-17".to_owned()]));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_clock_that_was_a_year_ahead_is_ignored() {
    let mut simulation = Simulation::new(office_hours());
    simulation.now = time("2027-11-16T10:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    simulation.now = time("2026-11-16T07:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
}
