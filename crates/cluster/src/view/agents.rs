//! The reclaim agents on the Nodes of objects with `killIfCommands`: whether each is ready.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::project::AgentPodFacts;
use crate::cache::references::{WorkloadKey, workload_of};
use crate::transport::key::ObjectKey;
use crate::view::observed::Observed;
use five_spot_core::world::NodeName;
use std::collections::BTreeMap;

/// The state of the reclaim agent of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentState {
    /// A pod of the agent is ready.
    Ready,
    /// There is a pod of the agent, and none is ready.
    NotReady,
    /// There is no pod of the agent.
    Missing,
}

impl AgentState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Ready, Self::NotReady, Self::Missing];

    /// Returns the state as it is written in the label `state` of a metric.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "not_ready",
            Self::Missing => "missing",
        }
    }

    /// Returns the state of an agent with these pods on its Node.
    fn of_pods<'a>(pods: impl IntoIterator<Item = &'a AgentPodFacts>) -> Self {
        let mut state = Self::Missing;
        for pod in pods {
            if pod.is_ready {
                return Self::Ready;
            }
            state = Self::NotReady;
        }
        state
    }
}

/// Opens the watch of the agents' pods in the cluster of an object's Node, if the object needs an agent. It is one watch for
/// all Nodes of the cluster, and is closed when no object with `killIfCommands` is left there.
pub fn watch_agents(observed: &Observed) {
    let needs_agent = observed.spec.as_ref().is_ok_and(|spec| !spec.kill_if_commands.is_empty());
    if let Some(link) =
        observed.link.as_ref().filter(|_| needs_agent && observed.world.node.found().is_some())
    {
        link.watch_agent_pods();
    }
}

/// Returns the state of the agent of each of these objects that has `killIfCommands` and a Node. Objects whose cluster has not
/// listed its agents are left out.
pub fn agent_states<'a>(caches: &Caches, keys: impl IntoIterator<Item = &'a ObjectKey>) -> Vec<AgentState> {
    let mut clusters: BTreeMap<WorkloadKey, Option<Agents>> = BTreeMap::new();
    let mut states = Vec::new();
    for key in keys {
        let Some((cluster, node)) = place_of_agent(caches, key) else { continue };
        let agents = clusters.entry(cluster).or_insert_with_key(|cluster| Agents::of(caches, cluster));
        states.extend(agents.as_ref().and_then(|agents| agents.state(caches, &node)));
    }
    states
}

/// Returns the cluster and the Node on which the agent of an object runs.
fn place_of_agent(caches: &Caches, key: &ObjectKey) -> Option<(WorkloadKey, NodeName)> {
    let object = caches.objects.view(key)?;
    let needs_agent = object.spec.as_ref().is_ok_and(|spec| !spec.kill_if_commands.is_empty());
    let node = caches.machines.view(&machine_key(key))?.node.filter(|_| needs_agent)?;
    Some((workload_of(key, &object), node))
}

/// The pods of the agents of one cluster, by Node.
struct Agents {
    cluster: WorkloadKey,
    pods: BTreeMap<NodeName, Vec<AgentPodFacts>>,
}

impl Agents {
    fn of(caches: &Caches, cluster: &WorkloadKey) -> Option<Self> {
        let listed = caches.open_link(cluster)?.agent_pods()?;
        let mut pods: BTreeMap<NodeName, Vec<AgentPodFacts>> = BTreeMap::new();
        for pod in listed {
            pods.entry(pod.node.clone()).or_default().push(pod);
        }
        Some(Self { cluster: cluster.clone(), pods })
    }

    /// Returns the state of the agent of a Node, if there is such a Node.
    fn state(&self, caches: &Caches, node: &NodeName) -> Option<AgentState> {
        let link = caches.open_link(&self.cluster)?;
        let exists = link.nodes.has(&crate::cache::workload::node_key(node));
        exists.then(|| AgentState::of_pods(self.pods.get(node).into_iter().flatten()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ready_pod_is_enough_and_none_is_missing() {
        let pod = |is_ready| AgentPodFacts { node: NodeName::from("n"), is_ready };
        assert_eq!(AgentState::of_pods([]), AgentState::Missing);
        assert_eq!(AgentState::of_pods(&[pod(false)]), AgentState::NotReady);
        assert_eq!(AgentState::of_pods(&[pod(false), pod(true)]), AgentState::Ready);
    }
}
