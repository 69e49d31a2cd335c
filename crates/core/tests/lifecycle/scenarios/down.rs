//! Going down gracefully, or at once.

use super::at_work;
use crate::simulation::{Simulation, time};
use five_spot_api::{OverrideState, Phase};
use five_spot_core::FaultKind;
use five_spot_core::action::EventCause;
use five_spot_core::world::Slot;

#[test]
fn the_window_closes_the_node_is_drained_and_everything_goes() {
    let mut simulation = at_work();
    simulation.start_pods(&["a", "b"]);
    simulation.advance_to("2026-11-16T18:00:00Z");
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Ready"), ("False", "ShuttingDown"));
    assert_eq!(simulation.condition("Drained"), ("False", "Draining"));
    assert_eq!(simulation.take_log(), ["cordon node desk-1", "evict pod shop/a", "evict pod shop/b"]);
    assert_eq!(simulation.take_events(), ["ScheduleInactive", "GracePeriodActive", "NodeDraining"]);
    let drain = simulation.world.status.drain.clone().unwrap();
    assert_eq!((drain.total, drain.evicted), (2, 0));
    simulation.advance_to("2026-11-16T18:00:10Z");
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
    assert_eq!(simulation.take_events(), ["NodeDrained", "MachineDeleted"]);
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(simulation.condition("Ready"), ("True", "Inactive"));
    assert_eq!(simulation.condition("Drained"), ("True", "Drained"));
    let status = &simulation.world.status;
    assert_eq!((&status.machine_ref, &status.node_ref, &status.shutdown_started_at), (&None, &None, &None));
    assert_eq!((status.drain.as_ref().unwrap().total, status.drain.as_ref().unwrap().evicted), (2, 2));
    assert_eq!(status.workload_cluster, None);
    simulation.advance_to("2026-11-17T09:00:00Z");
    assert_eq!(simulation.world.status.drain, None, "kept until the next activation");
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_blocked_drain_fails_at_its_deadline_and_recovers() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.advance_to("2026-11-16T18:04:59Z");
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Drained"), ("False", "Blocked"));
    let blocked = &simulation.world.status.drain.as_ref().unwrap().blocked;
    assert_eq!(blocked[0].pod, "shop/web");
    assert_eq!(blocked[0].reason, "disruption budget web allows none");
    simulation.take_events();
    simulation.advance_to("2026-11-16T18:05:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "DrainTimedOut"));
    assert_eq!(simulation.decide().fault.unwrap().kind, FaultKind::DrainTimedOut);
    assert_eq!(simulation.take_events(), ["ReconcileFailed"]);
    assert!(matches!(simulation.world.machine, Slot::Ours(_)), "the Machine stays");
    assert!(simulation.node().unschedulable, "the cordon stays");
    simulation.take_log();
    simulation.advance_to("2026-11-16T18:12:29Z");
    assert_eq!(
        simulation.take_log(),
        ["evict pod shop/web"; 3],
        "at 30, 90 and 210 seconds past the deadline"
    );
    simulation.budget_blocks = false;
    simulation.advance_to("2026-11-16T18:13:00Z");
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(simulation.take_events(), ["Recovered", "NodeDrained", "MachineDeleted"]);
}

#[test]
fn force_deletes_the_machine_at_the_deadline() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.force_on_timeout();
    simulation.edit(|spec| spec.node_drain_timeout = "1m".to_owned());
    simulation.advance_to("2026-11-16T18:00:59Z");
    simulation.take_log();
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T18:01:00Z");
    assert_eq!(
        simulation.take_log(),
        ["publish DrainForced", "make Cluster API skip its drain", "delete the Machine"]
    );
    assert!(simulation.machine().volume_wait_excluded);
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_forced_end_of_cluster_apis_own_drain_is_reported() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.force_on_timeout();
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T18:01:00Z");
    // Someone deletes the Machine by hand: from now on Cluster API drains its node.
    simulation.machine().terminating = true;
    simulation.advance_to("2026-11-16T18:04:59Z");
    simulation.take_log();
    simulation.take_events();
    simulation.advance_to("2026-11-16T18:05:00Z");
    assert_eq!(simulation.take_log(), ["publish DrainForced", "make Cluster API skip its drain"]);
    assert_eq!(simulation.take_events(), ["DrainForced"]);
}

#[test]
fn a_shutdown_is_cancelled_when_the_machine_is_wanted_again() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.advance_to("2026-11-16T18:01:00Z");
    assert!(simulation.node().unschedulable);
    simulation.take_log();
    simulation.take_events();
    simulation.overrule(OverrideState::Up, "2026-11-16T20:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_log(), ["uncordon node desk-1"]);
    assert_eq!(simulation.take_events(), ["ScheduleActive"]);
    assert_eq!(simulation.world.status.shutdown_started_at, None);
    assert_eq!(simulation.world.status.drain, None);
    assert_eq!(simulation.condition("Scheduled"), ("True", "Override"));
    simulation.budget_blocks = false;
    simulation.advance_to("2026-11-16T20:00:00Z");
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
}

#[test]
fn a_node_that_someone_else_cordoned_is_never_uncordoned() {
    let mut simulation = at_work();
    simulation.node().unschedulable = true;
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.advance_to("2026-11-16T18:01:00Z");
    simulation.overrule(OverrideState::Up, "2026-11-16T20:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert!(simulation.node().unschedulable);
    assert!(!simulation.log.iter().any(|line| line.contains("cordon")), "{:?}", simulation.log);
}

#[test]
fn cordon_before_cordons_ahead_of_the_end() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.drain.cordon_before = "30m".to_owned());
    simulation.advance_to("2026-11-16T17:29:59Z");
    assert!(!simulation.node().unschedulable);
    simulation.advance_to("2026-11-16T17:30:00Z");
    assert!(simulation.node().unschedulable);
    assert_eq!(simulation.phase(), Phase::Active);
    simulation.overrule(OverrideState::Up, "2026-11-16T20:00:00Z");
    simulation.settle();
    assert!(!simulation.node().unschedulable, "the end has moved away");
}

#[test]
fn the_kill_switch_removes_at_once_and_can_be_reset() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.reconcile();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    simulation.settle();
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
    assert_eq!(simulation.phase(), Phase::Terminated);
    assert_eq!(simulation.condition("Ready"), ("True", "Terminated"));
    assert_eq!(simulation.take_events(), ["KillSwitchActivated", "MachineDeleted"]);
    assert_eq!(simulation.world.status.next_activation, None);
    assert!(!simulation.reconcile(), "nothing is written while it is on");
    simulation.edit(|spec| spec.kill_switch = false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn the_kill_switch_ends_a_drain_even_under_deletion() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.delete_object();
    simulation.advance_to("2026-11-16T10:00:30Z");
    assert!(!simulation.object_gone);
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    assert!(simulation.object_gone);
}

#[test]
fn disabling_shuts_down_gracefully() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.edit(|spec| spec.schedule.enabled = false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.take_events(), ["GracePeriodActive", "NodeDraining"]);
    simulation.advance_to("2026-11-16T10:00:10Z");
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(simulation.condition("Scheduled"), ("False", "Disabled"));
    assert_eq!(simulation.condition("Ready"), ("True", "Disabled"));
    assert_eq!(simulation.take_events(), ["NodeDrained", "MachineDeleted", "ScheduleDisabled"]);
    assert_eq!(simulation.world.status.in_schedule, Some(true), "whatever enabled says");
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn events_are_named_after_the_boundary_or_edit() {
    let mut simulation = at_work();
    simulation.now = time("2026-11-16T18:00:07Z");
    let cause = |simulation: &Simulation| simulation.decide().events[0].cause.clone();
    assert_eq!(
        cause(&simulation),
        EventCause::Instant(time("2026-11-16T18:00:00Z")),
        "however late it was noticed"
    );
    let mut simulation = at_work();
    simulation.overrule(OverrideState::Down, "2026-11-16T12:00:00Z");
    assert_eq!(cause(&simulation), EventCause::Generation(2));
}
