//! The stages of a reclaim, with their times.

use super::at_work;
use crate::simulation::{Simulation, time};
use five_spot_api::reclaim::ReclaimRequest;
use five_spot_api::{Phase, ReclaimStage, ReclaimStages};
use five_spot_core::world::{FormerNode, NodeFact, PauseLevel, Slot};
use jiff::{SignedDuration, Timestamp};

fn stages(simulation: &Simulation) -> ReclaimStages {
    simulation.world.status.reclaims[0].stages.clone().expect("stages")
}

/// The milliseconds from the request to each stage that was reached.
fn millis(stages: &ReclaimStages) -> [Option<i128>; 4] {
    ReclaimStage::ALL.map(|stage| stages.duration(stage).map(|duration| duration.as_millis()))
}

fn request(simulation: &mut Simulation, requested_at: Option<Timestamp>) {
    let reason = "process-match: java".to_owned();
    simulation.node().reclaim = Some(ReclaimRequest { reason, requested_at });
}

fn pass(simulation: &mut Simulation, millis: i64) {
    simulation.now += SignedDuration::from_millis(millis);
}

#[test]
fn every_stage_is_recorded_once_with_its_time() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.edit(|spec| spec.reclaim.pod_grace_period = "2s".to_owned());
    simulation.settle();
    let requested_at = simulation.now + SignedDuration::from_micros(1_234_567);
    request(&mut simulation, Some(requested_at));
    simulation.now = requested_at;
    pass(&mut simulation, 20);
    simulation.settle();
    assert_eq!(millis(&stages(&simulation)), [Some(20), None, None, None]);
    assert_eq!(stages(&simulation).requested_at.0, requested_at, "not rounded to seconds");

    // The pods have gone, and so has the Machine; its Node has not.
    simulation.provider_works = false;
    pass(&mut simulation, 2000);
    simulation.settle();
    assert_eq!(millis(&stages(&simulation)), [Some(20), Some(2020), Some(2020), None]);
    pass(&mut simulation, 500);
    simulation.world.node = NodeFact::Gone;
    simulation.settle();
    assert_eq!(millis(&stages(&simulation)), [Some(20), Some(2020), Some(2020), Some(2520)]);

    simulation.provider_works = true;
    pass(&mut simulation, 500);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(millis(&stages(&simulation)), [Some(20), Some(2020), Some(2020), Some(2520)]);
}

#[test]
fn a_time_in_the_future_or_without_sense_counts_as_now() {
    let ahead = |now: Timestamp| Some(now + SignedDuration::from_hours(1));
    for requested_at in [ahead as fn(Timestamp) -> Option<Timestamp>, |_| None] {
        let mut simulation = at_work();
        let now = simulation.now;
        request(&mut simulation, requested_at(now));
        simulation.reconcile();
        assert_eq!(millis(&stages(&simulation)), [Some(0), None, None, None]);
    }
}

#[test]
fn a_node_that_outlives_its_machine_is_measured_when_it_goes() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.world.former_node = FormerNode::LeftBehind;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(millis(&stages(&simulation))[3], None);
    pass(&mut simulation, 90_000);
    simulation.world.former_node = FormerNode::Gone;
    simulation.settle();
    assert_eq!(millis(&stages(&simulation))[3], Some(90_000));
    assert_eq!(simulation.world.status.node_ref, None);
}

#[test]
fn a_node_that_joined_again_under_its_name_is_another_one() {
    let mut simulation = at_work();
    simulation.provider_works = false;
    simulation.ask_for_reclaim();
    simulation.settle();
    pass(&mut simulation, 3000);
    simulation.node().uid = "another".into();
    simulation.settle();
    assert_eq!(millis(&stages(&simulation))[3], Some(3000));
}

#[test]
fn the_machine_of_a_later_loan_changes_no_old_reclaim() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.settle();
    let first = stages(&simulation);
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.advance_to("2026-11-16T19:00:00Z");
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(stages(&simulation), first);
}

#[test]
fn pods_that_stay_are_not_reported_as_gone() {
    let mut simulation = at_work();
    simulation.start_pods(&["stuck"]);
    simulation.ask_for_reclaim();
    simulation.reconcile();
    simulation.reconcile();
    simulation.pods[0].terminating.as_mut().unwrap().until = time("2026-11-16T23:00:00Z");
    simulation.advance_to("2026-11-16T10:01:00Z");
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(millis(&stages(&simulation))[1..], [None, Some(60_000), Some(60_000)]);
}

#[test]
fn a_record_of_an_older_controller_gets_no_stages() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.reconcile();
    simulation.world.status.reclaims[0].stages = None;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.world.status.reclaims[0].stages, None);
}

#[test]
fn a_machine_that_cannot_be_read_is_not_reported_as_deleted() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.reconcile();
    simulation.world.machine = Slot::Unknown;
    assert_eq!(simulation.decide().status.reclaims[0].stages.as_ref().unwrap().machine_deleted_at, None);
}

#[test]
fn a_node_that_goes_during_a_pause_is_measured() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    simulation.world.former_node = FormerNode::LeftBehind;
    simulation.settle();
    simulation.world.object.paused = Some(PauseLevel::All);
    simulation.world.former_node = FormerNode::Gone;
    simulation.settle();
    assert_eq!(millis(&stages(&simulation))[3], Some(0));
}
