//! The object is deleted.

use super::at_work;
use crate::simulation::time;
use five_spot_api::Phase;
use five_spot_core::action::Action;
use five_spot_core::world::NodeFact;
use five_spot_core::{Evidence, FaultKind};

#[test]
fn deletion_shuts_down_gracefully_and_releases_the_object() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.delete_object();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Scheduled"), ("False", "Deleted"));
    assert!(!simulation.object_gone);
    simulation.advance_to("2026-11-16T10:00:10Z");
    assert!(simulation.object_gone);
    assert_eq!(simulation.log.last().unwrap(), "remove the finalizer");
    assert_eq!(
        simulation.take_events(),
        ["GracePeriodActive", "NodeDraining", "NodeDrained", "MachineDeleted"]
    );
}

#[test]
fn a_timed_out_cleanup_is_reported_once_and_released() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.delete_object();
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T10:09:59Z");
    assert_eq!(simulation.phase(), Phase::Error, "the drain deadline has passed");
    assert!(!simulation.machine().terminating);
    simulation.take_log();
    simulation.take_events();
    simulation.advance_to("2026-11-16T10:10:00Z");
    assert_eq!(simulation.take_log(), ["delete the Machine", "remove the finalizer"]);
    assert_eq!(simulation.take_events(), ["FinalizerCleanupTimedOut"]);
    assert!(simulation.object_gone);
    assert!(!simulation.machine().drain_excluded, "the rest is under CAPI's own drain");
}

#[test]
fn strict_mode_keeps_the_finalizer_and_reports_once() {
    let mut simulation = at_work();
    simulation.world.policy.force_finalizer_on_timeout = false;
    simulation.delete_object();
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert!(!simulation.object_gone);
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "FinalizerCleanupTimedOut"));
    let said = simulation.take_events();
    assert_eq!(said.iter().filter(|reason| *reason == "FinalizerCleanupTimedOut").count(), 1);
    assert!(!simulation.reconcile(), "nothing more is written");
    simulation.provider_works = true;
    simulation.settle();
    assert!(simulation.object_gone, "it recovers by itself");
}

#[test]
fn a_refused_machine_deletion_does_not_keep_the_object() {
    let mut simulation = at_work();
    simulation.delete_object();
    simulation.machine().delete_refused = true;
    simulation.world.node = NodeFact::Unknown;
    simulation.advance_to("2026-11-16T10:10:00Z");
    assert!(simulation.object_gone);
    assert!(!simulation.machine().terminating);
}

#[test]
fn strict_mode_tries_a_refused_machine_deletion_again() {
    let mut simulation = at_work();
    simulation.world.policy.force_finalizer_on_timeout = false;
    simulation.delete_object();
    simulation.machine().delete_refused = true;
    simulation.world.node = NodeFact::Unknown;
    simulation.now = time("2026-11-16T10:10:00Z");
    let decision = simulation.decide();
    let machine = simulation.machine().uid.clone();
    assert_eq!(decision.actions, [Action::DeleteMachine { machine }]);
    assert_eq!(decision.evidence, Evidence::BestEffort);
    assert_eq!(decision.fault.map(|fault| fault.kind), Some(FaultKind::CleanupTimedOut));
}

#[test]
fn orphan_deletion_releases_the_object_and_leaves_the_machine() {
    let mut simulation = at_work();
    simulation.delete_object();
    simulation.world.object.deletion.as_mut().unwrap().orphan = true;
    simulation.settle();
    assert!(simulation.object_gone);
    assert!(!simulation.machine().terminating);
    assert_eq!(simulation.take_log(), ["remove the finalizer"]);
}

#[test]
fn a_deleted_object_without_our_finalizer_is_left_alone() {
    let mut simulation = at_work();
    simulation.delete_object();
    simulation.world.object.has_finalizer = false;
    assert_eq!(simulation.decide().actions, []);
}

#[test]
fn a_kill_switch_acts_on_a_deleted_object_without_our_finalizer() {
    let mut simulation = at_work();
    simulation.delete_object();
    // Someone else's finalizer keeps the object, so the garbage collector does not delete the Machine.
    simulation.world.object.has_finalizer = false;
    simulation.edit(|spec| spec.kill_switch = true);
    let decision = simulation.decide();
    let machine = simulation.machine().uid.clone();
    assert!(decision.actions.contains(&Action::DeleteMachine { machine }), "{:?}", decision.actions);
    assert!(!decision.actions.contains(&Action::RemoveFinalizer));
}
