//! Emergencies while other components are broken.

use super::{at_work, unusable};
use crate::simulation::{Simulation, time};
use five_spot_api::{Phase, WorkloadCluster};
use five_spot_core::Evidence;
use five_spot_core::action::Action;
use five_spot_core::text;
use five_spot_core::world::{NodeFact, PauseLevel, Slot, Workload, WorkloadProblem};

fn names(actions: &[Action]) -> Vec<String> {
    actions.iter().map(ToString::to_string).collect()
}

fn lose_workload(simulation: &mut Simulation) {
    let cluster = WorkloadCluster::of_secret("prod-kubeconfig", "value");
    simulation.world.workload = unusable(cluster, WorkloadProblem::Unreachable, "the cluster is unreachable");
    simulation.world.node = NodeFact::Unknown;
}

#[test]
fn a_kill_switch_does_not_need_the_workload_cluster() {
    let mut simulation = at_work();
    lose_workload(&mut simulation);
    simulation.edit(|spec| spec.kill_switch = true);
    let decision = simulation.decide();
    assert_eq!(decision.evidence, Evidence::BestEffort);
    assert!(!decision.relies_on_record(&simulation.world));
    assert_eq!(names(&decision.actions), ["make Cluster API skip its drain", "delete the Machine"]);
    assert_eq!(decision.status.phase, Some(Phase::ShuttingDown), "the workload cluster is no fault of this");
    assert_eq!(
        decision.status.message.as_deref(),
        Some("deleting Machine desk-machine without draining its node; spec.killSwitch is true")
    );
    assert!(decision.status.node_ref.is_some(), "where its node was stays on record");
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Terminated);
}

#[test]
fn a_kill_switch_does_not_wait_for_the_workload_cluster() {
    let mut simulation = at_work();
    let cluster = simulation.world.workload.cluster().clone();
    simulation.world.workload = Workload::Pending(cluster);
    simulation.world.node = NodeFact::Unknown;
    simulation.world.infrastructure = Slot::Unknown;
    simulation.edit(|spec| spec.kill_switch = true);
    let decision = simulation.decide();
    assert_eq!(decision.evidence, Evidence::BestEffort);
    assert_eq!(names(&decision.actions), ["make Cluster API skip its drain", "delete the Machine"]);
    assert!(decision.status.infrastructure_ref.is_some(), "what cannot be seen stays on record");
}

#[test]
fn unknown_objects_do_not_count_as_gone() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.provider_works = false;
    simulation.settle();
    simulation.world.machine = Slot::Absent;
    simulation.world.bootstrap = Slot::Absent;
    simulation.world.infrastructure = Slot::Unknown;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    simulation.world.infrastructure = Slot::Absent;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Terminated);
}

#[test]
fn a_deleted_object_waits_for_unknown_objects_until_timeout() {
    let mut simulation = at_work();
    simulation.provider_works = false;
    simulation.delete_object();
    simulation.world.machine = Slot::Absent;
    simulation.world.bootstrap = Slot::Absent;
    simulation.world.infrastructure = Slot::Unknown;
    simulation.settle();
    assert!(!simulation.object_gone);
    simulation.advance_to("2026-11-16T10:10:00Z");
    assert!(simulation.object_gone);
}

#[test]
fn a_reclaim_that_cannot_be_recorded_still_times_out() {
    let mut simulation = at_work();
    simulation.start_pods(&["stubborn"]);
    simulation.ask_for_reclaim();
    simulation.node().reclaim.as_mut().unwrap().requested_at = Some(time("2026-11-16T09:58:00Z"));
    simulation.world.unrecorded_since = Some(time("2026-11-16T09:59:30Z"));
    let decision = simulation.decide();
    assert_eq!(decision.evidence, Evidence::BestEffort);
    assert!(decision.relies_on_record(&simulation.world), "it should be on record before the Node is gone");
    assert_eq!(decision.wake_at, Some(time("2026-11-16T10:00:30Z")));
    simulation.world.unrecorded_since = Some(time("2026-11-16T09:59:00Z"));
    let decision = simulation.decide();
    let expected = [
        "make Cluster API skip its drain",
        "disable the schedule",
        "delete the Machine",
        "publish EmergencyReclaimDisabledSchedule",
        "clear the reclaim request on node desk-1",
    ];
    assert_eq!(names(&decision.actions_without_record()), expected);
    let recorded = ["make Cluster API skip its drain", "delete the Machine", "disable the schedule"];
    assert_eq!(names(&decision.actions)[..3], recorded);
}

#[test]
fn pods_get_their_time_although_the_status_was_refused_before() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.world.unrecorded_since = Some(time("2026-11-16T09:00:00Z"));
    simulation.ask_for_reclaim();
    let decision = simulation.decide();
    assert_eq!(names(&decision.actions), ["cordon node desk-1"]);
    assert_eq!(decision.wake_at, Some(time("2026-11-16T10:01:00Z")));
    simulation.now = time("2026-11-16T10:01:00Z");
    assert!(names(&simulation.decide().actions).contains(&"delete the Machine".to_owned()));
    // A time in the future does not postpone the end.
    simulation.node().reclaim.as_mut().unwrap().requested_at = Some(time("2099-01-01T00:00:00Z"));
    assert!(names(&simulation.decide().actions).contains(&"delete the Machine".to_owned()));
}

#[test]
fn a_reclaim_waits_for_the_workload_cluster_until_timeout() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.ask_for_reclaim();
    let began = simulation.decide();
    simulation.world.status = began.status;
    let cluster = simulation.world.workload.cluster().clone();
    let seen = std::mem::replace(&mut simulation.world.node, NodeFact::Unknown);
    simulation.world.workload = Workload::Pending(cluster.clone());
    assert_eq!(names(&simulation.decide().actions), [""; 0]);
    simulation.now = time("2026-11-16T10:01:00Z");
    assert!(names(&simulation.decide().actions).contains(&"delete the Machine".to_owned()));
    simulation.now = time("2026-11-16T10:00:01Z");
    simulation.world.workload =
        unusable(cluster, WorkloadProblem::Unreachable, "the cluster does not respond");
    assert!(names(&simulation.decide().actions).contains(&"delete the Machine".to_owned()));
    simulation.world.workload = at_work().world.workload;
    simulation.world.node = seen;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Disabled);
}

#[test]
fn a_timed_out_reclaim_skips_the_workload_cluster() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.ask_for_reclaim();
    simulation.world.status = simulation.decide().status;
    simulation.node().unschedulable = false;
    simulation.now = time("2026-11-16T10:01:00Z");
    assert_eq!(
        names(&simulation.decide().actions)[..2],
        ["make Cluster API skip its drain", "delete the Machine"]
    );
}

#[test]
fn a_long_reason_and_a_future_time_are_bounded() {
    let mut simulation = at_work();
    simulation.ask_for_reclaim();
    let request = simulation.node().reclaim.as_mut().unwrap();
    request.reason = "é\n".repeat(100_000);
    request.requested_at = Some(time("2099-01-01T00:00:00Z"));
    let decision = simulation.decide();
    let record = &decision.status.reclaims[0];
    assert!(record.reason.len() <= 256, "{}", record.reason.len());
    assert!(!record.reason.contains('\n'));
    assert_eq!(record.requested_at.0, simulation.now);
    assert!(serde_json::to_vec(&decision.status).unwrap().len() < 16_000);
}

#[test]
fn a_cluster_api_pause_that_blocks_a_removal_is_reported() {
    let mut simulation = at_work();
    simulation.machine().capi_paused = true;
    simulation.provider_works = false;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    let message = &simulation.world.status.conditions.iter().find(|c| c.type_ == "Paused").unwrap().message;
    assert_eq!(
        message,
        "Machine desk-machine is being deleted, but Cluster API ignores the deletion because of annotation \
         cluster.x-k8s.io/paused on Machine team/desk-machine; remove the pause to let it continue"
    );
}

#[test]
fn only_pause_all_stops_the_finalizer_timeout() {
    for (pause, is_held) in
        [(None, false), (Some(PauseLevel::Ordinary), false), (Some(PauseLevel::All), true)]
    {
        let mut simulation = at_work();
        simulation.provider_works = false;
        simulation.world.cluster.as_mut().unwrap().paused = true;
        simulation.world.object.paused = pause;
        simulation.delete_object();
        simulation.settle();
        assert_eq!(simulation.take_log(), [""; 0], "held until its bound");
        simulation.advance_to("2026-11-16T10:10:00Z");
        assert_eq!(simulation.take_log().contains(&"delete the Machine".to_owned()), !is_held, "{pause:?}");
    }
}

#[test]
fn a_forced_drain_names_the_budget_whatever_the_pods_are_called() {
    let mut simulation = at_work();
    simulation.force_on_timeout();
    let names: Vec<String> = (0..25).map(|number| format!("web-{number:02}-{}", "x".repeat(200))).collect();
    simulation.start_pods(&names.iter().map(String::as_str).collect::<Vec<&str>>());
    simulation.budget_blocks = true;
    simulation.provider_works = false;
    simulation.now = time("2026-11-16T18:00:00Z");
    simulation.settle();
    simulation.take_notes();
    simulation.advance_to("2026-11-16T18:05:00Z");
    let notes = simulation.take_notes();
    let forced = notes.iter().find_map(|note| note.strip_prefix("DrainForced: ")).expect("an event");
    assert!(forced.len() <= 4096, "{} bytes", forced.len());
    // What an event has room for.
    let event = text::bounded(forced, text::MAX_NOTE);
    for part in ["disruption budget", "with 25 pods on its node: shop/web-00-"] {
        assert!(event.contains(part), "{part:?} in {event}");
    }
}

#[test]
fn a_paused_removal_names_the_pause_of_cluster_api() {
    let mut simulation = at_work();
    simulation.provider_works = false;
    simulation.world.object.paused = Some(PauseLevel::Ordinary);
    simulation.machine().capi_paused = true;
    simulation.world.cluster.as_mut().unwrap().paused = true;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    assert!(simulation.machine().terminating);
    assert_eq!(simulation.condition("Paused"), ("True", "CapiAnnotation"));
    let condition = simulation.world.status.conditions.iter().find(|one| one.type_ == "Paused").unwrap();
    let message = &condition.message;
    assert!(!message.contains("5spot.finos.org/paused"), "{message}");
    for part in ["cluster.x-k8s.io/paused on Machine team/desk-machine", "spec.paused of Cluster team/"] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

#[test]
fn a_deletion_keeps_its_deadline_while_status_is_refused() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.budget_blocks = true;
    simulation.force_on_timeout();
    simulation.provider_works = false;
    simulation.delete_object();
    simulation.world.unrecorded_since = Some(simulation.now);
    // The next reconcile does not find what this one decided.
    let decided = simulation.decide();
    assert_eq!(decided.status.shutdown_started_at.as_ref().map(|time| time.0), Some(simulation.now));
    let started = simulation.now;
    simulation.now = time("2026-11-16T10:04:59Z");
    let decided = simulation.decide();
    assert_eq!(decided.status.shutdown_started_at.as_ref().map(|time| time.0), Some(started));
    let deletes = |decision: &five_spot_core::Decision| {
        decision.actions.iter().any(|action| matches!(action, Action::DeleteMachine { .. }))
    };
    assert!(!deletes(&decided));
    simulation.now = time("2026-11-16T10:05:00Z");
    assert!(deletes(&simulation.decide()));
}

#[test]
fn a_forced_drain_names_the_pods_that_are_lost() {
    let mut simulation = at_work();
    simulation.force_on_timeout();
    simulation.start_pods(&["web-0", "web-1"]);
    simulation.budget_blocks = true;
    simulation.provider_works = false;
    simulation.now = time("2026-11-16T18:00:00Z");
    simulation.settle();
    simulation.take_notes();
    simulation.advance_to("2026-11-16T18:05:00Z");
    let notes = simulation.take_notes();
    let forced = notes.iter().find(|note| note.starts_with("DrainForced: ")).expect("an event");
    assert!(
        forced.ends_with("; deleting Machine desk-machine with 2 pods on its node: shop/web-0, shop/web-1"),
        "{forced}"
    );
    assert!(forced.contains("disruption budget"), "{forced}");
}
