//! The fields that others can write, and that the controller reads.

use crate::environment::Environment;
use crate::fixtures::override_until;
use crate::in_memory::InMemory;
use crate::kinds::{
    BUDGET, CLUSTER, INFRASTRUCTURE, MACHINE, NAMESPACE, NODE, ObjectKind, POD, SCHEDULED_MACHINE, SECRET,
};
use crate::subject::{CLUSTER_NAME, Subject};
use anyhow::Context as _;
use five_spot_api::names::annotation::{
    APPLIED_TAINTS, CAPI_PAUSED, CORDONED_BY, FORCE_RECONCILE, MACHINE_HASH, PAUSED,
};
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT, REQUESTED_TRUE};
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger};
use five_spot_apiserver::ids::Ids;
use five_spot_standins::{ProviderBehaviour, StepBehaviour};
use http::StatusCode;
use serde_json::{Value, json};
use std::fmt;

const TOO_MANY_REQUESTS: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const UNPROCESSABLE_ENTITY: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
const INTERNAL_SERVER_ERROR: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

/// The longest name of a pod.
const LONGEST_NAME: usize = 253;

/// Pods with the longest names: more than status lists.
const LONG_NAMES: usize = 24;

/// A field with text that others write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The Node annotation with the reason of a reclaim.
    ReclaimReason,
    /// The Node annotation with the time of a reclaim.
    ReclaimTime,
    /// The Node annotation that asks for a reclaim.
    ReclaimRequest,
    /// The Node annotation with the taints that are ours.
    AppliedTaints,
    /// The Node annotation that says whose cordon it is.
    Cordon,
    /// The message of the Node's condition Ready.
    NodeCondition,
    /// The names of pods that a budget holds.
    PodNames,
    /// The message with which an eviction is refused.
    EvictionRefusal,
    /// The message with which a change of the Node is refused.
    NodeRefusal,
    /// The message with which a Machine is refused.
    MachineRefusal,
    /// The message with which an infrastructure object is refused.
    InfrastructureRefusal,
    /// The message of a workload cluster that fails.
    WorkloadFailure,
    /// The kubeconfig.
    Kubeconfig,
    /// The server in the kubeconfig.
    KubeconfigServer,
    /// The reason that the provider gives for its failure.
    ProviderFailure,
    /// A condition of the Cluster.
    ClusterCondition,
    /// A condition of the Machine.
    MachineCondition,
    /// A condition of the infrastructure object.
    InfrastructureCondition,
    /// The annotation that pauses a namespace.
    NamespacePause,
    /// The annotation that pauses the object.
    ObjectPause,
    /// Cluster API's annotation that pauses the Machine.
    MachinePause,
    /// The annotation with the hash of what was applied.
    MachineHash,
    /// The annotation that asks for a reconcile.
    ForceReconcile,
    /// The reason of an override.
    OverrideReason,
}

impl Field {
    /// Every one.
    pub const ALL: [Self; 24] = [
        Self::ReclaimReason,
        Self::ReclaimTime,
        Self::ReclaimRequest,
        Self::AppliedTaints,
        Self::Cordon,
        Self::NodeCondition,
        Self::PodNames,
        Self::EvictionRefusal,
        Self::NodeRefusal,
        Self::MachineRefusal,
        Self::InfrastructureRefusal,
        Self::WorkloadFailure,
        Self::Kubeconfig,
        Self::KubeconfigServer,
        Self::ProviderFailure,
        Self::ClusterCondition,
        Self::MachineCondition,
        Self::InfrastructureCondition,
        Self::NamespacePause,
        Self::ObjectPause,
        Self::MachinePause,
        Self::MachineHash,
        Self::ForceReconcile,
        Self::OverrideReason,
    ];

    /// Its number among all.
    pub(super) fn number(self) -> u64 {
        Self::ALL.iter().position(|field| *field == self).unwrap_or(0) as u64
    }

    /// One of them.
    pub(super) fn any(chance: &mut Ids) -> Self {
        Self::ALL[usize::try_from(chance.below(Self::ALL.len() as u64)).unwrap_or(0)]
    }

    /// Writes the text into the field. Returns whether the API server accepted it.
    pub(super) async fn spoil(
        self,
        env: &InMemory,
        subject: &Subject<'_>,
        node: &str,
        text: String,
    ) -> anyhow::Result<bool> {
        let dynamic: &dyn Environment = env;
        let (kind, name, patch) = match self {
            Self::ReclaimReason => (NODE, node, annotated(&json!({REQUESTED: REQUESTED_TRUE, REASON: text}))),
            Self::ReclaimTime => {
                (NODE, node, annotated(&json!({REQUESTED: REQUESTED_TRUE, REQUESTED_AT: text})))
            }
            Self::ReclaimRequest => (NODE, node, annotated(&json!({REQUESTED: text}))),
            Self::AppliedTaints => (NODE, node, annotated(&json!({APPLIED_TAINTS: text}))),
            Self::Cordon => (NODE, node, annotated(&json!({CORDONED_BY: text}))),
            Self::NamespacePause => (NAMESPACE, dynamic.namespace(), annotated(&json!({PAUSED: text}))),
            Self::ObjectPause => (SCHEDULED_MACHINE, subject.name(), annotated(&json!({PAUSED: text}))),
            Self::MachinePause => (MACHINE, &*subject.machine(), annotated(&json!({CAPI_PAUSED: text}))),
            Self::MachineHash => (MACHINE, &*subject.machine(), annotated(&json!({MACHINE_HASH: text}))),
            Self::ForceReconcile => {
                (SCHEDULED_MACHINE, subject.name(), annotated(&json!({FORCE_RECONCILE: text})))
            }
            Self::OverrideReason => {
                let mut spec = override_until("up", dynamic.in_seconds(36_000));
                spec["override"]["reason"] = text.into();
                (SCHEDULED_MACHINE, subject.name(), json!({"spec": spec}))
            }
            Self::NodeCondition => return failing(dynamic, NODE, node, "Ready", text).await,
            Self::ClusterCondition => {
                return failing(dynamic, CLUSTER, CLUSTER_NAME, "Available", text).await;
            }
            Self::MachineCondition => {
                return failing(dynamic, MACHINE, &subject.machine(), "InfrastructureReady", text).await;
            }
            Self::InfrastructureCondition => {
                return failing(dynamic, INFRASTRUCTURE, &subject.infrastructure(), "Ready", text).await;
            }
            Self::Kubeconfig => return kubeconfig(dynamic, text).await,
            Self::KubeconfigServer => {
                // JSON is YAML, so that any text is a well-formed address of a server.
                let config = json!({
                    "apiVersion": "v1", "kind": "Config", "current-context": text,
                    "clusters": [{"name": "w", "cluster": {"server": text}}],
                    "users": [{"name": "w", "user": {"token": "none"}}],
                    "contexts": [{"name": text, "context": {"cluster": "w", "user": "w"}}],
                });
                return kubeconfig(dynamic, config.to_string()).await;
            }
            Self::ProviderFailure => {
                dynamic.provider(ProviderBehaviour {
                    provision: StepBehaviour::Fails(text),
                    ..ProviderBehaviour::default()
                });
                return Ok(true);
            }
            Self::PodNames => return long_names(dynamic, node).await,
            Self::EvictionRefusal => {
                return Ok(refuse(env, RequestKind::Write, "/eviction", TOO_MANY_REQUESTS, text));
            }
            Self::NodeRefusal => return Ok(refuse(env, RequestKind::Write, "/nodes/", FORBIDDEN, text)),
            Self::MachineRefusal => {
                return Ok(refuse(env, RequestKind::Write, "/machines", UNPROCESSABLE_ENTITY, text));
            }
            Self::InfrastructureRefusal => {
                return Ok(refuse(env, RequestKind::Write, "/remotemachines", FORBIDDEN, text));
            }
            Self::WorkloadFailure => {
                return Ok(refuse(env, RequestKind::Read, "/nodes", INTERNAL_SERVER_ERROR, text));
            }
        };
        taken(dynamic.patch(kind, name, patch).await)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Makes requests fail with the text, which is always possible.
fn refuse(env: &InMemory, kind: RequestKind, path: &str, code: StatusCode, text: String) -> bool {
    let (trigger, fault) = (Trigger::PerMille(1000), InjectedFault::RefuseSaying(code, text));
    env.add_fault(FaultRule { kind, path: path.to_owned(), trigger, fault });
    true
}

fn annotated(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

/// A condition that fails with the text.
async fn failing(
    env: &dyn Environment,
    kind: ObjectKind,
    name: &str,
    condition: &str,
    text: String,
) -> anyhow::Result<bool> {
    let condition = json!({
        "type": condition, "status": "False", "reason": "Failed", "message": text,
        "lastTransitionTime": env.in_seconds(0).to_string(),
    });
    taken(env.patch_status(kind, name, json!({"conditions": [condition]})).await)
}

async fn kubeconfig(env: &dyn Environment, text: String) -> anyhow::Result<bool> {
    let secret = env.kubeconfig_secret().context("there is a Secret")?;
    taken(env.patch(SECRET, &secret, json!({"stringData": {"value": text}})).await)
}

/// Pods with the longest names that a budget holds.
async fn long_names(env: &dyn Environment, node: &str) -> anyhow::Result<bool> {
    let budget = json!({
        "metadata": {"name": "held"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "held"}}},
    });
    let mut is_taken = taken(env.create(BUDGET, budget).await)?;
    for number in 0..LONG_NAMES {
        let pod = json!({
            "metadata": {
                "name": format!("{}-{number:02}", "n".repeat(LONGEST_NAME - 3)), "labels": {"app": "held"},
            },
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "registry.invalid/sleeper"}]},
        });
        is_taken &= taken(env.create(POD, pod).await)?;
    }
    Ok(is_taken)
}

/// Returns true if the API server accepted a text. One that it refuses as invalid does no harm.
fn taken(written: anyhow::Result<Value>) -> anyhow::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(error) => match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(false),
            _ => Err(error),
        },
    }
}
