//! What a decision asks for. Every action is idempotent: doing it twice, or after someone else has done
//! it, changes nothing. Those that a stale observation could turn into harm carry the UID or the version
//! that they were decided upon.

use crate::world::{NodeName, PodId, ResourceVersion, TaintId, Uid};
use five_spot_api::NodeTaint;
use five_spot_api::event::EventReason;
use five_spot_api::names;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// One change to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put our finalizer onto the `ScheduledMachine`, beside any others.
    AddFinalizer,
    /// Take our finalizer off, and leave the others.
    RemoveFinalizer,
    /// Make or mend the bootstrap object.
    ApplyBootstrap {
        /// The Cluster that also owns it.
        cluster: Uid,
    },
    /// Make or mend the infrastructure object.
    ApplyInfrastructure {
        /// The Cluster that also owns it.
        cluster: Uid,
    },
    /// Make or mend the Machine.
    ApplyMachine,
    /// Tell CAPI not to drain the node of a Machine, and perhaps not to wait for its volumes.
    ExcludeDrain {
        /// The Machine.
        machine: Uid,
        /// Not to wait for volumes either.
        volumes: bool,
    },
    /// Delete the Machine; CAPI cascades.
    DeleteMachine {
        /// The Machine.
        machine: Uid,
    },
    /// Delete what CAPI has left of the bootstrap object.
    DeleteBootstrap {
        /// The object.
        uid: Uid,
    },
    /// Delete what CAPI has left of the infrastructure object.
    DeleteInfrastructure {
        /// The object.
        uid: Uid,
    },
    /// Cordon the Node and mark it as cordoned by us.
    Cordon {
        /// The Node.
        node: NodeRef,
    },
    /// Uncordon the Node and take the mark off.
    Uncordon {
        /// The Node.
        node: NodeRef,
    },
    /// Ask the API server to evict a pod.
    Evict {
        /// The pod.
        pod: PodId,
    },
    /// Delete a pod, whatever its disruption budget says.
    DeletePod {
        /// The pod.
        pod: PodId,
        /// What it gets to end by itself.
        grace: SignedDuration,
    },
    /// Write the Node's taints, all of them, together with the record of which are ours.
    PatchTaints {
        /// The Node.
        node: NodeRef,
        /// The version that they were computed from.
        resource_version: ResourceVersion,
        /// All taints.
        taints: Vec<NodeTaint>,
        /// Which of them are ours, sorted.
        owned: Vec<TaintId>,
    },
    /// Label the Node so that the reclaim agent comes to it, or take the label off.
    LabelForAgent {
        /// The Node.
        node: NodeRef,
        /// Whether the agent is wanted.
        wanted: bool,
    },
    /// Make the agent's ConfigMap, or render it anew from `killIfCommands`.
    ApplyAgentConfig {
        /// The node of the agent.
        node: NodeName,
    },
    /// Delete the agent's ConfigMap.
    DeleteAgentConfig {
        /// The node of the agent.
        node: NodeName,
    },
    /// Set `spec.schedule.enabled` to false, in one patch with the removal of an override that wants it up.
    DisableSchedule,
    /// Take the reclaim annotations off the Node.
    ClearReclaimRequest {
        /// The Node.
        node: NodeRef,
    },
    /// Publish an event in the middle of a sequence.
    Publish(Event),
}

/// Which Node, and no other of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    /// Its name.
    pub name: NodeName,
    /// Its UID.
    pub uid: Uid,
}

/// An event on the `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Why.
    pub reason: EventReason,
    /// For people.
    pub note: String,
    /// What brought it about. Together with the object and the reason it names the event, so that a
    /// second try makes no second event.
    pub cause: EventCause,
}

/// What brought an event about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventCause {
    /// An instant: a boundary, a request, a deletion timestamp.
    Instant(Timestamp),
    /// A change of the spec: this generation.
    Generation(i64),
    /// The life of an object: its UID.
    Object(Uid),
}

impl fmt::Display for EventCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant(time) => write!(f, "{}", time.as_second()),
            Self::Generation(generation) => write!(f, "generation-{generation}"),
            Self::Object(uid) => write!(f, "{uid}"),
        }
    }
}

impl fmt::Display for Action {
    /// What would happen, for people: a paused object shows it in its status.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => write!(f, "add the finalizer"),
            Self::RemoveFinalizer => write!(f, "remove the finalizer"),
            Self::ApplyBootstrap { .. } => write!(f, "apply the bootstrap object"),
            Self::ApplyInfrastructure { .. } => write!(f, "apply the infrastructure object"),
            Self::ApplyMachine => write!(f, "apply the Machine"),
            Self::ExcludeDrain { .. } => write!(f, "tell Cluster API to skip its drain"),
            Self::DeleteMachine { .. } => write!(f, "delete the Machine"),
            Self::DeleteBootstrap { .. } => write!(f, "delete the bootstrap object"),
            Self::DeleteInfrastructure { .. } => write!(f, "delete the infrastructure object"),
            Self::Cordon { node } => write!(f, "cordon node {}", node.name),
            Self::Uncordon { node } => write!(f, "uncordon node {}", node.name),
            Self::Evict { pod } => write!(f, "evict pod {pod}"),
            Self::DeletePod { pod, .. } => write!(f, "delete pod {pod}"),
            Self::PatchTaints { node, .. } => write!(f, "update the taints of node {}", node.name),
            Self::LabelForAgent { node, wanted: true } => {
                write!(f, "label node {} for the reclaim agent", node.name)
            }
            Self::LabelForAgent { node, wanted: false } => {
                write!(f, "remove the reclaim agent label from node {}", node.name)
            }
            Self::ApplyAgentConfig { node } => write!(f, "configure the reclaim agent on node {node}"),
            Self::DeleteAgentConfig { node } => {
                write!(f, "delete the configuration of the reclaim agent on node {node}")
            }
            Self::DisableSchedule => write!(f, "disable the schedule"),
            Self::ClearReclaimRequest { node } => {
                write!(f, "clear the reclaim request on node {}", node.name)
            }
            Self::Publish(event) => write!(f, "publish {}", event.reason.as_str()),
        }
    }
}

impl Action {
    /// What has happened once the action is carried out for the `ScheduledMachine` of this namespace and name, for a log
    /// line.
    pub fn done(&self, namespace: &str, name: &str) -> String {
        let bootstrap = format!("{namespace}/{}", names::bootstrap(name));
        let infrastructure = format!("{namespace}/{}", names::infrastructure(name));
        let machine = format!("{namespace}/{}", names::machine(name));
        let object = format!("ScheduledMachine {namespace}/{name}");
        match self {
            Self::AddFinalizer => format!("Added the finalizer to {object}"),
            Self::RemoveFinalizer => format!("Removed the finalizer from {object}"),
            Self::ApplyBootstrap { .. } => format!("Applied bootstrap object {bootstrap}"),
            Self::ApplyInfrastructure { .. } => format!("Applied infrastructure object {infrastructure}"),
            Self::ApplyMachine => format!("Applied Machine {machine}"),
            Self::ExcludeDrain { .. } => format!("Told Cluster API to skip its drain of Machine {machine}"),
            Self::DeleteMachine { .. } => format!("Deleted Machine {machine}"),
            Self::DeleteBootstrap { .. } => format!("Deleted bootstrap object {bootstrap}"),
            Self::DeleteInfrastructure { .. } => format!("Deleted infrastructure object {infrastructure}"),
            Self::Cordon { node } => format!("Cordoned node {}", node.name),
            Self::Uncordon { node } => format!("Uncordoned node {}", node.name),
            Self::Evict { pod } => format!("Evicted pod {pod}"),
            Self::DeletePod { pod, .. } => format!("Deleted pod {pod}"),
            Self::PatchTaints { node, .. } => format!("Updated the taints of node {}", node.name),
            Self::LabelForAgent { node, wanted: true } => {
                format!("Labelled node {} for the reclaim agent", node.name)
            }
            Self::LabelForAgent { node, wanted: false } => {
                format!("Removed the reclaim agent label from node {}", node.name)
            }
            Self::ApplyAgentConfig { node } => {
                format!("Applied the ConfigMap of the reclaim agent on node {node}")
            }
            Self::DeleteAgentConfig { node } => {
                format!("Deleted the ConfigMap of the reclaim agent on node {node}")
            }
            Self::DisableSchedule => format!("Disabled the schedule of {object}"),
            Self::ClearReclaimRequest { node } => {
                format!("Cleared the reclaim request on node {}", node.name)
            }
            Self::Publish(event) => format!("Published event {}", event.reason.as_str()),
        }
    }
}
