//! Maintenance of the Node of a machine that is wanted: the cordon before the window closes, the taints, and the reclaim agent.

use super::draft::{Draft, Stage, TaintStage};
use super::removal::{cleanup_deadline, node_ref};
use super::situation::Situation;
use crate::action::Action;
use crate::spec::ValidSpec;
use crate::taints::{self, Taints};
use crate::world::{NodeView, Readiness, TaintId};
use five_spot_api::NodeTaint;
use jiff::SignedDuration;

/// The time before the cleanup timeout at which the agents of a deleted object are removed even if its node is still being
/// drained. At the timeout nothing in a workload cluster is waited for.
const AGENTS_REMOVED_BEFORE_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);

/// Maintains the Node and the reclaim agent.
pub(super) fn of_node(situation: &Situation<'_>, draft: &mut Draft) {
    remove_agents(situation, draft);
    let Some(spec) = situation.valid() else { return };
    draft.taints = taint_stage(situation, spec);
    if draft.stage != Stage::Running || situation.living_machine().is_none() {
        return;
    }
    let Some(node) = situation.world.node.found() else {
        return;
    };
    cordon_ahead(situation, spec, node, draft);
    taint(situation, spec, node, draft);
    place_agent(situation, spec, node, draft);
}

/// Cordons the node before the window closes, and uncordons a node that 5-Spot cordoned when the reason is gone.
fn cordon_ahead(situation: &Situation<'_>, spec: &ValidSpec, node: &NodeView, draft: &mut Draft) {
    let closing = spec.plan.next_cleanup(situation.now).filter(|_| spec.cordon_before.is_positive());
    let cordon_at = closing.and_then(|closing| closing.checked_sub(spec.cordon_before).ok());
    if let Some(time) = cordon_at {
        draft.wake(situation, time);
    }
    if cordon_at.is_some_and(|time| time <= situation.now) {
        if !node.unschedulable {
            draft.act(Action::Cordon { node: node_ref(node) });
        }
    } else if node.cordoned_by_us {
        draft.act(Action::Uncordon { node: node_ref(node) });
    }
}

/// Returns the taints that 5-Spot owns on this Node, according to its annotation or, if that was removed, to the status.
pub(super) fn owned_taints(situation: &Situation<'_>, node: &NodeView) -> Vec<TaintId> {
    let prior = situation.prior();
    let same_node =
        prior.node_ref.as_ref().and_then(|reference| reference.uid.as_deref()) == Some(node.uid.as_str());
    let mut owned = node.owned_taints.clone();
    if same_node {
        owned.extend(prior.applied_node_taints.iter().map(TaintId::from));
    }
    owned.sort();
    owned.dedup();
    owned
}

fn target_taints(situation: &Situation<'_>, spec: &ValidSpec, node: &NodeView) -> Taints {
    taints::reconcile(&spec.node_taints, &owned_taints(situation, node), &node.taints)
}

/// Returns true if the taints of the Node or its annotation have to be written.
fn differ(node: &NodeView, target: &Taints) -> bool {
    let mut recorded = node.owned_taints.clone();
    recorded.sort();
    recorded != target.owned || node.taints != target.taints
}

fn taint(situation: &Situation<'_>, spec: &ValidSpec, node: &NodeView, draft: &mut Draft) {
    if node.readiness != Readiness::Ready {
        return;
    }
    let target = target_taints(situation, spec, node);
    if differ(node, &target) {
        draft.act(Action::PatchTaints {
            node: node_ref(node),
            resource_version: node.resource_version.clone(),
            taints: target.taints,
            owned: target.owned,
        });
    }
}

fn taint_stage(situation: &Situation<'_>, spec: &ValidSpec) -> TaintStage {
    let Some(node) = situation.world.node.found() else {
        return if spec.node_taints.is_empty() { TaintStage::NotNeeded } else { TaintStage::NoNode };
    };
    let none_of_ours = node.owned_taints.is_empty() && applied_taints(situation).is_empty();
    if spec.node_taints.is_empty() && none_of_ours {
        return TaintStage::NotNeeded;
    }
    if node.readiness != Readiness::Ready {
        return TaintStage::NodeNotReady;
    }
    let failures = &situation.world.failures;
    if let Some(failure) = failures.last.as_ref().filter(|failure| failure.taints) {
        return TaintStage::Failed(failure.message.clone());
    }
    let target = target_taints(situation, spec, node);
    if !target.conflicts.is_empty() {
        let names: Vec<String> =
            target.conflicts.iter().map(|id| format!("{}:{}", id.key, id.effect.as_str())).collect();
        return TaintStage::Conflict(format!(
            "taints on the Node that 5-Spot did not set: {}; remove them from the Node or from spec.nodeTaints",
            names.join(", ")
        ));
    }
    if differ(node, &target) { TaintStage::Writing } else { TaintStage::Applied }
}

/// Returns the taints that 5-Spot owns and that are on the Node.
pub(super) fn applied_taints(situation: &Situation<'_>) -> Vec<NodeTaint> {
    let Some(node) = situation.world.node.found() else {
        return Vec::new();
    };
    let owned = owned_taints(situation, node);
    node.taints.iter().filter(|taint| owned.contains(&TaintId::from(*taint))).cloned().collect()
}

fn place_agent(situation: &Situation<'_>, spec: &ValidSpec, node: &NodeView, draft: &mut Draft) {
    if spec.kill_if_commands.is_empty() {
        return;
    }
    let mut configs = situation.world.agent_configs.iter();
    let config =
        configs.find(|config| config.node == node.name && config.rendered.as_ref() == Some(&spec.agent_hash));
    match config {
        None => draft.act(Action::ApplyAgentConfig { node: node_ref(node) }),
        // An agent that has outlived the Node before may have requested its reclaim already, and would stay quiet.
        Some(config) if config.node_uid.as_ref() != Some(&node.uid) => {
            draft.act(Action::RearmAgent { node: node_ref(node) });
        }
        Some(_) => {}
    }
    if !node.agent_label {
        draft.act(Action::LabelForAgent { node: node_ref(node), wanted: true });
    }
}

/// Removes agents that are no longer wanted, and those of nodes whose machine has joined again under another name. An agent
/// stays when a window closes, because the machine will be lent again.
fn remove_agents(situation: &Situation<'_>, draft: &mut Draft) {
    let world = situation.world;
    let node = world.node.found();
    let labelled = node.filter(|node| node.agent_label);
    if world.agent_configs.is_empty() && labelled.is_none() {
        return;
    }
    let gone_for_good = is_done_with_agents(situation, draft);
    let cleared = situation.valid().is_some_and(|spec| spec.kill_if_commands.is_empty());
    for config in &world.agent_configs {
        let elsewhere = node.is_some_and(|node| node.name != config.node);
        if gone_for_good || cleared || elsewhere {
            draft.act(Action::DeleteAgentConfig { node: config.node.clone() });
        }
    }
    if let Some(node) = labelled.filter(|_| gone_for_good || cleared) {
        draft.act(Action::LabelForAgent { node: node_ref(node), wanted: false });
    }
}

/// Returns true if the object is deleted and needs its agents no longer. They stay while its node is drained: the owner may
/// need the machine sooner.
fn is_done_with_agents(situation: &Situation<'_>, draft: &mut Draft) -> bool {
    let Some(timeout) = cleanup_deadline(situation) else { return false };
    if situation.is_orphaning() || situation.living_machine().is_none() {
        return true;
    }
    let until = timeout.checked_sub(AGENTS_REMOVED_BEFORE_TIMEOUT).unwrap_or(timeout);
    draft.wake(situation, until);
    situation.now >= until
}
