//! The operations that can fail, as data: messages, metric labels and decisions come from these variants.

use crate::transport::key::ObjectKey;
use std::fmt;

/// The kind of object that an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A `ScheduledMachine`.
    ScheduledMachine,
    /// An object of Cluster API or of one of its providers, by its kind.
    ClusterApi(String),
    /// A Secret with a kubeconfig.
    Secret,
    /// A Node.
    Node,
    /// A Pod.
    Pod,
    /// The ConfigMap of a reclaim agent.
    ConfigMap,
    /// A `DaemonSet` that a pod belongs to.
    DaemonSet,
    /// A Namespace.
    Namespace,
    /// The Lease that claims a physical machine.
    Lease,
}

/// The attempted change or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read several objects.
    List,
    /// Create an object or restore our fields of it, by server-side apply.
    Apply,
    /// Create an object that must not exist yet.
    Create,
    /// Take over the claim of an object that is gone.
    TakeOver,
    /// Remove an owner reference to a `ScheduledMachine` with another UID, as after a restore.
    RemoveOldOwner,
    /// Annotate a Machine so that Cluster API does not drain its node.
    Annotate,
    /// Delete an object.
    Delete,
    /// Evict a pod.
    Evict,
    /// Cordon a Node.
    Cordon,
    /// Uncordon a Node.
    Uncordon,
    /// Write our taints of a Node.
    Taint,
    /// Set or remove the label that selects the reclaim agent.
    Label,
    /// Remove the annotations of a reclaim request.
    ClearReclaimRequest,
    /// Write the status.
    WriteStatus,
    /// Set `spec.schedule.enabled` to false.
    DisableSchedule,
    /// Add our finalizer.
    AddFinalizer,
    /// Remove our finalizer.
    RemoveFinalizer,
    /// Publish an event about the object.
    Publish,
}

/// An operation on one object, or on the objects that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The attempted change or read.
    pub verb: Verb,
    /// The kind of the object.
    pub kind: TargetKind,
    /// The object. For a list of pods it is the Node, for a list of Cluster API's objects their namespace.
    pub object: ObjectKey,
}

impl Operation {
    pub(crate) const fn new(verb: Verb, kind: TargetKind, object: ObjectKey) -> Self {
        Self { verb, kind, object }
    }

    /// True if the operation is about an object of Cluster API or of one of its providers.
    pub const fn is_cluster_api(&self) -> bool {
        matches!(self.kind, TargetKind::ClusterApi(_))
    }
}

impl TargetKind {
    /// A kind of Cluster API or of one of its providers.
    pub(crate) fn cluster_api(kind: impl Into<String>) -> Self {
        Self::ClusterApi(kind.into())
    }

    fn as_str(&self) -> &str {
        match self {
            Self::ScheduledMachine => "ScheduledMachine",
            Self::ClusterApi(kind) => kind,
            Self::Secret => "Secret",
            Self::Node => "Node",
            Self::Pod => "pod",
            Self::ConfigMap => "ConfigMap",
            Self::DaemonSet => "DaemonSet",
            Self::Namespace => "Namespace",
            Self::Lease => "Lease",
        }
    }
}

impl Verb {
    /// The verb phrase before the object.
    const fn phrase(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Apply => "apply",
            Self::Create => "create",
            Self::TakeOver => "take over",
            Self::RemoveOldOwner => "remove the old owner of",
            Self::Annotate => "annotate",
            Self::Delete => "delete",
            Self::Evict => "evict",
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Taint => "taint",
            Self::Label => "label",
            Self::ClearReclaimRequest => "clear the reclaim request of",
            Self::WriteStatus => "write the status of",
            Self::DisableSchedule => "disable the schedule of",
            Self::AddFinalizer => "add the finalizer to",
            Self::RemoveFinalizer => "remove the finalizer from",
            Self::Publish => "publish an event about",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, kind, object } = self;
        if self.is_cluster_api() {
            f.write_str("CAPI operation failed: ")?;
        }
        match (verb, kind) {
            (Verb::List, TargetKind::Pod) => write!(f, "list the pods of node {object}"),
            (Verb::List, TargetKind::ClusterApi(kind)) => {
                write!(f, "list {kind} objects in namespace {}", object.namespace)
            }
            (verb, kind) => write!(f, "{} {} {object}", verb.phrase(), kind.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(verb: Verb, kind: TargetKind, object: ObjectKey, text: &str) {
        assert_eq!(Operation::new(verb, kind, object).to_string(), text);
    }

    #[test]
    fn messages_name_the_verb_the_kind_and_the_object() {
        let machine = ObjectKey::new("shop", "a-machine");
        let text = "CAPI operation failed: apply Machine shop/a-machine";
        check(Verb::Apply, TargetKind::cluster_api("Machine"), machine, text);
        check(Verb::Cordon, TargetKind::Node, ObjectKey::new("", "n"), "cordon Node n");
        check(Verb::List, TargetKind::Pod, ObjectKey::new("", "n"), "list the pods of node n");
        let rules = "CAPI operation failed: list MachineDrainRule objects in namespace shop";
        check(Verb::List, TargetKind::cluster_api("MachineDrainRule"), ObjectKey::new("shop", ""), rules);
        let status = "write the status of ScheduledMachine shop/a";
        check(Verb::WriteStatus, TargetKind::ScheduledMachine, ObjectKey::new("shop", "a"), status);
    }
}
