//! The owner wants the machine back.

use super::at_work;
use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::{OverrideState, Phase, ReclaimResume};
use five_spot_core::world::PauseLevel;
use jiff::SignedDuration;

#[test]
fn a_reclaim_removes_the_machine_and_disables_the_schedule() {
    let mut simulation = at_work();
    simulation.start_pods(&["web", "job"]);
    simulation.budget_blocks = true;
    simulation.pods[1].drain = five_spot_core::world::PodDrain::Skip;
    simulation.edit(|spec| spec.reclaim.pod_grace_period = "2s".to_owned());
    simulation.settle();
    simulation.take_log();
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::EmergencyRemove);
    assert_eq!(simulation.take_log(), ["cordon node desk-1", "delete pod shop/web", "delete pod shop/job"]);
    assert_eq!(simulation.world.status.reclaims[0].reason, "process-match: java");
    assert_eq!(simulation.world.status.reclaims[0].finished_at, None);
    assert_eq!(simulation.take_events(), ["EmergencyReclaim", "NodeDraining"]);
    simulation.advance_to("2026-11-16T10:00:02Z");
    let ended = [
        "make Cluster API skip its drain",
        "delete the Machine",
        "disable the schedule",
        "publish EmergencyReclaimDisabledSchedule",
        "clear the reclaim request on node desk-1",
    ];
    assert_eq!(simulation.take_log(), ended);
    assert_eq!(
        simulation.take_events(),
        ["NodeDrained", "EmergencyReclaimDisabledSchedule", "MachineDeleted"]
    );
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.condition("Scheduled"), ("False", "EmergencyReclaimDisabledSchedule"));
    assert_eq!(simulation.condition("Ready"), ("True", "Disabled"));
    assert_eq!(
        simulation.world.status.reclaims[0].finished_at.as_ref().unwrap().0,
        time("2026-11-16T10:00:02Z")
    );
    assert!(!simulation.spec.schedule.enabled);
    simulation.advance_to("2026-11-16T12:00:00Z");
    assert_eq!(simulation.condition("Scheduled"), ("False", "EmergencyReclaimDisabledSchedule"));
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    simulation.edit(|spec| spec.schedule.enabled = false);
    simulation.settle();
    assert_eq!(simulation.condition("Scheduled"), ("False", "Disabled"), "by hand this time");
}

#[test]
fn on_annotation_only_the_annotation_resumes() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.condition("Scheduled"), ("False", "AwaitingResume"));
    assert_eq!(simulation.condition("Ready"), ("True", "Disabled"));
    assert!(simulation.world.status.message.as_ref().unwrap().contains("5spot.finos.org/resume"));
    simulation.take_log();

    // A GitOps tool writes what its repository says, an override included.
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.overrule(OverrideState::Up, "2026-11-17T00:00:00Z");
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert_eq!(simulation.condition("Scheduled"), ("False", "AwaitingResume"));
    assert_eq!(simulation.world.status.next_activation, None, "nobody knows when");
    assert_eq!(simulation.take_log(), [""; 0]);

    // A time before the reclaim is of another one; one that is to come counts from then on.
    simulation.world.object.resume = Some(time("2026-11-16T09:59:59Z"));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    simulation.world.object.resume = Some(time("2026-11-16T11:30:00Z"));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    simulation.advance_to("2026-11-16T11:30:00Z");
    assert_eq!(simulation.phase(), Phase::Active);

    // The machine that came stays, whatever becomes of the annotation.
    simulation.world.object.resume = None;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);

    // The next reclaim needs an annotation of its own.
    simulation.world.object.resume = Some(time("2026-11-16T11:30:00Z"));
    simulation.advance_to("2026-11-16T12:00:00Z");
    simulation.ask_for_reclaim();
    simulation.settle();
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.condition("Scheduled"), ("False", "AwaitingResume"));
}

#[test]
fn on_annotation_the_schedule_has_to_be_enabled_too() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
    simulation.ask_for_reclaim();
    simulation.settle();
    simulation.world.object.resume = Some(simulation.now);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.condition("Scheduled"), ("False", "EmergencyReclaimDisabledSchedule"));
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_change_to_on_annotation_takes_no_lent_machine_away() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.settle();
    simulation.advance_to("2026-11-16T11:00:00Z");
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_reclaim_waits_at_most_a_minute_for_pods() {
    let mut simulation = at_work();
    simulation.start_pods(&["stuck"]);
    simulation.ask_for_reclaim();
    simulation.reconcile();
    simulation.reconcile();
    simulation.pods[0].terminating.as_mut().unwrap().until = time("2026-11-16T23:00:00Z");
    simulation.advance_to("2026-11-16T10:00:59Z");
    assert!(!simulation.machine().terminating);
    simulation.advance_to("2026-11-16T10:01:00Z");
    assert_eq!(simulation.phase(), Phase::Disabled);
}

#[test]
fn a_reclaim_removes_an_up_override_and_takes_precedence() {
    let mut simulation = Simulation::new(office_hours());
    simulation.overrule(OverrideState::Up, "2026-11-17T00:00:00Z");
    simulation.advance_to("2026-11-16T08:30:00Z");
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.spec.r#override, None);
}

#[test]
fn a_reclaim_in_the_middle_of_a_drain_starts_its_own_minute() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.advance_to("2026-11-16T18:04:00Z");
    simulation.take_log();
    simulation.ask_for_reclaim();
    simulation.reconcile();
    assert_eq!(simulation.take_log(), ["delete pod shop/web"]);
    assert_eq!(simulation.world.status.shutdown_started_at.as_ref().unwrap().0, time("2026-11-16T18:04:00Z"));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
}

#[test]
fn a_reclaim_under_deletion_does_not_edit_the_spec() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.delete_object();
    simulation.settle();
    simulation.ask_for_reclaim();
    simulation.settle();
    assert!(simulation.object_gone);
    assert!(simulation.spec.schedule.enabled);
}

#[test]
fn a_finished_request_is_not_carried_out_again() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    let stale = simulation.world.node.clone();
    simulation.settle();
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    simulation.take_log();
    simulation.world.node = stale;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.world.status.reclaims.len(), 1);
}

#[test]
fn three_reclaims_within_ten_minutes_are_a_loop() {
    let mut simulation = at_work();
    let mut loops = Vec::new();
    for minute in [0, 4, 8, 9, 30] {
        simulation.now = time("2026-11-16T10:00:00Z") + SignedDuration::from_mins(minute);
        simulation.edit(|spec| spec.schedule.enabled = true);
        simulation.settle();
        simulation.ask_for_reclaim();
        simulation.settle();
        loops.push(simulation.take_events().iter().any(|reason| reason == "RapidReReclaim"));
    }
    assert_eq!(loops, [false, false, true, true, false]);
    assert_eq!(simulation.world.status.reclaims.len(), 5);
    for hour in 0..8 {
        simulation.now = time("2026-11-17T09:00:00Z") + SignedDuration::from_hours(hour);
        simulation.edit(|spec| spec.schedule.enabled = true);
        simulation.settle();
        simulation.ask_for_reclaim();
        simulation.settle();
    }
    assert_eq!(simulation.world.status.reclaims.len(), 10);
    assert_eq!(simulation.world.status.reclaims[0].requested_at.0, time("2026-11-17T16:00:00Z"));
}

#[test]
fn a_reclaim_acts_under_an_ordinary_pause_and_waits_under_all() {
    let mut simulation = at_work();
    simulation.world.object.paused = Some(PauseLevel::All);
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.world.status.reclaims, []);
    assert_eq!(simulation.phase(), Phase::EmergencyRemove);
    simulation.world.object.paused = Some(PauseLevel::Ordinary);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert!(simulation.take_events().contains(&"EmergencyReclaim".to_owned()));
}

#[test]
fn a_second_request_of_the_same_node_is_a_new_reclaim() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    let mut first = simulation.decide().status.reclaims.remove(0);
    first.requested_at.0 = time("2026-11-16T09:00:00Z");
    first.finished_at = Some(first.requested_at.clone());
    simulation.world.status.reclaims = vec![first];
    simulation.settle();
    assert_eq!(simulation.world.status.reclaims.len(), 2);
    assert_eq!(simulation.take_events()[0], "EmergencyReclaim");
}

#[test]
fn a_down_override_does_not_keep_a_reclaim_unfinished() {
    let mut simulation = at_work();
    simulation.overrule(OverrideState::Down, "2026-11-16T09:30:00Z");
    simulation.settle();
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert!(simulation.spec.r#override.is_some(), "it is none of the reclaim's business");
}

/// An agent that is restarted while the program still runs requests the reclaim again, with a later time.
#[test]
fn a_request_repeated_during_a_reclaim_is_the_same_reclaim() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.edit(|spec| spec.reclaim.pod_grace_period = "30s".to_owned());
    simulation.settle();
    simulation.take_events();
    simulation.ask_for_reclaim();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::EmergencyRemove);
    simulation.advance_to("2026-11-16T10:00:10Z");
    simulation.ask_for_reclaim();
    simulation.settle();
    simulation.advance_to("2026-11-16T10:05:00Z");
    assert_eq!(simulation.phase(), Phase::Disabled);
    let reclaims = &simulation.world.status.reclaims;
    assert_eq!(reclaims.len(), 1);
    assert_eq!(reclaims[0].requested_at.0, time("2026-11-16T10:00:00Z"));
    assert!(reclaims[0].finished_at.is_some());
    let events = simulation.take_events();
    assert_eq!(events.iter().filter(|reason| *reason == "EmergencyReclaim").count(), 1, "{events:?}");
}
