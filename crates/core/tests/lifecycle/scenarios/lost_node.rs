//! A Node that vanishes while its Machine lives, and one that outlives its Machine.

use super::at_work;
use crate::simulation::{Simulation, time};
use five_spot_api::Phase;
use five_spot_core::Evidence;
use five_spot_core::action::NodeRef;
use five_spot_core::world::{FormerNode, NodeFact, Readiness, Slot, Workload};
use jiff::SignedDuration;

#[test]
fn a_lost_node_is_reported_and_replaced_after_join_timeout() {
    let mut simulation = at_work();
    let node = std::mem::replace(&mut simulation.world.node, NodeFact::Gone);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeLost"));
    assert_eq!(simulation.condition("Ready"), ("False", "NodeLost"));
    assert_eq!(simulation.take_events(), ["NodeLost"]);
    simulation.advance_to("2026-11-16T10:19:00Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.take_events(), [""; 0], "said once");
    // It comes back, not Ready: that is only reported, and its time does not run.
    simulation.world.node = node.clone();
    simulation.node().readiness = Readiness::NotReady;
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeNotReady"));
    // Lost again: another event, and another twenty minutes.
    simulation.world.node = NodeFact::Gone;
    simulation.provider_works = false;
    simulation.advance_to("2026-11-16T11:19:59Z");
    assert_eq!(simulation.take_events(), ["NodeLost"]);
    simulation.advance_to("2026-11-16T11:20:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
}

/// The machine of `at_work`, in the cluster under another name.
fn renamed() -> NodeFact {
    NodeFact::Renamed(NodeRef { name: "desk-1-renamed".into(), uid: "node-2".into() })
}

#[test]
fn a_renamed_node_is_lost_and_its_machine_replaced() {
    let mut simulation = at_work();
    simulation.world.node = renamed();
    simulation.provider_works = false;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeLost"));
    let notes = simulation.take_notes();
    assert!(
        matches!(&*notes, [one] if one.starts_with("NodeLost: ") && one.contains("desk-1-renamed")),
        "{notes:?}"
    );
    // Cluster API does not delete this one: it must not be forgotten.
    let recorded = simulation.world.status.node_ref.clone().expect("the Node");
    assert_eq!((recorded.name.as_str(), recorded.uid.as_deref()), ("desk-1-renamed", Some("node-2")));
    simulation.advance_to("2026-11-16T10:19:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.advance_to("2026-11-16T10:20:00Z");
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
}

#[test]
fn a_renamed_node_is_not_taken_for_drained() {
    let mut simulation = at_work();
    simulation.world.node = renamed();
    simulation.edit(|spec| spec.schedule.enabled = false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.take_log(), [""; 0], "its pods run under the other name");
    simulation.advance_to("2026-11-16T10:06:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    let message = simulation.world.status.message.clone().unwrap_or_default();
    assert!(message.contains("node desk-1-renamed"), "{message}");
}

#[test]
fn a_join_is_a_recovery_and_a_new_attempt_is_not() {
    let mut simulation = Simulation::new(crate::simulation::office_hours());
    simulation.nodes_join = false;
    simulation.advance_to("2026-11-16T09:24:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    simulation.take_events();
    simulation.advance_to("2026-11-16T09:26:00Z");
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_events(), ["ScheduleActive", "MachineCreated"]);
    simulation.nodes_join = true;
    simulation.settle();
    assert_eq!(simulation.take_events(), ["Recovered"]);
}

#[test]
fn a_node_left_behind_stays_in_status_until_it_is_gone() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.world.former_node = FormerNode::LeftBehind;
    simulation.advance_to("2026-11-16T10:00:10Z");
    assert!(matches!(simulation.world.machine, Slot::Absent));
    assert_eq!(simulation.phase(), Phase::Terminated);
    assert_eq!(simulation.condition("Ready"), ("True", "Terminated"));
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeLeftBehind"));
    assert_eq!(simulation.take_events(), ["KillSwitchActivated", "MachineDeleted", "NodeLeftBehind"]);
    assert!(simulation.world.status.node_ref.is_some());
    assert!(simulation.world.status.workload_cluster.is_some());
    assert_eq!(simulation.decide().evidence, Evidence::Cached, "known, and nothing to ask");
    simulation.world.former_node = FormerNode::Unknown;
    simulation.settle();
    assert!(simulation.world.status.node_ref.is_some());
    simulation.world.former_node = FormerNode::Gone;
    simulation.settle();
    assert_eq!(simulation.world.status.node_ref, None);
    assert_eq!(simulation.world.status.workload_cluster, None);
    assert_eq!(simulation.take_events(), [""; 0]);
}

#[test]
fn a_node_left_behind_stays_in_status_beside_a_new_machine() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.world.former_node = FormerNode::LeftBehind;
    simulation.settle();
    simulation.world.cluster = None;
    simulation.edit(|spec| spec.kill_switch = false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeLeftBehind"));
    assert!(simulation.world.status.node_ref.is_some());
    assert!(simulation.world.status.workload_cluster.is_some(), "only this cluster can say that it is gone");
    simulation.world.former_node = FormerNode::Gone;
    simulation.settle();
    assert_eq!(simulation.world.status.node_ref, None);
    assert_eq!(simulation.world.status.workload_cluster, None);
}

#[test]
fn a_node_left_behind_is_confirmed_before_it_is_reported() {
    let mut simulation = at_work();
    simulation.world.machine = Slot::Absent;
    simulation.world.node = NodeFact::NotYet;
    simulation.world.former_node = FormerNode::Cached;
    simulation.edit(|spec| spec.schedule.enabled = false);
    assert_eq!(simulation.decide().evidence, Evidence::Confirmed);
    // Its cluster does not respond: nothing is claimed, and it is asked again soon.
    simulation.settle();
    assert_eq!(simulation.condition("MachineReady"), ("False", "NoMachine"));
    assert!(!simulation.take_events().contains(&"NodeLeftBehind".to_owned()));
    assert!(simulation.world.status.node_ref.is_some());
    assert_eq!(simulation.decide().wake_at, Some(simulation.now + SignedDuration::from_secs(20)));
    simulation.world.former_node = FormerNode::LeftBehind;
    simulation.settle();
    assert_eq!(simulation.condition("MachineReady"), ("False", "NodeLeftBehind"));
    assert_eq!(simulation.take_events(), ["NodeLeftBehind"]);
}

#[test]
fn the_cluster_that_a_node_is_seen_in_is_remembered() {
    let mut simulation = at_work();
    let cluster = |uid: &str| five_spot_api::WorkloadCluster {
        cluster_uid: Some(uid.to_owned()),
        ..five_spot_api::WorkloadCluster::MANAGEMENT
    };
    simulation.world.workload = Workload::Reachable(cluster("one"));
    simulation.settle();
    let recorded = |simulation: &Simulation| simulation.world.status.workload_cluster.clone();
    assert_eq!(recorded(&simulation), Some(cluster("one")));
    simulation.now = time("2026-11-16T10:01:00Z");
    simulation.world.workload = Workload::Reachable(cluster("two"));
    simulation.settle();
    assert_eq!(recorded(&simulation), Some(cluster("one")), "while the Machine lives it does not change");
}
