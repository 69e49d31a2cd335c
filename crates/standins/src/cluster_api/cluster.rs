//! A Cluster, as far as its Machines need it: provisioned when the objects that it refers to are, and kept
//! until its last Machine is gone.

use super::super::context::ActorContext;
use super::super::kinds::{CORE_GROUP, ObjectKey};
use super::super::work_queue::Next;
use super::conditions::{Condition, merged};
use super::shape::{Contract, Reference, reference};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The finalizer that keeps a Cluster until its Machines are gone.
const FINALIZER: &str = "cluster.cluster.x-k8s.io";

pub(super) async fn reconcile(
    key: &ObjectKey,
    context: &mut ActorContext,
    now: Timestamp,
) -> kube::Result<Next> {
    let Some(cluster) = context.get(key) else {
        return Ok(None);
    };
    let spec = &cluster.data["spec"];
    if spec["paused"] == true {
        return Ok(None);
    }
    let is_held = cluster.finalizers().iter().any(|one| one == FINALIZER);
    if cluster.metadata.deletion_timestamp.is_some() {
        if is_held && machines(key, context) == 0 {
            context.merge(key, with_finalizers(&cluster, |all| all.retain(|one| one != FINALIZER))).await?;
        }
        return Ok(None);
    }
    if !is_held {
        let patch = with_finalizers(&cluster, |all| all.push(FINALIZER.to_owned()));
        return context.merge(key, patch).await.map(|()| None);
    }
    let infrastructure = is_done(key, context, &spec["infrastructureRef"], "provisioned");
    let control_plane = is_done(key, context, &spec["controlPlaneRef"], "controlPlaneInitialized");
    let status = status(&cluster.data["status"], Contract::of(&key.kind), infrastructure, control_plane, now);
    context.merge_status(key, status).await?;
    Ok(None)
}

/// The number of Machines of a Cluster.
fn machines(key: &ObjectKey, context: &ActorContext) -> usize {
    let kind = context.kind(CORE_GROUP, "Machine");
    let all = kind.iter().flat_map(|kind| context.list(kind, &key.namespace));
    all.filter(|(_, machine)| machine.data["spec"]["clusterName"] == key.name.as_str()).count()
}

/// The merge patch that changes the finalizers of an object, unless it has changed meanwhile.
pub(super) fn with_finalizers(object: &DynamicObject, change: impl FnOnce(&mut Vec<String>)) -> Value {
    let mut finalizers = object.finalizers().to_vec();
    change(&mut finalizers);
    let version = &object.metadata.resource_version;
    json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}})
}

/// Returns true if a part of a Cluster is initialized. A part that the Cluster does not refer to is managed
/// elsewhere and counts as initialized.
fn is_done(key: &ObjectKey, context: &ActorContext, value: &Value, field: &str) -> bool {
    let Some(Reference { group, kind, name }) = reference(value) else {
        return true;
    };
    let object = context.kind(&group, &kind).and_then(|kind| context.get(&kind.key(&key.namespace, &name)));
    object.is_some_and(|object| object.data["status"]["initialization"][field] == true)
}

fn status(
    existing: &Value,
    contract: Contract,
    infrastructure: bool,
    control_plane: bool,
    now: Timestamp,
) -> Value {
    let condition = |kind: &'static str, is_true: bool, good: &str, bad: &str| {
        if is_true { Condition::new(kind, "True", good) } else { Condition::new(kind, "False", bad) }
    };
    let is_available = infrastructure && control_plane;
    let phase = if is_available { "Provisioned" } else { "Provisioning" };
    let (mut status, conditions) = match contract {
        Contract::V1Beta1 => (
            json!({"infrastructureReady": infrastructure, "controlPlaneReady": control_plane}),
            vec![
                condition("Ready", is_available, "", "NotReady"),
                condition("InfrastructureReady", infrastructure, "", "WaitingForInfrastructure"),
                condition(
                    "ControlPlaneInitialized",
                    control_plane,
                    "",
                    "WaitingForControlPlaneProviderInitialized",
                ),
            ],
        ),
        Contract::V1Beta2 => (
            json!({"initialization": {
                "infrastructureProvisioned": infrastructure, "controlPlaneInitialized": control_plane,
            }}),
            vec![
                condition("Available", is_available, "Available", "NotAvailable"),
                condition("InfrastructureReady", infrastructure, "Ready", "NotReady"),
                condition("ControlPlaneInitialized", control_plane, "Initialized", "NotInitialized"),
            ],
        ),
    };
    status["phase"] = phase.into();
    status["conditions"] = merged(&existing["conditions"], &conditions, now);
    status
}
