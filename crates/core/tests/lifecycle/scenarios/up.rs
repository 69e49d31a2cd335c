//! Coming up, and staying up.

use super::{at_work, with_taints};
use crate::simulation::{MONDAY, Simulation, labels, office_hours, time};
use five_spot_api::{OverrideState, Phase};
use five_spot_core::Fingerprint;
use five_spot_core::world::{NodeFact, Readiness, Slot};
use jiff::SignedDuration;

#[test]
fn a_window_that_opens_only_creates_provider_objects() {
    let mut simulation = Simulation::new(office_hours());
    simulation.settle();
    assert!(!simulation.decide().only_creates_provider_objects(&simulation.world));
    simulation.now = time("2026-11-16T09:00:00Z");
    assert!(simulation.decide().only_creates_provider_objects(&simulation.world));
    simulation.settle();
    assert!(!simulation.decide().only_creates_provider_objects(&simulation.world));
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
    assert_eq!(status.next_activation.as_ref().unwrap().0, time("2026-11-16T09:00:00Z"));
    assert_eq!(status.next_cleanup.as_ref().unwrap().0, time("2026-11-16T18:00:00Z"));
    assert_eq!(status.next_change.as_deref(), Some("2026-11-16T09:00:00Z"));
    assert_eq!(status.last_scheduled_time, None);
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    assert_eq!(simulation.take_events(), [""; 0]);
}

#[test]
fn objects_are_created_in_order_when_the_window_opens() {
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
    assert_eq!(status.last_scheduled_time.as_ref().unwrap().0, time("2026-11-16T09:00:00Z"));
    assert_eq!(status.join.as_ref().unwrap().last_seconds, Some(0));
    assert!(status.workload_cluster.is_some());
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
fn a_machine_deleted_by_hand_is_recreated() {
    let mut simulation = at_work();
    simulation.machine().terminating = true;
    simulation.provider_works = false;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Pending);
    assert_eq!(simulation.condition("Ready"), ("False", "WaitingForOldMachine"));
    simulation.provider_works = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    let made = ["apply the bootstrap object", "apply the infrastructure object", "apply the Machine"];
    assert_eq!(simulation.take_log(), made);
}

#[test]
fn a_template_change_applies_and_a_provider_change_replaces() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.machine_template.labels = labels(&[("team", "blue")]));
    simulation.settle();
    assert_eq!(simulation.take_log(), ["apply the Machine"]);
    simulation.start_pods(&["web"]);
    simulation.edit(|spec| {
        spec.infrastructure_spec.spec.insert("address".into(), "10.0.0.7".into());
    });
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Ready"), ("False", "Replacing"));
    assert_eq!(simulation.take_log(), ["cordon node desk-1", "evict pod shop/web"]);
    simulation.advance_to("2026-11-16T10:01:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    let replaced = [
        "make Cluster API skip its drain",
        "delete the Machine",
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(simulation.take_log(), replaced);
}

#[test]
fn drift_is_corrected_and_missing_objects_are_recreated() {
    let mut simulation = at_work();
    simulation.machine().intact = false;
    if let Slot::Ours(bootstrap) = &mut simulation.world.bootstrap {
        bootstrap.intact = false;
    }
    simulation.world.infrastructure = Slot::Absent;
    simulation.settle();
    let mended = ["apply the bootstrap object", "apply the infrastructure object", "apply the Machine"];
    assert_eq!(simulation.take_log(), mended);
}

#[test]
fn a_deleted_infrastructure_object_replaces_the_machine() {
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
fn leftovers_of_a_crash_are_reused_or_removed() {
    let mut simulation = Simulation::new(office_hours());
    simulation.now = time("2026-11-16T09:30:00Z");
    simulation.reconcile_until(2);
    simulation.take_log();
    simulation.settle();
    assert_eq!(simulation.take_log(), ["apply the infrastructure object", "apply the Machine"]);

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
    assert_eq!(simulation.take_log(), ["delete the infrastructure object", "delete the bootstrap object"]);
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_machine_that_does_not_join_is_recreated_after_5_minutes() {
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
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
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
            "ScheduleActive",
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

#[test]
fn a_second_failure_to_join_waits_its_own_five_minutes() {
    let mut simulation = Simulation::new(office_hours());
    simulation.nodes_join = false;
    simulation.advance_to("2026-11-16T09:44:59Z");
    assert_eq!(simulation.phase(), Phase::Active, "the second Machine has had no twenty minutes yet");
    simulation.advance_to("2026-11-16T09:45:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    simulation.take_log();
    simulation.advance_to("2026-11-16T09:49:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.nodes_join = true;
    simulation.advance_to("2026-11-16T09:50:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn any_remaining_object_prevents_the_phase_inactive() {
    for infrastructure in [false, true] {
        let mut simulation = Simulation::new(office_hours());
        simulation.now = time("2026-11-16T09:30:00Z");
        simulation.reconcile_until(3);
        if infrastructure {
            simulation.world.bootstrap = Slot::Absent;
        } else {
            simulation.world.infrastructure = Slot::Absent;
        }
        simulation.provider_works = false;
        simulation.now = time("2026-11-16T18:30:00Z");
        simulation.settle();
        assert_eq!(simulation.phase(), Phase::ShuttingDown);
        simulation.provider_works = true;
        simulation.settle();
        assert_eq!(simulation.phase(), Phase::Inactive);
    }
}

#[test]
fn the_message_names_the_node_and_the_cause() {
    let mut simulation = at_work();
    let message = |simulation: &Simulation| simulation.world.status.message.clone().unwrap_or_default();
    assert_eq!(message(&simulation), "Machine desk-machine is lent as node desk-1; the schedule is open");
    simulation.world.node = NodeFact::Gone;
    simulation.settle();
    assert_eq!(
        message(&simulation),
        "Machine desk-machine exists, but its node is not in the cluster; the schedule is open"
    );
}
