//! Taints and the agent on the Node.

use super::{at_work, failed, with_taints};
use crate::simulation::{Simulation, office_hours, time};
use five_spot_core::world::{NodeFact, Readiness};

#[test]
fn a_node_of_another_machine_is_never_touched() {
    let mut simulation = at_work();
    simulation.advance_to("2026-11-16T17:50:00Z");
    simulation.world.node = NodeFact::Mismatch { name: "desk-1".into() };
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.advance_to("2026-11-16T18:00:00Z");
    assert_eq!(simulation.take_log(), ["delete the Machine"], "CAPI drains what belongs to it");
}

#[test]
fn taints_are_applied_updated_and_removed() {
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
    assert_eq!(simulation.world.status.applied_node_taints, with_taints(&[("a", "1")]));
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "2"), ("b", "1")]));
    simulation.take_log();
    simulation.settle();
    assert_eq!(simulation.take_log(), ["update the taints of node desk-1"]);
    assert_eq!(simulation.world.status.applied_node_taints, with_taints(&[("a", "2"), ("b", "1")]));
    simulation.edit(|spec| spec.node_taints.clear());
    simulation.settle();
    assert_eq!(simulation.take_log(), ["update the taints of node desk-1"]);
    assert_eq!(simulation.condition("NodeTainted"), ("", ""));
    let left: Vec<String> = simulation.node().taints.iter().map(|taint| taint.key.clone()).collect();
    assert_eq!(left, ["theirs"]);
}

#[test]
fn a_taint_conflict_is_reported_and_the_others_are_applied() {
    let mut simulation = at_work();
    simulation.taint_by_hand("a");
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1"), ("b", "1")]));
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("False", "TaintOwnershipConflict"));
    assert_eq!(simulation.world.status.applied_node_taints, with_taints(&[("b", "1")]));
    assert_eq!(simulation.condition("Ready"), ("True", "NodeReady"));
}

#[test]
fn taints_that_could_not_be_written_are_reported() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.world.failures = failed(1, false, true);
    assert_eq!(
        simulation.decide().status.conditions.iter().find(|c| c.type_ == "NodeTainted").unwrap().reason,
        "PatchFailed"
    );
}

#[test]
fn the_agent_follows_kill_if_commands_and_not_windows() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_if_commands = vec!["java".to_owned()]);
    simulation.settle();
    let placed = ["configure the reclaim agent on node desk-1", "label node desk-1 for the reclaim agent"];
    assert_eq!(simulation.take_log(), placed);
    simulation.edit(|spec| spec.kill_if_commands.push("steam".to_owned()));
    simulation.settle();
    assert_eq!(simulation.take_log(), ["configure the reclaim agent on node desk-1"]);
    simulation.advance_to("2026-11-16T20:00:00Z");
    assert_eq!(simulation.world.agent_configs.len(), 1, "a closing window takes nothing away");
    simulation.take_log();
    simulation.advance_to("2026-11-17T10:00:00Z");
    let again = ["re-arm the reclaim agent on node desk-1", "label node desk-1 for the reclaim agent"];
    assert!(simulation.take_log().ends_with(&again.map(str::to_owned)), "the Node is another one");
    simulation.edit(|spec| spec.kill_if_commands.clear());
    simulation.settle();
    let removed = [
        "delete the configuration of the reclaim agent on node desk-1",
        "remove the reclaim agent label from node desk-1",
    ];
    assert_eq!(simulation.take_log(), removed);
}

#[test]
fn the_agent_config_follows_the_node_and_the_object() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.kill_if_commands = vec!["java".to_owned()]);
    simulation.settle();
    simulation.node().name = "desk-2".into();
    simulation.node().agent_label = false;
    simulation.settle();
    let nodes: Vec<&str> = simulation.world.agent_configs.iter().map(|config| config.node.as_str()).collect();
    assert_eq!(nodes, ["desk-2"]);
    simulation.delete_object();
    simulation.settle();
    assert!(simulation.object_gone);
    assert!(simulation.world.agent_configs.is_empty());
}

#[test]
fn taints_stay_owned_when_their_annotation_is_removed() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.settle();
    simulation.node().owned_taints.clear();
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("True", "Applied"));
    assert_eq!(simulation.node().owned_taints.len(), 1, "the record is put back");
    simulation.node().owned_taints.clear();
    simulation.node().uid = "another-node".into();
    simulation.settle();
    assert_eq!(
        simulation.condition("NodeTainted"),
        ("False", "TaintOwnershipConflict"),
        "that is another node"
    );
}

#[test]
fn while_taints_are_written_the_condition_stays() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.settle();
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "2")]));
    simulation.reconcile();
    assert_eq!(simulation.condition("NodeTainted"), ("True", "Applied"));
}

#[test]
fn a_conflict_is_reported_even_if_no_taint_is_ours() {
    let mut simulation = at_work();
    simulation.taint_by_hand("a");
    simulation.edit(|spec| spec.node_taints = with_taints(&[("a", "1")]));
    simulation.settle();
    assert_eq!(simulation.condition("NodeTainted"), ("False", "TaintOwnershipConflict"));
    assert_eq!(simulation.world.status.applied_node_taints, []);
}
