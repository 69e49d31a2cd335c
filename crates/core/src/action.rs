//! The actions that a decision consists of. Every action is idempotent: carrying it out twice, or after someone else has
//! done it, changes nothing. An action that could do harm after a stale observation carries the UID or the resource version
//! that it was decided for.

use crate::identity::MachineIdentity;
use crate::world::{NodeName, PodId, ResourceVersion, TaintId, Uid};
use five_spot_api::NodeTaint;
use five_spot_api::event::EventReason;
use five_spot_api::names;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// One change to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add our finalizer to the `ScheduledMachine`; others stay.
    AddFinalizer,
    /// Remove our finalizer; others stay.
    RemoveFinalizer,
    /// Claim the physical machine for this object, by its Lease.
    Claim {
        /// The physical machine.
        machine: MachineIdentity,
        /// The version of the Lease that is taken over; absent: the Lease is created.
        replaces: Option<ResourceVersion>,
    },
    /// Release the claim on a physical machine.
    Release {
        /// The physical machine.
        machine: MachineIdentity,
        /// The version of the Lease.
        version: ResourceVersion,
    },
    /// Create or update the bootstrap object.
    ApplyBootstrap {
        /// The Cluster that also owns it.
        cluster: Uid,
    },
    /// Create or update the infrastructure object.
    ApplyInfrastructure {
        /// The Cluster that also owns it.
        cluster: Uid,
    },
    /// Create or update the Machine.
    ApplyMachine,
    /// Tell Cluster API to skip its drain of the node, and optionally its wait for volumes.
    ExcludeDrain {
        /// The Machine.
        machine: Uid,
        /// Skip the wait for volumes as well.
        volumes: bool,
    },
    /// Delete the Machine. Cluster API deletes what belongs to it.
    DeleteMachine {
        /// The Machine.
        machine: Uid,
    },
    /// Delete a bootstrap object that Cluster API has left over.
    DeleteBootstrap {
        /// The object.
        uid: Uid,
    },
    /// Delete an infrastructure object that Cluster API has left over.
    DeleteInfrastructure {
        /// The object.
        uid: Uid,
    },
    /// Cordon the Node and mark it as cordoned by 5-Spot.
    Cordon {
        /// The Node.
        node: NodeRef,
    },
    /// Uncordon the Node and remove the mark.
    Uncordon {
        /// The Node.
        node: NodeRef,
    },
    /// Evict a pod.
    Evict {
        /// The pod.
        pod: PodId,
    },
    /// Delete a pod, regardless of its disruption budget.
    DeletePod {
        /// The pod.
        pod: PodId,
        /// The grace period of the deletion.
        grace: SignedDuration,
    },
    /// Write all taints of the Node, together with the record of those that 5-Spot has set.
    PatchTaints {
        /// The Node.
        node: NodeRef,
        /// The resource version of the Node from which they were computed.
        resource_version: ResourceVersion,
        /// All taints.
        taints: Vec<NodeTaint>,
        /// The taints that 5-Spot has set, sorted.
        owned: Vec<TaintId>,
    },
    /// Add or remove the label that schedules the reclaim agent on the Node.
    LabelForAgent {
        /// The Node.
        node: NodeRef,
        /// True to add the label, false to remove it.
        wanted: bool,
    },
    /// Create the agent's ConfigMap, or render it again from `killIfCommands`.
    ApplyAgentConfig {
        /// The node of the agent.
        node: NodeRef,
    },
    /// Note in the agent's ConfigMap that the Node is another one, which re-arms an agent that has outlived the Node before.
    /// The configuration stays as it is.
    RearmAgent {
        /// The node of the agent.
        node: NodeRef,
    },
    /// Delete the agent's ConfigMap.
    DeleteAgentConfig {
        /// The node of the agent.
        node: NodeName,
    },
    /// Set `spec.schedule.enabled` to false and remove an override with state `up`, in one patch.
    DisableSchedule,
    /// Remove the reclaim annotations from the Node.
    ClearReclaimRequest {
        /// The Node.
        node: NodeRef,
    },
    /// Publish an event between two other actions.
    Publish(Event),
}

/// A reference to one particular Node. The UID excludes a later Node of the same name.
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
    /// The reason.
    pub reason: EventReason,
    /// The text for people.
    pub note: String,
    /// The cause. The name of the event is derived from the object, the reason and the cause, so that a retry does not
    /// create a second event.
    pub cause: EventCause,
}

/// The cause of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventCause {
    /// An instant: a boundary, a request, a deletion timestamp.
    Instant(Timestamp),
    /// A change of the spec: this generation.
    Generation(i64),
    /// One particular object: its UID.
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
    /// Describes the action for people. The status of a paused object lists the actions that are held back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => write!(f, "add the finalizer"),
            Self::RemoveFinalizer => write!(f, "remove the finalizer"),
            Self::Claim { .. } => write!(f, "claim the physical machine"),
            Self::Release { .. } => write!(f, "release the claim on the physical machine"),
            Self::ApplyBootstrap { .. } => write!(f, "apply the bootstrap object"),
            Self::ApplyInfrastructure { .. } => write!(f, "apply the infrastructure object"),
            Self::ApplyMachine => write!(f, "apply the Machine"),
            Self::ExcludeDrain { .. } => write!(f, "make Cluster API skip its drain"),
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
            Self::ApplyAgentConfig { node } => {
                write!(f, "configure the reclaim agent on node {}", node.name)
            }
            Self::RearmAgent { node } => write!(f, "re-arm the reclaim agent on node {}", node.name),
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
    /// Describes the completed action for a log line. `namespace` and `name` are those of the `ScheduledMachine`.
    pub fn done(&self, namespace: &str, name: &str) -> String {
        let bootstrap = format!("{namespace}/{}", names::bootstrap(name));
        let infrastructure = format!("{namespace}/{}", names::infrastructure(name));
        let machine = format!("{namespace}/{}", names::machine(name));
        let object = format!("ScheduledMachine {namespace}/{name}");
        match self {
            Self::AddFinalizer => format!("Added the finalizer to {object}"),
            Self::RemoveFinalizer => format!("Removed the finalizer from {object}"),
            Self::Claim { machine, .. } => {
                format!("Claimed the physical machine of {object} with Lease {}", machine.lease())
            }
            Self::Release { machine, .. } => {
                format!("Released the physical machine of {object} by deleting Lease {}", machine.lease())
            }
            Self::ApplyBootstrap { .. } => format!("Applied bootstrap object {bootstrap}"),
            Self::ApplyInfrastructure { .. } => format!("Applied infrastructure object {infrastructure}"),
            Self::ApplyMachine => format!("Applied Machine {machine}"),
            Self::ExcludeDrain { .. } => format!("Made Cluster API skip its drain of Machine {machine}"),
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
                format!("Applied the ConfigMap of the reclaim agent on node {}", node.name)
            }
            Self::RearmAgent { node } => {
                format!("Re-armed the reclaim agent on node {}, which has joined again", node.name)
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
