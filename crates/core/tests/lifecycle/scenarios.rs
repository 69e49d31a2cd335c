//! The lifecycle as a person would tell it, one story a test.

use crate::simulation::{MONDAY, Simulation, labels, office_hours, time};
use five_spot_api::{NodeTaint, OverrideState, Phase, TaintEffect};
use five_spot_core::world::{
    Failure, Failures, NodeFact, PauseLevel, Readiness, ReferenceProblem, ReferenceProblemKind, Slot,
    Workload,
};
use five_spot_core::{FaultKind, Fingerprint};
use jiff::SignedDuration;

fn at_work() -> Simulation {
    let mut simulation = Simulation::new(office_hours());
    simulation.advance_to("2026-11-16T10:00:00Z");
    simulation.take_log();
    simulation.take_events();
    simulation
}

fn with_taints(taints: &[(&str, &str)]) -> Vec<NodeTaint> {
    let taint = |(key, value): &(&str, &str)| NodeTaint {
        key: (*key).to_owned(),
        value: Some((*value).to_owned()),
        effect: TaintEffect::NoSchedule,
    };
    taints.iter().map(taint).collect()
}

#[test]
fn a_new_object_outside_its_window_is_inactive_and_ready() {
    let mut simulation = Simulation::new(office_hours());
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(simulation.condition("Ready"), ("True", "Inactive"));
    assert_eq!(simulation.condition("Scheduled"), ("False", "OutsideWindow"));
    assert_eq!(simulation.condition("MachineReady"), ("False", "NoMachine"));
    let status = &simulation.world.status;
    assert_eq!(status.in_schedule, Some(false));
    assert_eq!(
        status.next_activation.as_ref().unwrap().0,
        time("2026-11-16T09:00:00Z")
    );
    assert_eq!(
        status.next_cleanup.as_ref().unwrap().0,
        time("2026-11-16T18:00:00Z")
    );
    assert_eq!(status.next_change.as_deref(), Some("2026-11-16T09:00:00Z"));
    assert_eq!(status.last_scheduled_time, None);
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    assert_eq!(simulation.take_events(), [""; 0]);
}

#[test]
fn the_window_opens_at_the_second_and_the_objects_are_made_in_order() {
    let mut simulation = Simulation::new(office_hours());
    simulation.settle();
    assert_eq!(simulation.decide().wake_at, Some(time("2026-11-16T09:00:00Z")));
    simulation.now = time("2026-11-16T08:59:59Z");
    assert_eq!(simulation.decide().actions, []);
    simulation.advance_to("2026-11-16T09:00:00Z");
    let made = [
        "add the finalizer",
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(simulation.take_log(), made);
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("Ready"), ("True", "NodeReady"));
    assert_eq!(simulation.condition("MachineReady"), ("True", "NodeReady"));
    assert_eq!(simulation.condition("Scheduled"), ("True", "InWindow"));
    assert_eq!(simulation.take_events(), ["ScheduleActive", "MachineCreated"]);
    let status = &simulation.world.status;
    assert_eq!(status.machine_ref.as_ref().unwrap().name, "desk-machine");
    assert_eq!(status.bootstrap_ref.as_ref().unwrap().kind, "K0sWorkerConfig");
    assert_eq!(status.infrastructure_ref.as_ref().unwrap().name, "desk-infra");
    assert_eq!(status.node_ref.as_ref().unwrap().name, "desk-1");
    assert_eq!(status.provider_id.as_deref(), Some("remote://desk"));
    assert_eq!(
        status.last_scheduled_time.as_ref().unwrap().0,
        time("2026-11-16T09:00:00Z")
    );
    assert_eq!(status.join.as_ref().unwrap().last_seconds, Some(0));
    assert!(status.workload_cluster.is_some());
}

#[test]
fn the_window_closes_the_node_is_drained_and_everything_goes() {
    let mut simulation = at_work();
    simulation.start_pods(&["a", "b"]);
    simulation.advance_to("2026-11-16T18:00:00Z");
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Ready"), ("False", "ShuttingDown"));
    assert_eq!(simulation.condition("Drained"), ("False", "Draining"));
    assert_eq!(
        simulation.take_log(),
        ["cordon node desk-1", "evict pod shop/a", "evict pod shop/b"]
    );
    assert_eq!(
        simulation.take_events(),
        ["ScheduleInactive", "GracePeriodActive", "NodeDraining"]
    );
    let drain = simulation.world.status.drain.clone().unwrap();
    assert_eq!((drain.total, drain.evicted), (2, 0));
    simulation.advance_to("2026-11-16T18:00:10Z");
    assert_eq!(
        simulation.take_log(),
        ["tell CAPI not to drain", "delete the Machine"]
    );
    assert_eq!(simulation.take_events(), ["NodeDrained", "MachineDeleted"]);
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(simulation.condition("Ready"), ("True", "Inactive"));
    assert_eq!(simulation.condition("Drained"), ("True", "Drained"));
    let status = &simulation.world.status;
    assert_eq!(
        (&status.machine_ref, &status.node_ref, &status.shutdown_started_at),
        (&None, &None, &None)
    );
    assert_eq!(
        (
            status.drain.as_ref().unwrap().total,
            status.drain.as_ref().unwrap().evicted
        ),
        (2, 2)
    );
    assert_eq!(status.workload_cluster, None);
    simulation.advance_to("2026-11-17T09:00:00Z");
    assert_eq!(
        simulation.world.status.drain, None,
        "kept until the next activation"
    );
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_blocked_drain_is_shown_becomes_an_error_at_its_deadline_and_recovers() {
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
    assert!(
        matches!(simulation.world.machine, Slot::Ours(_)),
        "the Machine stays"
    );
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
    assert_eq!(
        simulation.take_events(),
        ["Recovered", "NodeDrained", "MachineDeleted"]
    );
}

#[test]
fn force_deletes_the_machine_at_the_deadline_with_capis_drain_excluded() {
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
        ["tell CAPI not to drain", "delete the Machine"]
    );
    assert!(simulation.machine().volume_wait_excluded);
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
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
    assert!(
        !simulation.log.iter().any(|line| line.contains("cordon")),
        "{:?}",
        simulation.log
    );
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
fn the_kill_switch_removes_at_once_and_lets_go_again() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.reconcile();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    simulation.settle();
    assert_eq!(
        simulation.take_log(),
        ["tell CAPI not to drain", "delete the Machine"]
    );
    assert_eq!(simulation.phase(), Phase::Terminated);
    assert_eq!(simulation.condition("Ready"), ("True", "Terminated"));
    assert_eq!(
        simulation.take_events(),
        ["KillSwitchActivated", "MachineDeleted"]
    );
    assert_eq!(simulation.world.status.next_activation, None);
    assert!(!simulation.reconcile(), "nothing is written while it is on");
    simulation.edit(|spec| spec.kill_switch = false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn the_kill_switch_cuts_a_drain_short_also_under_deletion() {
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
    assert_eq!(
        simulation.take_events(),
        ["NodeDrained", "MachineDeleted", "ScheduleDisabled"]
    );
    assert_eq!(
        simulation.world.status.in_schedule,
        Some(true),
        "whatever enabled says"
    );
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn lead_time_brings_the_machine_up_before_the_window() {
    let mut spec = office_hours();
    spec.schedule.lead_time = "10m".to_owned();
    let mut simulation = Simulation::new(spec);
    simulation.advance_to("2026-11-16T08:50:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("Scheduled"), ("True", "LeadTime"));
    assert_eq!(simulation.world.status.in_schedule, Some(false));
    simulation.advance_to("2026-11-16T09:00:00Z");
    assert_eq!(simulation.condition("Scheduled"), ("True", "InWindow"));
    assert_eq!(simulation.world.status.in_schedule, Some(true));
}

#[test]
fn an_override_down_wins_over_the_window() {
    let mut simulation = at_work();
    simulation.overrule(OverrideState::Down, "2026-11-16T12:00:00Z");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(simulation.condition("Scheduled"), ("False", "OverrideDown"));
    simulation.advance_to("2026-11-16T12:00:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_machine_deleted_by_hand_comes_back() {
    let mut simulation = at_work();
    simulation.machine().terminating = true;
    simulation.provider_works = false;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Pending);
    assert_eq!(simulation.condition("Ready"), ("False", "WaitingForOldMachine"));
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    let made = [
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(simulation.take_log(), made);
}

#[test]
fn a_changed_template_is_applied_in_place_a_changed_provider_spec_replaces() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.machine_template.labels = labels(&[("team", "blue")]));
    simulation.settle();
    assert_eq!(simulation.take_log(), ["apply the Machine"]);
    simulation.start_pods(&["web"]);
    simulation.edit(|spec| {
        drop(
            spec.infrastructure_spec
                .spec
                .insert("address".into(), "10.0.0.7".into()),
        )
    });
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Ready"), ("False", "Replacing"));
    assert_eq!(
        simulation.take_log(),
        ["cordon node desk-1", "evict pod shop/web"]
    );
    simulation.advance_to("2026-11-16T10:01:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    let replaced = [
        "tell CAPI not to drain",
        "delete the Machine",
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(simulation.take_log(), replaced);
}

#[test]
fn drift_is_mended_and_a_missing_provider_object_is_made_again() {
    let mut simulation = at_work();
    simulation.machine().intact = false;
    if let Slot::Ours(bootstrap) = &mut simulation.world.bootstrap {
        bootstrap.intact = false;
    }
    simulation.world.infrastructure = Slot::Absent;
    simulation.settle();
    let mended = [
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(simulation.take_log(), mended);
}

#[test]
fn an_infrastructure_object_on_its_way_out_takes_the_machine_with_it() {
    let mut simulation = at_work();
    if let Slot::Ours(infrastructure) = &mut simulation.world.infrastructure {
        infrastructure.terminating = true;
    }
    simulation.reconcile();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn leftovers_of_a_crashed_run_are_used_if_they_fit_and_removed_if_not() {
    let mut simulation = Simulation::new(office_hours());
    simulation.now = time("2026-11-16T09:30:00Z");
    simulation.reconcile_until(2);
    simulation.take_log();
    simulation.settle();
    assert_eq!(
        simulation.take_log(),
        ["apply the infrastructure object", "apply the Machine"]
    );

    let mut simulation = Simulation::new(office_hours());
    simulation.now = time("2026-11-16T09:30:00Z");
    simulation.reconcile_until(2);
    if let Slot::Ours(bootstrap) = &mut simulation.world.bootstrap {
        bootstrap.machine_hash = Some(Fingerprint::read("another"));
    }
    simulation.take_log();
    simulation.settle();
    assert_eq!(simulation.take_log()[0], "delete the bootstrap object");
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn leftovers_outside_the_window_are_removed() {
    let mut simulation = Simulation::new(office_hours());
    simulation.now = time("2026-11-16T09:30:00Z");
    simulation.reconcile_until(3);
    simulation.now = time("2026-11-16T18:30:00Z");
    simulation.take_log();
    simulation.settle();
    assert_eq!(
        simulation.take_log(),
        ["delete the infrastructure object", "delete the bootstrap object"]
    );
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_name_that_is_taken_is_an_error_and_never_touched() {
    let mut simulation = Simulation::new(office_hours());
    simulation.world.machine = Slot::Foreign {
        owner: "MachineSet workers".to_owned(),
    };
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "NameTaken"));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("desk-machine exists and belongs to MachineSet workers")
    );
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    simulation.world.machine = Slot::Absent;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(
        simulation.take_events(),
        ["ReconcileFailed", "Recovered", "MachineCreated"]
    );
}

#[test]
fn a_missing_cluster_or_provider_kind_is_named_and_waited_for() {
    let mut simulation = Simulation::new(office_hours());
    simulation.world.cluster = None;
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotFound"));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("spec.clusterName: there is no Cluster prod in namespace team")
    );
    simulation.world.cluster = at_work().world.cluster;
    simulation.world.references = vec![ReferenceProblem {
        field: "spec.infrastructureSpec".to_owned(),
        kind: ReferenceProblemKind::Forbidden,
        message: "may not create remotemachines".to_owned(),
    }];
    simulation.settle();
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "Forbidden"));
    assert_eq!(simulation.condition("Ready"), ("False", "Forbidden"));
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    simulation.world.references.clear();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("ReferencesValid"), ("True", "Resolved"));
}

#[test]
fn a_machine_whose_node_does_not_join_is_given_up_and_made_again_after_five_minutes() {
    let mut simulation = Simulation::new(office_hours());
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T09:19:59Z");
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NoNodeYet"));
    assert_eq!(simulation.condition("Ready"), ("False", "NoNodeYet"));
    simulation.take_log();
    simulation.advance_to("2026-11-16T09:20:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
    assert_eq!(
        simulation.take_log(),
        ["tell CAPI not to drain", "delete the Machine"]
    );
    simulation.provider_works = true;
    simulation.advance_to("2026-11-16T09:24:59Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.advance_to("2026-11-16T09:25:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.world.status.join.as_ref().unwrap().failed_at, None);
    assert_eq!(
        simulation.take_events(),
        [
            "ScheduleActive",
            "MachineCreated",
            "ReconcileFailed",
            "Recovered",
            "MachineCreated"
        ]
    );
}

#[test]
fn a_node_that_is_lost_after_it_joined_does_not_fail_the_join() {
    let mut simulation = at_work();
    simulation.node().readiness = Readiness::Unreachable;
    simulation.advance_to("2026-11-16T17:00:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeNotReady"));
    assert_eq!(simulation.condition("Ready"), ("False", "NodeNotReady"));
    assert_eq!(simulation.take_log(), [""; 0]);
}

#[test]
fn joins_are_remembered_newest_first_and_at_most_ten() {
    let mut simulation = Simulation::new(office_hours());
    for day in 16..=27 {
        simulation.provider_works = false;
        simulation.advance_to(&format!("2026-11-{day}T09:00:{day}Z"));
        simulation.provider_works = true;
        simulation.advance_to(&format!("2026-11-{day}T20:00:00Z"));
    }
    let join = simulation.world.status.join.clone().unwrap();
    assert_eq!(join.last_seconds, Some(27));
    assert_eq!(join.recent_seconds, [27, 26, 25, 24, 23, 20, 19, 18, 17, 16]);
    assert_eq!(join.machine_uid, None, "it has gone");
}

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
        [
            "GracePeriodActive",
            "NodeDraining",
            "NodeDrained",
            "MachineDeleted"
        ]
    );
}

#[test]
fn a_cleanup_that_takes_too_long_deletes_the_machine_says_so_once_and_lets_go() {
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
    assert_eq!(
        simulation.take_log(),
        ["delete the Machine", "remove the finalizer"]
    );
    assert_eq!(simulation.take_events(), ["FinalizerCleanupTimedOut"]);
    assert!(simulation.object_gone);
    assert!(
        !simulation.machine().drain_excluded,
        "the rest is under CAPI's own drain"
    );
}

#[test]
fn strict_mode_keeps_the_finalizer_and_says_so_once() {
    let mut simulation = at_work();
    simulation.world.policy.force_finalizer_on_timeout = false;
    simulation.delete_object();
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert!(!simulation.object_gone);
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(
        simulation.condition("Ready"),
        ("False", "FinalizerCleanupTimedOut")
    );
    let said = simulation.take_events();
    assert_eq!(
        said.iter()
            .filter(|reason| *reason == "FinalizerCleanupTimedOut")
            .count(),
        1
    );
    assert!(!simulation.reconcile(), "nothing more is written");
    simulation.provider_works = true;
    simulation.settle();
    assert!(simulation.object_gone, "it recovers by itself");
}

#[test]
fn a_refused_deletion_of_the_machine_does_not_hold_the_object_for_ever() {
    let mut simulation = at_work();
    simulation.delete_object();
    simulation.machine().delete_refused = true;
    simulation.world.node = NodeFact::Unknown;
    simulation.advance_to("2026-11-16T10:10:00Z");
    assert!(simulation.object_gone);
    assert!(!simulation.machine().terminating);
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
fn an_invalid_spec_keeps_the_machine_as_it_is_and_can_still_be_deleted() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.schedule.timezone = "Mars/Base".to_owned());
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Scheduled"), ("False", "InvalidSchedule"));
    assert_eq!(simulation.condition("Ready"), ("False", "InvalidSpec"));
    assert_eq!(simulation.condition("ReferencesValid"), ("True", "Resolved"));
    simulation.advance_to("2026-11-16T20:00:00Z");
    assert!(matches!(simulation.world.machine, Slot::Ours(_)));
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.edit(|spec| spec.cluster_name = "Not A Name".to_owned());
    simulation.settle();
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotAllowed"));
    simulation.delete_object();
    simulation.settle();
    assert!(simulation.object_gone);
}

#[test]
fn an_invalid_spec_still_obeys_the_kill_switch() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.schedule.timezone = "Mars/Base".to_owned());
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    assert!(matches!(simulation.world.machine, Slot::Absent));
    assert_eq!(simulation.phase(), Phase::Terminated);
}

#[test]
fn a_broken_kubeconfig_fails_closed_and_recovers() {
    let cluster = at_work().world.workload.cluster().clone();
    let broken = Workload::Unusable {
        cluster,
        message: "Secret prod-kubeconfig has no key value".to_owned(),
    };
    let mut simulation = Simulation::new(office_hours());
    let reachable = std::mem::replace(&mut simulation.world.workload, broken.clone());
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "KubeconfigInvalid"));
    assert_eq!(
        simulation.take_log(),
        ["add the finalizer"],
        "no Machine whose Node could not be reached"
    );
    simulation.world.workload = reachable;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);

    simulation.world.workload = broken;
    let node = std::mem::replace(&mut simulation.world.node, NodeFact::Unknown);
    simulation.take_log();
    simulation.advance_to("2026-11-16T18:04:59Z");
    assert_eq!(
        simulation.take_log(),
        [""; 0],
        "a node that cannot be asked is not given up"
    );
    simulation.advance_to("2026-11-16T18:30:00Z");
    assert!(matches!(simulation.world.machine, Slot::Ours(_)));
    simulation.world.workload = at_work().world.workload;
    simulation.world.node = node;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_node_of_another_machine_is_never_touched() {
    let mut simulation = at_work();
    simulation.world.node = NodeFact::Mismatch {
        name: "desk-1".into(),
    };
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.advance_to("2026-11-16T18:00:00Z");
    assert_eq!(
        simulation.take_log(),
        ["delete the Machine"],
        "CAPI drains what belongs to it"
    );
}

#[test]
fn taints_are_applied_once_the_node_is_ready_changed_and_taken_off() {
    let mut spec = office_hours();
    spec.node_taints = with_taints(&[("a", "1")]);
    let mut simulation = Simulation::new(spec);
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("Unknown", "NoNodeYet"));
    simulation.now = time("2026-11-16T09:00:00Z");
    simulation.reconcile();
    simulation.machinery();
    simulation.node().readiness = Readiness::NotReady;
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("False", "NodeNotReady"));
    assert_eq!(simulation.node().taints, []);
    simulation.node().readiness = Readiness::Ready;
    simulation.taint_by_hand("theirs");
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("True", "Applied"));
    assert_eq!(simulation.node().taints.len(), 2);
    assert_eq!(
        simulation.world.status.applied_node_taints,
        with_taints(&[("a", "1")])
    );
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "2"), ("b", "1")]));
    simulation.take_log();
    simulation.settle();
    assert_eq!(simulation.take_log(), ["write the taints of node desk-1"]);
    assert_eq!(
        simulation.world.status.applied_node_taints,
        with_taints(&[("a", "2"), ("b", "1")])
    );
    simulation.edit(|spec| spec.node_taints.clear());
    simulation.settle();
    assert_eq!(simulation.take_log(), ["write the taints of node desk-1"]);
    assert_eq!(simulation.condition("NodeTainted"), ("", ""));
    let left: Vec<String> = simulation
        .node()
        .taints
        .iter()
        .map(|taint| taint.key.clone())
        .collect();
    assert_eq!(left, ["theirs"]);
}

#[test]
fn a_taint_conflict_is_reported_and_the_others_are_applied() {
    let mut simulation = at_work();
    simulation.taint_by_hand("a");
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1"), ("b", "1")]));
    simulation.settle();
    assert_eq!(
        simulation.condition("NodeTainted"),
        ("False", "TaintOwnershipConflict")
    );
    assert_eq!(
        simulation.world.status.applied_node_taints,
        with_taints(&[("b", "1")])
    );
    assert_eq!(simulation.condition("Ready"), ("True", "NodeReady"));
}

#[test]
fn taints_that_could_not_be_written_are_reported() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.world.failures = failed(1, false, true);
    assert_eq!(
        simulation
            .decide()
            .status
            .conditions
            .iter()
            .find(|c| c.type_ == "NodeTainted")
            .unwrap()
            .reason,
        "PatchFailed"
    );
}

fn failed(count: u32, refused: bool, taints: bool) -> Failures {
    let retry_at = time("2026-11-16T10:00:30Z");
    Failures {
        count,
        last: Some(Failure {
            message: "CAPI operation failed: no".to_owned(),
            refused,
            taints,
            retry_at,
        }),
    }
}

#[test]
fn passing_trouble_keeps_the_phase_until_five_failures_in_a_row() {
    let mut simulation = at_work();
    simulation.world.failures = failed(4, false, false);
    let decision = simulation.decide();
    assert_eq!(decision.status.phase, Some(Phase::Active));
    assert_eq!(decision.wake_at, Some(time("2026-11-16T10:00:30Z")));
    simulation.settle();
    assert_eq!(simulation.condition("Ready"), ("False", "ReconcileFailed"));
    simulation.world.failures = failed(5, false, false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    simulation.world.failures = Failures::default();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_events(), ["ReconcileFailed", "Recovered"]);
    simulation.world.failures = failed(1, true, false);
    simulation.settle();
    assert_eq!(
        simulation.phase(),
        Phase::Error,
        "a refusal needs someone at once"
    );
}

#[test]
fn a_pause_holds_everything_back_and_shows_what_it_holds() {
    let mut simulation = at_work();
    simulation.world.cluster.as_mut().unwrap().paused = true;
    simulation.advance_to("2026-11-16T18:01:00Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.take_events(), [""; 0]);
    assert_eq!(simulation.condition("Paused"), ("True", "ClusterPaused"));
    assert_eq!(simulation.condition("Ready"), ("False", "Paused"));
    assert_eq!(simulation.condition("Scheduled"), ("False", "OutsideWindow"));
    assert_eq!(
        simulation.world.status.shutdown_started_at, None,
        "no clock runs meanwhile"
    );
    let message = &simulation
        .world
        .status
        .conditions
        .iter()
        .find(|c| c.type_ == "Paused")
        .unwrap()
        .message;
    assert_eq!(message, "held back: cordon node desk-1");
    simulation.now = time("2026-11-16T19:00:00Z");
    simulation.world.cluster.as_mut().unwrap().paused = false;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(
        simulation.take_events(),
        [
            "ScheduleInactive",
            "GracePeriodActive",
            "NodeDraining",
            "NodeDrained",
            "MachineDeleted"
        ]
    );
    assert_eq!(simulation.condition("Paused"), ("False", "NotPaused"));
}

#[test]
fn every_kind_of_pause_holds_and_only_all_holds_the_kill_switch() {
    type Pause = fn(&mut Simulation);
    let pauses: [(Pause, &str, bool); 6] = [
        (
            |s| s.world.cluster.as_mut().unwrap().paused = true,
            "ClusterPaused",
            false,
        ),
        (|s| s.world.object.capi_paused = true, "CapiAnnotation", false),
        (|s| s.machine().capi_paused = true, "CapiAnnotation", false),
        (
            |s| s.world.object.paused = Some(PauseLevel::Ordinary),
            "ObjectAnnotation",
            false,
        ),
        (
            |s| s.world.namespace_pause = Some(PauseLevel::Ordinary),
            "NamespaceAnnotation",
            false,
        ),
        (
            |s| s.world.namespace_pause = Some(PauseLevel::All),
            "NamespaceAnnotation",
            true,
        ),
    ];
    for (pause, reason, holds_kill_switch) in pauses {
        let mut simulation = at_work();
        pause(&mut simulation);
        simulation.edit(|spec| spec.schedule.enabled = false);
        simulation.settle();
        assert_eq!(simulation.condition("Paused"), ("True", reason));
        assert_eq!(simulation.take_log(), [""; 0], "{reason}");
        simulation.edit(|spec| spec.kill_switch = true);
        simulation.settle();
        assert_eq!(simulation.take_log().is_empty(), holds_kill_switch, "{reason}");
    }
}

#[test]
fn a_reclaim_empties_the_node_deletes_the_machine_and_switches_the_schedule_off() {
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
    assert_eq!(
        simulation.take_log(),
        ["cordon node desk-1", "delete pod shop/web", "delete pod shop/job"]
    );
    assert_eq!(simulation.world.status.reclaims[0].reason, "process-match: java");
    assert_eq!(simulation.world.status.reclaims[0].finished_at, None);
    assert_eq!(simulation.take_events(), ["EmergencyReclaim", "NodeDraining"]);
    simulation.advance_to("2026-11-16T10:00:02Z");
    let ended = [
        "tell CAPI not to drain",
        "delete the Machine",
        "disable the schedule",
        "publish EmergencyReclaimDisabledSchedule",
        "clear the reclaim request of node desk-1",
    ];
    assert_eq!(simulation.take_log(), ended);
    assert_eq!(
        simulation.take_events(),
        [
            "NodeDrained",
            "EmergencyReclaimDisabledSchedule",
            "MachineDeleted"
        ]
    );
    assert_eq!(simulation.phase(), Phase::Disabled);
    assert_eq!(
        simulation.condition("Scheduled"),
        ("False", "EmergencyReclaimDisabledSchedule")
    );
    assert_eq!(simulation.condition("Ready"), ("True", "Disabled"));
    assert_eq!(
        simulation.world.status.reclaims[0]
            .finished_at
            .as_ref()
            .unwrap()
            .0,
        time("2026-11-16T10:00:02Z")
    );
    assert!(!simulation.spec.schedule.enabled);
    simulation.advance_to("2026-11-16T12:00:00Z");
    assert_eq!(
        simulation.condition("Scheduled"),
        ("False", "EmergencyReclaimDisabledSchedule")
    );
    simulation.edit(|spec| spec.schedule.enabled = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    simulation.edit(|spec| spec.schedule.enabled = false);
    simulation.settle();
    assert_eq!(
        simulation.condition("Scheduled"),
        ("False", "Disabled"),
        "by hand this time"
    );
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
fn a_reclaim_takes_an_override_up_with_it_and_goes_before_everything() {
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
    assert_eq!(
        simulation.world.status.shutdown_started_at.as_ref().unwrap().0,
        time("2026-11-16T18:04:00Z")
    );
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
fn an_echo_of_a_finished_reclaim_starts_nothing() {
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
        loops.push(
            simulation
                .take_events()
                .iter()
                .any(|reason| reason == "RapidReReclaim"),
        );
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
    assert_eq!(
        simulation.world.status.reclaims[0].requested_at.0,
        time("2026-11-17T16:00:00Z")
    );
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
fn the_agent_comes_with_kill_if_commands_stays_over_night_and_goes_when_cleared() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_if_commands = vec!["java".to_owned()]);
    simulation.settle();
    let placed = [
        "configure the reclaim agent of node desk-1",
        "bring the reclaim agent to node desk-1",
    ];
    assert_eq!(simulation.take_log(), placed);
    simulation.edit(|spec| spec.kill_if_commands.push("steam".to_owned()));
    simulation.settle();
    assert_eq!(
        simulation.take_log(),
        ["configure the reclaim agent of node desk-1"]
    );
    simulation.advance_to("2026-11-16T20:00:00Z");
    assert_eq!(
        simulation.world.agent_configs.len(),
        1,
        "a closing window takes nothing away"
    );
    simulation.advance_to("2026-11-17T10:00:00Z");
    simulation.take_log();
    simulation.edit(|spec| spec.kill_if_commands.clear());
    simulation.settle();
    let removed = [
        "delete the configuration of the reclaim agent of node desk-1",
        "take the reclaim agent off node desk-1",
    ];
    assert_eq!(simulation.take_log(), removed);
}

#[test]
fn the_agents_configuration_follows_the_node_and_goes_with_the_object() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_if_commands = vec!["java".to_owned()]);
    simulation.settle();
    simulation.node().name = "desk-2".into();
    simulation.node().agent_label = false;
    simulation.settle();
    let nodes: Vec<&str> = simulation
        .world
        .agent_configs
        .iter()
        .map(|config| config.node.as_str())
        .collect();
    assert_eq!(nodes, ["desk-2"]);
    simulation.delete_object();
    simulation.settle();
    assert!(simulation.object_gone);
    assert!(simulation.world.agent_configs.is_empty());
}

#[test]
fn nothing_is_written_while_nothing_happens() {
    let mut simulation = at_work();
    simulation.edit(|spec| {
        spec.kill_if_commands = vec!["java".to_owned()];
        spec.node_taints = with_taints(&[("a", "1")]);
    });
    simulation.settle();
    for second in 0..120 {
        simulation.now = time("2026-11-16T10:00:00.25Z") + SignedDuration::from_secs(second);
        assert!(!simulation.reconcile(), "at second {second}");
    }
}

#[test]
fn a_fraction_of_a_second_makes_no_difference() {
    let mut simulation = Simulation::new(office_hours());
    simulation.now = time(MONDAY) + SignedDuration::from_millis(500);
    simulation.settle();
    let written = simulation.world.status.clone();
    let read_back = serde_json::from_value(serde_json::to_value(&written).unwrap()).unwrap();
    assert_eq!(written, read_back);
}
