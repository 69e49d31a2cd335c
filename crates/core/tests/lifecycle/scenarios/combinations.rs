//! Emergencies, deletions and pauses at the same time.

use super::at_work;
use crate::simulation::{Simulation, time};
use five_spot_api::{OverrideState, Phase, ReclaimResume};
use five_spot_core::action::Action;
use five_spot_core::world::{NodeFact, PauseLevel, Slot};

fn names(actions: &[Action]) -> Vec<String> {
    actions.iter().map(ToString::to_string).collect()
}

/// A pod whose finalizer keeps it on the node.
fn stuck_pod(simulation: &mut Simulation) {
    for pod in &mut simulation.pods {
        if let Some(termination) = &mut pod.terminating {
            termination.until = time("2026-11-17T00:00:00Z");
        }
    }
}

/// A reclaim that waits for a pod.
fn reclaiming() -> Simulation {
    let mut simulation = at_work();
    simulation.start_pods(&["stuck"]);
    simulation.ask_for_reclaim();
    simulation.reconcile();
    simulation.reconcile();
    stuck_pod(&mut simulation);
    simulation.settle();
    simulation.take_log();
    assert_eq!(simulation.phase(), Phase::EmergencyRemove);
    simulation
}

#[test]
fn a_kill_switch_ends_the_wait_of_a_reclaim() {
    let mut simulation = reclaiming();
    simulation.provider_works = false;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    let log = simulation.take_log();
    assert!(log.contains(&"delete the Machine".to_owned()), "{log:?}");
    assert!(simulation.machine().drain_excluded);
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Terminated);
    assert!(simulation.world.status.reclaims[0].finished_at.is_some());
    assert!(!simulation.spec.schedule.enabled);
}

#[test]
fn the_finalizer_timeout_keeps_the_drain_excluded() {
    type Cause = fn(&mut Simulation);
    let causes: [(&str, Cause, bool); 4] = [
        ("kill switch", |s| s.edit(|spec| spec.kill_switch = true), true),
        ("reclaim", Simulation::ask_for_reclaim, true),
        (
            "force",
            |s| {
                s.force_on_timeout();
                s.edit(|spec| {
                    spec.graceful_shutdown_timeout = "1h".to_owned();
                    spec.node_drain_timeout = "1h".to_owned();
                });
            },
            true,
        ),
        ("error", |_| {}, false),
    ];
    for (name, cause, excluded) in causes {
        let mut simulation = at_work();
        simulation.start_pods(&["web"]);
        simulation.budget_blocks = true;
        simulation.provider_works = false;
        cause(&mut simulation);
        // The pause hides the emergency until the time is over.
        if name != "force" {
            simulation.world.object.paused = Some(PauseLevel::All);
        }
        simulation.delete_object();
        simulation.advance_to("2026-11-16T10:09:59Z");
        simulation.world.object.paused = None;
        simulation.now = time("2026-11-16T10:10:00Z");
        simulation.settle();
        assert!(simulation.object_gone, "{name}");
        assert!(simulation.machine().terminating, "{name}");
        let is_excluded = simulation.machine().drain_excluded;
        assert_eq!(is_excluded, excluded, "{name}: {:?}", simulation.log);
        if name == "force" {
            assert!(simulation.take_events().contains(&"DrainForced".to_owned()));
        }
    }
}

#[test]
fn an_orphaning_deletion_stops_a_reclaim_and_a_kill_switch() {
    for reclaim in [true, false] {
        let mut simulation = at_work();
        simulation.start_pods(&["web"]);
        if reclaim {
            simulation.ask_for_reclaim();
        } else {
            simulation.edit(|spec| spec.kill_switch = true);
        }
        simulation.delete_object();
        simulation.world.object.deletion.as_mut().unwrap().orphan = true;
        simulation.settle();
        assert!(simulation.object_gone);
        assert!(!simulation.machine().terminating);
        assert_eq!(simulation.take_log(), ["remove the finalizer"], "reclaim: {reclaim}");
    }
}

#[test]
fn a_second_reclaim_of_the_same_node_is_recorded_first() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.ask_for_reclaim();
    let mut record = simulation.decide().status.reclaims[0].clone();
    record.requested_at.0 = time("2026-11-16T09:30:00Z");
    record.finished_at = Some(record.requested_at.clone());
    simulation.world.status.reclaims = vec![record];
    let decision = simulation.decide();
    assert_eq!(decision.status.reclaims.len(), 2);
    assert!(decision.relies_on_record(&simulation.world));
}

#[test]
fn an_old_resume_annotation_does_not_answer_a_new_reclaim() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.reclaim.resume = ReclaimResume::OnAnnotation);
    simulation.world.object.resume = Some(time("2026-11-16T09:30:00Z"));
    simulation.ask_for_reclaim();
    simulation.node().reclaim.as_mut().unwrap().requested_at = Some(time("2026-11-16T09:00:00Z"));
    simulation.settle();
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.condition("Scheduled"), ("False", "AwaitingResume"));
}

#[test]
fn reclaims_are_counted_across_a_clock_that_is_set_back() {
    let mut simulation = at_work();
    let mut seen = Vec::new();
    for now in ["2026-11-16T10:00:00Z", "2026-11-16T10:03:00Z", "2026-11-16T10:01:00Z"] {
        simulation.now = time(now);
        simulation.edit(|spec| spec.schedule.enabled = true);
        simulation.settle();
        simulation.ask_for_reclaim();
        simulation.settle();
        seen.extend(simulation.take_events());
    }
    assert!(seen.contains(&"RapidReReclaim".to_owned()), "{seen:?}");
}

#[test]
fn a_reclaim_does_not_wait_for_a_node_that_is_not_there() {
    for node in [NodeFact::Gone, NodeFact::NotYet, NodeFact::Mismatch { name: "desk-1".into() }] {
        let mut simulation = reclaiming();
        simulation.world.node = node;
        let expected = ["make Cluster API skip its drain", "delete the Machine", "disable the schedule"];
        assert_eq!(names(&simulation.decide().actions)[..3], expected);
    }
}

#[test]
fn a_reclaim_is_not_finished_while_the_machine_is_unknown() {
    let mut simulation = reclaiming();
    simulation.world.machine = Slot::Unknown;
    simulation.world.node = NodeFact::NotYet;
    simulation.edit(|spec| spec.schedule.enabled = false);
    let decision = simulation.decide();
    assert_eq!(decision.status.phase, Some(Phase::EmergencyRemove));
    assert_eq!(decision.status.reclaims[0].finished_at, None);
}

#[test]
fn provider_objects_stay_while_the_machine_is_unknown() {
    let mut killed = at_work();
    killed.edit(|spec| spec.kill_switch = true);
    for mut simulation in [killed, reclaiming()] {
        simulation.world.machine = Slot::Unknown;
        let actions = simulation.decide().actions;
        let deletes = |action: &Action| {
            matches!(action, Action::DeleteInfrastructure { .. } | Action::DeleteBootstrap { .. })
        };
        assert!(!actions.iter().any(deletes), "{actions:?}");
    }
}

#[test]
fn a_kill_switch_that_is_lifted_at_once_has_its_effect() {
    let mut simulation = at_work();
    simulation.provider_works = false;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.reconcile();
    simulation.edit(|spec| spec.kill_switch = false);
    simulation.settle();
    assert!(simulation.machine().terminating, "a deletion cannot be taken back");
    assert_eq!(simulation.condition("Ready"), ("False", "WaitingForOldMachine"));
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert!(!simulation.machine().terminating);
}

#[test]
fn precedence_of_everything_at_once() {
    for (deletion, kill_switch, pause, deletes) in [
        (false, false, None, false),
        (false, true, None, true),
        (true, true, None, true),
        (true, false, None, false),
        (true, true, Some(PauseLevel::Ordinary), true),
        (false, true, Some(PauseLevel::Ordinary), true),
        (true, true, Some(PauseLevel::All), false),
        (false, false, Some(PauseLevel::All), false),
    ] {
        let mut simulation = reclaiming();
        simulation.provider_works = false;
        simulation.overrule(OverrideState::Up, "2026-11-17T00:00:00Z");
        simulation.edit(|spec| spec.kill_switch = kill_switch);
        simulation.world.object.paused = pause;
        if deletion {
            simulation.delete_object();
        }
        simulation.settle();
        let case = format!("deletion {deletion}, kill switch {kill_switch}, pause {pause:?}");
        assert_eq!(simulation.machine().terminating, deletes, "{case}");
        assert_eq!(simulation.phase(), Phase::EmergencyRemove, "{case}");
        assert!(pause != Some(PauseLevel::All) || simulation.take_log().is_empty(), "{case}");
    }
}
