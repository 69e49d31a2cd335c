//! The Node of a Machine, its pods and the ConfigMap of its reclaim agent, as far as the caches show them.

use crate::cache::memory::Memory;
use crate::cache::project::{AgentConfigFacts, MachineFacts, NodeFacts, PodFacts};
use crate::cache::store::{Item, SyncState};
use crate::cache::workload::{WorkloadLink, node_key};
use crate::transport::key::ObjectKey;
use crate::transport::valid_name::is_subdomain;
use crate::view::observed::Lookups;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::{ScheduledMachineStatus, WorkloadCluster};
use five_spot_core::action::NodeRef;
use five_spot_core::world::{
    AgentConfigView, FormerNode, NodeFact, NodeName, NodeView, PodDrain, PodView, ResourceVersion,
};

/// The Node of the Machine. `seen_in` is the cluster in the status.
pub(super) fn node_fact(
    machine: Option<&MachineFacts>,
    (link, seen_in): (&WorkloadLink, Option<&WorkloadCluster>),
    object: &ObjectKey,
    memory: &Memory,
    drain_rules_resolved: bool,
) -> NodeFact {
    let Some(machine) = machine else { return NodeFact::NotYet };
    let Some(name) = &machine.node else { return NodeFact::NotYet };
    let is_witness = is_witness(link.identity().as_deref(), seen_in);
    let Some(Item { version, view: facts }) = link.nodes.get(&node_key(name)) else {
        if !is_witness {
            return NodeFact::Unknown;
        }
        // Cluster API looks for the provider ID, whatever the name: as long as it sees a Node that is not here, one of the
        // two reads the wrong cluster.
        let without = if machine.node_healthy { NodeFact::Unknown } else { NodeFact::Gone };
        return renamed(machine, link).map_or(without, NodeFact::Renamed);
    };
    if facts.provider_id.is_none() || facts.provider_id != machine.provider_id {
        return if is_witness { NodeFact::Mismatch { name: name.clone() } } else { NodeFact::Unknown };
    }
    let pods = link.watched_pods(name).filter(|store| store.sync_state() == SyncState::Synced);
    let is_there = |pod: &PodFacts| !memory.left.contains(&pod.id.uid);
    let pods = pods.map(|store| store.select(|_, pod| is_there(pod).then(|| pod_view(pod, link, memory))));
    let view = node_view(name.clone(), version, facts, object);
    NodeFact::Found(NodeView { pods, drain_rules_resolved, ..view })
}

/// The Node with the provider ID of the Machine, under whatever name.
fn renamed(machine: &MachineFacts, link: &WorkloadLink) -> Option<NodeRef> {
    machine.provider_id.as_ref()?;
    let nodes = link.nodes.select(|key, node| {
        let is_it = node.provider_id == machine.provider_id && is_subdomain(&key.name);
        is_it.then(|| NodeRef { name: NodeName::from(&*key.name), uid: node.uid.clone() })
    });
    nodes.into_iter().min_by(|one, other| one.name.cmp(&other.name))
}

/// Returns true if a Node that the cluster does not have is gone: it is the cluster in which the Node was last seen, as far as
/// that is known. A kubeconfig that may not read the identity of its cluster proves nothing.
fn is_witness(identity: Option<&str>, seen_in: Option<&WorkloadCluster>) -> bool {
    let seen_in = seen_in.and_then(|cluster| cluster.cluster_uid.as_deref());
    seen_in.is_none() || seen_in == identity
}

fn node_view(name: NodeName, version: String, facts: NodeFacts, object: &ObjectKey) -> NodeView {
    NodeView {
        name,
        uid: facts.uid,
        resource_version: ResourceVersion::from(version),
        readiness: facts.readiness,
        unschedulable: facts.unschedulable,
        cordoned_by_us: facts.cordoned_by == Some(object.to_string()),
        taints: facts.taints,
        owned_taints: facts.owned_taints,
        agent_label: facts.agent_label,
        reclaim: facts.reclaim,
        pods: None,
        drain_rules_resolved: false,
    }
}

fn pod_view(pod: &PodFacts, link: &WorkloadLink, memory: &Memory) -> PodView {
    // Until it has been looked up, a DaemonSet that a pod names is taken to exist: almost always it does.
    let daemon_set = pod.daemon_set.as_ref().is_some_and(|key| link.daemon_set(key).unwrap_or(true));
    let by_rule = || {
        let namespace = link.namespace_labels(&pod.id.namespace).unwrap_or_default();
        memory.drain_rules.as_ref()?.drain(&pod.labels, &namespace)
    };
    PodView {
        eviction: memory.evictions.get(&pod.id.uid).cloned(),
        id: pod.id.clone(),
        mirror: pod.mirror,
        daemon_set,
        comes_back: pod.comes_back,
        finished: pod.finished,
        terminating: pod.terminating,
        drain: pod.drain.or_else(by_rule).unwrap_or(PodDrain::Evict { order: 0 }),
    }
}

/// The reads that are still needed to classify the pods of the node for a drain.
pub(super) fn lookups(machine: Option<&MachineFacts>, link: &WorkloadLink, memory: &Memory) -> Lookups {
    let node = machine.and_then(|machine| machine.node.as_ref());
    let Some(store) = node.and_then(|node| link.watched_pods(node)) else {
        return Lookups::default();
    };
    let mut lookups = Lookups { rules: memory.drain_rules.is_none(), ..Lookups::default() };
    let by_namespace = memory.drain_rules.as_ref().is_some_and(|rules| rules.look_at_namespaces());
    store.select(|key, pod| {
        lookups.daemon_sets.extend(pod.daemon_set.clone().filter(|key| link.daemon_set(key).is_none()));
        if by_namespace && link.namespace_labels(&key.namespace).is_none() {
            lookups.namespaces.insert(key.namespace.to_string());
        }
        None::<()>
    });
    lookups
}

/// The ConfigMaps that were made for the object.
pub(super) fn agent_configs(key: &ObjectKey, link: &WorkloadLink) -> Vec<AgentConfigView> {
    let object = key.to_string();
    let is_ours = |config: &AgentConfigFacts| config.made_for.as_deref() == Some(object.as_str());
    link.agent_configs.select(|_, config| {
        is_ours(config).then(|| AgentConfigView {
            node: config.node.clone(),
            rendered: config.rendered,
            node_uid: config.node_uid.clone(),
        })
    })
}

/// The Node in the status, once its Machine is gone. Only the cluster in which it was last seen can tell.
pub(super) fn former_node(
    status: &ScheduledMachineStatus,
    link: Option<&WorkloadLink>,
    memory: &Memory,
) -> FormerNode {
    let Some(recorded) = &status.node_ref else { return FormerNode::Gone };
    let Some(link) = link else { return FormerNode::Unknown };
    let there = link.nodes.view(&node_key(&NodeName::from(recorded.name.as_str())));
    let is_same = |node: &NodeFacts| recorded.uid.as_deref().is_none_or(|uid| uid == node.uid.as_str());
    let Some(node) = there.filter(is_same) else {
        let is_witness = is_witness(link.identity().as_deref(), status.workload_cluster.as_ref());
        return if is_witness { FormerNode::Gone } else { FormerNode::Unknown };
    };
    let is_reported = status.conditions.iter().any(|condition| {
        condition.type_ == ConditionType::MachineReady.as_str()
            && condition.reason == Reason::NodeLeftBehind.as_str()
    });
    let is_read = memory.left_behind.as_ref() == Some(&node.uid);
    if is_reported || is_read { FormerNode::LeftBehind } else { FormerNode::Cached }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cluster_in_which_a_node_was_seen_can_miss_it() {
        let of = |uid: Option<&str>| WorkloadCluster {
            cluster_uid: uid.map(str::to_owned),
            ..WorkloadCluster::of_secret("prod-kubeconfig", "value")
        };
        for (identity, seen_in, expected) in [
            (Some("one"), Some(of(Some("one"))), true),
            (Some("two"), Some(of(Some("one"))), false),
            (None, Some(of(Some("one"))), false),
            (Some("one"), Some(of(None)), true),
            (None, Some(of(None)), true),
            (None, None, true),
        ] {
            assert_eq!(is_witness(identity, seen_in.as_ref()), expected, "{identity:?} {seen_in:?}");
        }
    }
}
