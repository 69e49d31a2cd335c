//! The observed state: everything that a decision depends on besides the spec and the time.
//!
//! These types are compact on purpose. The observer (the `cluster` crate or a test) reduces the objects of a cluster to
//! these facts; `decide` never sees an object.

use crate::action::NodeRef;
use crate::claim::MachineClaims;
use crate::fingerprint::Fingerprint;
use crate::spec::ProviderKind;
use five_spot_api::reclaim::ReclaimRequest;
use five_spot_api::{NodeTaint, ScheduledMachineStatus, TaintEffect, WorkloadCluster};
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::sync::Arc;

macro_rules! text_newtype {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {$(
        $(#[$doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

text_newtype! {
    /// The UID of an object, which distinguishes it from a later object of the same name.
    Uid,
    /// The name of a Node.
    NodeName,
    /// The resource version of an object that was read. A write that carries it fails if it is stale.
    ResourceVersion,
}

/// The observed state of one `ScheduledMachine` and everything that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The settings of the controller.
    pub policy: Policy,
    /// The clock and the brake of the controller.
    pub brake: Brake,
    /// The `ScheduledMachine` itself.
    pub object: ObjectView,
    /// Its recorded status.
    pub status: ScheduledMachineStatus,
    /// The Cluster API Cluster that the spec names.
    pub cluster: Option<ClusterView>,
    /// The pause annotation of 5-Spot on the namespace.
    pub namespace_pause: Option<PauseLevel>,
    /// The problems with objects that the spec refers to, except a missing Cluster.
    pub references: Vec<ReferenceProblem>,
    /// The object called `<name>-bootstrap`.
    pub bootstrap: Slot<ProviderView>,
    /// The object called `<name>-infra`.
    pub infrastructure: Slot<ProviderView>,
    /// The Machine called `<name>-machine`.
    pub machine: Slot<MachineView>,
    /// The workload cluster of the Node.
    pub workload: Workload,
    /// The Node of the Machine.
    pub node: NodeFact,
    /// The Node in `status.nodeRef`, once its Machine is gone.
    pub former_node: FormerNode,
    /// The time since which the status of the object could not be written, if the last attempt failed. The recorded status
    /// lacks everything since then.
    pub unrecorded_since: Option<Timestamp>,
    /// The ConfigMaps of reclaim agents that were created for this object.
    pub agent_configs: Vec<AgentConfigView>,
    /// The claims on the physical machine.
    pub claims: MachineClaims,
    /// The failures of the last attempts.
    pub failures: Failures,
}

/// The settings of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `FINALIZER_CLEANUP_TIMEOUT_SECS`.
    pub finalizer_cleanup_timeout: SignedDuration,
    /// `--force-finalizer-on-timeout`.
    pub force_finalizer_on_timeout: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { finalizer_cleanup_timeout: SignedDuration::from_secs(600), force_finalizer_on_timeout: true }
    }
}

/// The facts that decide whether an unplanned removal may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// True if the clock agrees with the API server and has not jumped.
    pub clock_is_trusted: bool,
    /// The permission for an unplanned removal.
    pub gate: RemovalGate,
}

impl Default for Brake {
    fn default() -> Self {
        Self { clock_is_trusted: true, gate: RemovalGate::Open }
    }
}

/// The permission for an unplanned removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovalGate {
    /// It may begin.
    #[default]
    Open,
    /// Nobody has counted yet. The decision says whether that is needed.
    Unasked,
    /// It has to wait: there are too many.
    Closed,
}

/// The `ScheduledMachine` itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectView {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Uid,
    /// Its creation timestamp.
    pub created_at: Timestamp,
    /// The generation of its spec.
    pub generation: i64,
    /// Set while it is being deleted.
    pub deletion: Option<DeletionView>,
    /// True if it carries our finalizer.
    pub has_finalizer: bool,
    /// True if it carries the annotation `cluster.x-k8s.io/paused`.
    pub capi_paused: bool,
    /// The value of its annotation `5spot.finos.org/paused`, if any.
    pub paused: Option<PauseLevel>,
    /// The time in `5spot.finos.org/resume`, if there is one and it can be read.
    pub resume: Option<Timestamp>,
}

/// A deletion in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletionView {
    /// The deletion timestamp.
    pub since: Timestamp,
    /// True for `--cascade=orphan`: the dependents stay.
    pub orphan: bool,
}

/// The scope of the pause annotation of 5-Spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PauseLevel {
    /// Everything but reclaims and the kill switch.
    Ordinary,
    /// Everything.
    All,
}

/// The Cluster API Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// Its UID.
    pub uid: Uid,
    /// `spec.paused`.
    pub paused: bool,
    /// True if it is being deleted; it waits for the last of its Machines.
    pub terminating: bool,
}

/// A problem with an object that the spec refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferenceProblem {
    /// The field of the spec.
    pub field: String,
    /// The kind of problem.
    pub kind: ReferenceProblemKind,
    /// The description. If a permission is missing, it names the rule that grants it.
    pub message: String,
}

/// The kinds of [`ReferenceProblem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceProblemKind {
    /// The object does not exist.
    NotFound,
    /// The API server denies access.
    Forbidden,
    /// The spec may not refer to it.
    NotAllowed,
}

/// The content of one of the object names that 5-Spot uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// No object exists.
    Absent,
    /// An object that 5-Spot did not create. It is never touched.
    Foreign {
        /// The owner, as far as it is known.
        owner: String,
    },
    /// An object that 5-Spot created, now or before a restart or restore.
    Ours(T),
    /// Unknown: the API server cannot be reached, or has not responded yet.
    Unknown,
}

impl<T> Slot<T> {
    /// Returns the object if 5-Spot created it.
    pub const fn ours(&self) -> Option<&T> {
        match self {
            Self::Ours(view) => Some(view),
            Self::Absent | Self::Foreign { .. } | Self::Unknown => None,
        }
    }

    /// Returns true if the content is unknown.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// A bootstrap or infrastructure object that 5-Spot created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderView {
    /// Its kind.
    pub kind: ProviderKind,
    /// Its UID.
    pub uid: Uid,
    /// True if it has a deletion timestamp.
    pub terminating: bool,
    /// The spec that it was created from ([`crate::ValidSpec::machine_hash`]), if its annotation still exists.
    pub machine_hash: Option<Fingerprint>,
    /// True if the fields that we apply, including owner references, have the desired values.
    pub intact: bool,
}

/// The Cluster API Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineView {
    /// The API group and version in which it was read.
    pub api_version: String,
    /// Its UID.
    pub uid: Uid,
    /// Its creation timestamp.
    pub created_at: Timestamp,
    /// True if it has a deletion timestamp.
    pub terminating: bool,
    /// The spec that it was created from ([`crate::ValidSpec::machine_hash`]), if its annotation still exists.
    pub machine_hash: Option<Fingerprint>,
    /// The fingerprint of what was last applied ([`crate::ValidSpec::applied_hash`]), if its annotation still exists.
    pub applied_hash: Option<Fingerprint>,
    /// True if the fields that we apply, including owner references, have the desired values.
    pub intact: bool,
    /// True if it carries the annotation `cluster.x-k8s.io/paused`.
    pub capi_paused: bool,
    /// Its provider ID.
    pub provider_id: Option<String>,
    /// True if Cluster API skips its drain.
    pub drain_excluded: bool,
    /// True if Cluster API skips its wait for volumes.
    pub volume_wait_excluded: bool,
    /// True if the API server has refused to delete it.
    pub delete_refused: bool,
}

/// The workload cluster of the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// The cluster responds.
    Reachable(WorkloadCluster),
    /// The cluster has not responded yet.
    Pending(WorkloadCluster),
    /// The cluster cannot be used: its kubeconfig is missing, invalid or rejected, or it does not respond.
    Unusable {
        /// The cluster.
        cluster: WorkloadCluster,
        /// The kind of problem.
        problem: WorkloadProblem,
        /// The description, and what to do about it.
        message: String,
    },
}

/// The kinds of problems with a workload cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadProblem {
    /// The Secret with its kubeconfig does not exist.
    SecretMissing,
    /// The controller lacks the permission to read the Secret.
    SecretForbidden,
    /// The Secret contains no usable kubeconfig.
    KubeconfigInvalid,
    /// The cluster rejects the credentials of the kubeconfig.
    Refused,
    /// The cluster does not respond.
    Unreachable,
    /// The kubeconfig refers to a different cluster than the one in which the Node was last seen.
    WrongCluster,
    /// The controller is connected to as many clusters of the namespace as one namespace may have.
    TooManyClusters,
}

impl Workload {
    /// Returns the cluster.
    pub const fn cluster(&self) -> &WorkloadCluster {
        match self {
            Self::Reachable(cluster) | Self::Pending(cluster) | Self::Unusable { cluster, .. } => cluster,
        }
    }
}

/// The state of the Machine's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFact {
    /// The Machine has no Node yet.
    NotYet,
    /// The Machine names a Node that does not exist in the cluster in which it was last seen.
    Gone,
    /// The workload cluster cannot be reached or identified, or it contradicts the Machine.
    Unknown,
    /// The machine is in the cluster again under another name: the Node that Cluster API names does not exist, and another one has
    /// the provider ID of the Machine. Cluster API neither drains nor deletes that one, and 5-Spot does not change it.
    Renamed(NodeRef),
    /// A Node of that name exists, but its provider ID differs from that of the Machine. It is never touched.
    Mismatch {
        /// Its name.
        name: NodeName,
    },
    /// The Node exists.
    Found(NodeView),
}

impl NodeFact {
    /// Returns the Node if it exists and belongs to the Machine.
    pub const fn found(&self) -> Option<&NodeView> {
        match self {
            Self::Found(node) => Some(node),
            Self::NotYet | Self::Gone | Self::Unknown | Self::Renamed(_) | Self::Mismatch { .. } => None,
        }
    }
}

/// The Node in `status.nodeRef`, once its Machine is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormerNode {
    /// There is no such Node, or it is gone.
    #[default]
    Gone,
    /// The Node still exists: the workload cluster was asked after the Machine had gone.
    LeftBehind,
    /// The caches show the Node, but its deletion may not have reached them.
    Cached,
    /// Unknown: the workload cluster cannot be reached.
    Unknown,
}

/// The Node of the Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: NodeName,
    /// Its UID.
    pub uid: Uid,
    /// Its resource version.
    pub resource_version: ResourceVersion,
    /// Its condition `Ready`.
    pub readiness: Readiness,
    /// True if it is cordoned.
    pub unschedulable: bool,
    /// True if 5-Spot cordoned it for this object.
    pub cordoned_by_us: bool,
    /// All its taints, in their order.
    pub taints: Vec<NodeTaint>,
    /// The taints that 5-Spot has set, according to its annotation.
    pub owned_taints: Vec<TaintId>,
    /// True if it carries the label for the reclaim agent.
    pub agent_label: bool,
    /// The request of its owner to return it, if any.
    pub reclaim: Option<ReclaimRequest>,
    /// Its pods; absent while they are not watched.
    pub pods: Option<Vec<PodView>>,
    /// True if the `DaemonSets` and drain rules that decide which pods have to leave, and in which order, have been looked up.
    /// Until then every `DaemonSet` that a pod names is assumed to exist, and no rule is known.
    pub drain_rules_resolved: bool,
}

impl NodeView {
    /// Returns true if the drain rules for its pods have not been looked up yet.
    pub fn needs_drain_rules(&self) -> bool {
        !self.drain_rules_resolved && self.pods.is_some()
    }
}

/// The `Ready` condition of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// `True`.
    Ready,
    /// `False`.
    NotReady,
    /// `Unknown`: the kubelet has stopped reporting, and the end of a pod may never be confirmed.
    Unreachable,
}

/// The identity of a taint. The value is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaintId {
    /// Its key.
    pub key: String,
    /// Its effect.
    pub effect: TaintEffect,
}

impl From<&NodeTaint> for TaintId {
    fn from(taint: &NodeTaint) -> Self {
        Self { key: taint.key.clone(), effect: taint.effect }
    }
}

/// A pod on the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Its identity.
    pub id: PodId,
    /// True for the mirror of a static pod, which the API server cannot remove.
    pub mirror: bool,
    /// True if it belongs to an existing DaemonSet and would return at once.
    pub daemon_set: bool,
    /// The creation time of a pod that tolerates a cordon, so that its replacement may return to the node at once.
    pub comes_back: Option<Timestamp>,
    /// True if it has completed.
    pub finished: bool,
    /// Set if it is being deleted.
    pub terminating: Option<PodTermination>,
    /// Its treatment by the drain, according to the labels and rules of Cluster API.
    pub drain: PodDrain,
    /// The last attempt to evict it.
    pub eviction: Option<EvictionAttempt>,
}

/// The identity of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Uid,
}

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod's deletion in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodTermination {
    /// The end of its grace period.
    pub until: Timestamp,
    /// Its grace period.
    pub grace: SignedDuration,
}

/// The treatment of a pod by a drain, according to the labels and `MachineDrainRules` of Cluster API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodDrain {
    /// Evict it, after all pods of a lower order are gone.
    Evict {
        /// Its position in the order; 0 by default.
        order: i32,
    },
    /// Do not touch it.
    Skip,
    /// Wait until it has completed.
    WaitCompleted,
}

/// An attempt to evict a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionAttempt {
    /// The time of the attempt.
    pub at: Timestamp,
    /// The message of the API server if it refused the eviction (429: a disruption budget).
    pub refusal: Option<String>,
    /// True if the call failed, so that its result is unknown.
    pub failed: bool,
}

/// The ConfigMap of a reclaim agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfigView {
    /// The node of the agent.
    pub node: NodeName,
    /// The commands that it was rendered from ([`crate::ValidSpec::agent_hash`]), if its annotation still exists.
    pub rendered: Option<Fingerprint>,
    /// The UID of the Node that it was written for, if its annotation still exists.
    pub node_uid: Option<Uid>,
}

/// The failures of the last attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// The number of consecutive failures.
    pub count: u32,
    /// The last failure; absent after a success.
    pub last: Option<Failure>,
}

/// A failed attempt to carry out a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A message that names the call.
    pub message: String,
    /// True if the API server refused the call for a reason that persists.
    pub refused: bool,
    /// True if the taints of the Node could not be written.
    pub taints: bool,
    /// The time of the next attempt.
    pub retry_at: Timestamp,
}
