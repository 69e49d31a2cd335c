//! What was observed: everything that a decision may depend on besides the spec and the time.
//!
//! The values here are compact on purpose. Whoever observes (the `cluster` crate, the sandbox, a test)
//! boils the objects of a cluster down to these facts; `decide` never sees an object.

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
    /// What makes an object this one and no other of the same name.
    Uid,
    /// The name of a Node.
    NodeName,
    /// The version of an object that was read; a write that carries it fails if it is stale.
    ResourceVersion,
}

/// Everything that was observed about one `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// How this controller was told to behave.
    pub policy: Policy,
    /// The `ScheduledMachine` itself.
    pub object: ObjectView,
    /// The status that it carries.
    pub status: ScheduledMachineStatus,
    /// The CAPI cluster that the spec names.
    pub cluster: Option<ClusterView>,
    /// Our pause annotation on the namespace.
    pub namespace_pause: Option<PauseLevel>,
    /// What is wrong with the things that the spec refers to, besides a missing cluster.
    pub references: Vec<ReferenceProblem>,
    /// The object called `<name>-bootstrap`.
    pub bootstrap: Slot<ProviderView>,
    /// The object called `<name>-infra`.
    pub infrastructure: Slot<ProviderView>,
    /// The Machine called `<name>-machine`.
    pub machine: Slot<MachineView>,
    /// The cluster in which the Node lives.
    pub workload: Workload,
    /// The Node of the Machine.
    pub node: NodeFact,
    /// The Node in `status.nodeRef`, once its Machine is gone.
    pub former_node: FormerNode,
    /// Since when the status of the object could not be written, if the last attempt failed. What should be on record
    /// since then is not.
    pub unrecorded_since: Option<Timestamp>,
    /// ConfigMaps for reclaim agents that were made for this object.
    pub agent_configs: Vec<AgentConfigView>,
    /// What went wrong in the last attempts.
    pub failures: Failures,
}

/// How this controller was told to behave.
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

/// The `ScheduledMachine` itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectView {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Uid,
    /// The generation of its spec.
    pub generation: i64,
    /// Set while it is being deleted.
    pub deletion: Option<DeletionView>,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// `cluster.x-k8s.io/paused` is on it.
    pub capi_paused: bool,
    /// `5spot.finos.org/paused` is on it.
    pub paused: Option<PauseLevel>,
}

/// A deletion in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletionView {
    /// The deletion timestamp.
    pub since: Timestamp,
    /// `--cascade=orphan`: the dependents are to stay.
    pub orphan: bool,
}

/// How much our own pause annotation holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PauseLevel {
    /// Everything but reclaims and the kill switch.
    Ordinary,
    /// Everything.
    All,
}

/// The CAPI Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// Its UID.
    pub uid: Uid,
    /// `spec.paused`.
    pub paused: bool,
    /// It is being deleted, and waits for the last of its Machines.
    pub terminating: bool,
}

/// Something that the spec refers to is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferenceProblem {
    /// The field of the spec.
    pub field: String,
    /// What kind of problem.
    pub kind: ReferenceProblemKind,
    /// What exactly, and for a refusal which rule would grant it.
    pub message: String,
}

/// The kinds of [`ReferenceProblem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceProblemKind {
    /// It does not exist.
    NotFound,
    /// The API server refuses us.
    Forbidden,
    /// The spec may not ask for it.
    NotAllowed,
}

/// What is found under one of the names that belong to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// Nothing.
    Absent,
    /// An object that is not ours: it is never touched.
    Foreign {
        /// Whose it is, as far as can be told.
        owner: String,
    },
    /// An object of ours, of this or of an earlier life.
    Ours(T),
    /// The API server could not be asked, or has not answered yet.
    Unknown,
}

impl<T> Slot<T> {
    /// The object, if it is ours.
    pub const fn ours(&self) -> Option<&T> {
        match self {
            Self::Ours(view) => Some(view),
            Self::Absent | Self::Foreign { .. } | Self::Unknown => None,
        }
    }

    /// Nobody knows what is there.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// A bootstrap or infrastructure object of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderView {
    /// What it is.
    pub kind: ProviderKind,
    /// Its UID.
    pub uid: Uid,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// The spec that it was made from ([`crate::ValidSpec::machine_hash`]), if it still says.
    pub machine_hash: Option<Fingerprint>,
    /// The fields that we own, owner references among them, are as we would apply them.
    pub intact: bool,
}

/// The CAPI Machine of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineView {
    /// Group and version in which it was read.
    pub api_version: String,
    /// Its UID.
    pub uid: Uid,
    /// When it was made.
    pub created_at: Timestamp,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// The spec that it was made from ([`crate::ValidSpec::machine_hash`]), if it still says.
    pub machine_hash: Option<Fingerprint>,
    /// What was last applied to it ([`crate::ValidSpec::applied_hash`]), if it still says.
    pub applied_hash: Option<Fingerprint>,
    /// The fields that we own, owner references among them, are as we would apply them.
    pub intact: bool,
    /// `cluster.x-k8s.io/paused` is on it.
    pub capi_paused: bool,
    /// How the provider knows it.
    pub provider_id: Option<String>,
    /// CAPI is told not to drain.
    pub drain_excluded: bool,
    /// CAPI is told not to wait for volumes.
    pub volume_wait_excluded: bool,
    /// The API server has refused to delete it.
    pub delete_refused: bool,
}

/// The cluster in which the Node lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// It can be reached.
    Reachable(WorkloadCluster),
    /// It has not answered yet; it will, or turn out to be unusable.
    Pending(WorkloadCluster),
    /// Its kubeconfig is missing, broken, refused, or does not lead anywhere.
    Unusable {
        /// Which kubeconfig.
        cluster: WorkloadCluster,
        /// The kind of problem.
        problem: WorkloadProblem,
        /// What exactly is wrong, and what to do about it.
        message: String,
    },
}

/// Why a workload cluster cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadProblem {
    /// The Secret with its kubeconfig does not exist.
    SecretMissing,
    /// The controller may not read the Secret.
    SecretForbidden,
    /// The Secret holds no kubeconfig that can be used.
    KubeconfigInvalid,
    /// The cluster refuses the credentials of the kubeconfig.
    Refused,
    /// The cluster does not answer.
    Unreachable,
    /// The kubeconfig leads to another cluster than the one that the Node was last seen in.
    WrongCluster,
}

impl Workload {
    /// Which kubeconfig it is.
    pub const fn cluster(&self) -> &WorkloadCluster {
        match self {
            Self::Reachable(cluster) | Self::Pending(cluster) | Self::Unusable { cluster, .. } => cluster,
        }
    }
}

/// What is known of the Machine's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFact {
    /// The Machine names no Node yet.
    NotYet,
    /// The Machine names a Node that does not exist, by the word of the cluster that it was last seen in.
    Gone,
    /// The Node's cluster cannot be asked, or contradicts the Machine.
    Unknown,
    /// A Node of that name exists, but its provider ID is not the Machine's: it is never touched.
    Mismatch {
        /// Its name.
        name: NodeName,
    },
    /// The Node of our Machine.
    Found(NodeView),
}

impl NodeFact {
    /// The Node, if it is ours to touch.
    pub const fn found(&self) -> Option<&NodeView> {
        match self {
            Self::Found(node) => Some(node),
            Self::NotYet | Self::Gone | Self::Unknown | Self::Mismatch { .. } => None,
        }
    }
}

/// The Node in `status.nodeRef`, once its Machine is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormerNode {
    /// There is none, or it is gone.
    #[default]
    Gone,
    /// It is still in its cluster.
    LeftBehind,
    /// Its cluster cannot be asked.
    Unknown,
}

/// The Node of our Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: NodeName,
    /// Its UID.
    pub uid: Uid,
    /// The version that was read.
    pub resource_version: ResourceVersion,
    /// The kubelet's word, or nobody's.
    pub readiness: Readiness,
    /// It is cordoned.
    pub unschedulable: bool,
    /// It was 5-Spot that cordoned it, for this object.
    pub cordoned_by_us: bool,
    /// All its taints, in their order.
    pub taints: Vec<NodeTaint>,
    /// Which of them its annotation says are 5-Spot's.
    pub owned_taints: Vec<TaintId>,
    /// The label that brings the reclaim agent is on it.
    pub agent_label: bool,
    /// Its owner wants it back.
    pub reclaim: Option<ReclaimRequest>,
    /// Its pods; absent while nobody watches them.
    pub pods: Option<Vec<PodView>>,
    /// Everything has been looked up that says which pods have to leave, and in which order. Until then a `DaemonSet` that a
    /// pod names is taken to exist, and no rule is known.
    pub pods_judged: bool,
}

impl NodeView {
    /// Whether there are pods of which is not known yet whether they have to leave.
    pub fn has_unjudged_pods(&self) -> bool {
        !self.pods_judged && self.pods.is_some()
    }
}

/// The `Ready` condition of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// `True`.
    Ready,
    /// `False`.
    NotReady,
    /// `Unknown`: the kubelet is silent, and pods on it may never be confirmed gone.
    Unreachable,
}

/// What makes a taint this one: its value may change.
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
    /// Which pod.
    pub id: PodId,
    /// A mirror of a static pod: the API server cannot remove it.
    pub mirror: bool,
    /// It belongs to a DaemonSet that exists, and would come back at once.
    pub daemon_set: bool,
    /// It tolerates a cordon, so that another of it may come back to the node at once: when this one was made.
    pub comes_back: Option<Timestamp>,
    /// It has run to its end.
    pub finished: bool,
    /// Set once it is being deleted.
    pub terminating: Option<PodTermination>,
    /// What CAPI's drain labels and rules say of it.
    pub drain: PodDrain,
    /// What came of the last attempt to evict it.
    pub eviction: Option<EvictionAttempt>,
}

/// Which pod.
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
    /// When it should be gone, its grace period counted.
    pub until: Timestamp,
    /// The grace period that it was given.
    pub grace: SignedDuration,
}

/// What CAPI's drain labels and `MachineDrainRules` say of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodDrain {
    /// Evict it, after all pods of a lower order are gone.
    Evict {
        /// Its place in the order; 0 where nothing is said.
        order: i32,
    },
    /// Leave it alone.
    Skip,
    /// Wait until it has run to its end.
    WaitCompleted,
}

/// An attempt to evict a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionAttempt {
    /// When.
    pub at: Timestamp,
    /// What the API server said when it refused last (429: a disruption budget).
    pub refusal: Option<String>,
    /// The call failed: nobody knows what came of it.
    pub failed: bool,
}

/// The ConfigMap of a reclaim agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfigView {
    /// The node of that agent.
    pub node: NodeName,
    /// The commands that it was rendered from ([`crate::ValidSpec::agent_hash`]), if it still says.
    pub rendered: Option<Fingerprint>,
}

/// What went wrong in the last attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many attempts in a row have failed.
    pub count: u32,
    /// The last one; absent after a success.
    pub last: Option<Failure>,
}

/// A failed attempt to carry out a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it was, in a sentence that names the call.
    pub message: String,
    /// The API server refused it for a reason that will not go away by itself.
    pub refused: bool,
    /// It was the Node's taints that could not be written.
    pub taints: bool,
    /// When the next attempt is due.
    pub retry_at: Timestamp,
}
