//! POST to `pods/<name>/binding`, by which a scheduler assigns a pod to a Node.

use super::{Call, decode};
use crate::error::{ApiError, Fault, Subject};
use crate::frontend::Reply;
use crate::object;
use crate::state::State;
use crate::strategy;
use http::StatusCode;
use k8s_openapi::api::core::v1::Binding;
use serde_json::{Value, json};

pub(super) fn bind(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let body = decode::body(call)?;
    let binding: Binding = serde_json::from_value(body)
        .map_err(|error| ApiError::bad_request(format!("this cannot be handled as a Binding: {error}")))?;
    check_place(&binding, call)?;
    check_target(&binding)?;
    let dry_run = call.options.is_dry_run()?;
    let subject = call.resource.subject(call.name());
    let pod = state
        .find(&call.resource, &call.namespace, call.name())
        .cloned()
        .ok_or_else(|| ApiError::not_found(subject))?;
    check_preconditions(&binding, &pod, call)?;
    if let Some(why) = obstacle(&pod, call.name()) {
        let subject = Subject { group: "", kind: "pods/binding", name: call.name() };
        return Err(ApiError::conflict(subject, why));
    }
    if !dry_run {
        let bound = bound(state, &binding, &pod);
        // Changes by a binding have no owner in `managedFields`.
        state.store.put(&call.resource.store, bound);
    }
    Ok(Reply::json(
        StatusCode::CREATED,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

fn check_place(binding: &Binding, call: &Call) -> Result<(), ApiError> {
    let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
    if !namespace.is_empty() && namespace != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if binding.metadata.name.as_deref() != Some(call.name()) {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    Ok(())
}

/// A real server responds to an invalid target with an internal error instead of an invalid object.
fn check_target(binding: &Binding) -> Result<(), ApiError> {
    let (kind, name) = (binding.target.kind.as_deref(), binding.target.name.as_deref());
    let mut faults = Vec::new();
    if !matches!(kind, None | Some("" | "Node")) {
        faults.push(Fault::unsupported("target.kind", &json!(kind), &["Node", "<empty>"]));
    }
    if name.unwrap_or_default().is_empty() {
        faults.push(Fault::required("target.name", ""));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let subject = Subject { group: "", kind: "Binding", name: "" };
    let message = ApiError::invalid(subject, &faults).message;
    Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message))
}

fn check_preconditions(binding: &Binding, pod: &Value, call: &Call) -> Result<(), ApiError> {
    let metadata = &binding.metadata;
    for (what, wanted, found) in [
        ("UID", &metadata.uid, object::uid(pod)),
        ("ResourceVersion", &metadata.resource_version, object::resource_version(pod)),
    ] {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| !wanted.is_empty() && *wanted != found) {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            return Err(ApiError::conflict(call.resource.subject(call.name()), why));
        }
    }
    Ok(())
}

/// The reason why a pod cannot be bound.
fn obstacle(pod: &Value, name: &str) -> Option<String> {
    let spec = &pod["spec"];
    let is_gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    if object::is_terminating(pod) {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if let Some(node) = spec["nodeName"].as_str() {
        Some(format!("pod {name} is already assigned to node {node:?}"))
    } else if is_gated {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    }
}

/// Assigns the pod to its Node.
fn bound(state: &State, binding: &Binding, pod: &Value) -> Value {
    let node = binding.target.name.as_deref().unwrap_or_default();
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = node.into();
    let metadata = object::metadata_mut(&mut bound);
    let mut labels = json!(binding.metadata.labels.clone().unwrap_or_default());
    strategy::merge_texts(&mut labels, &topology(state, node));
    let annotations = json!(binding.metadata.annotations.clone().unwrap_or_default());
    for (field, brought) in [("labels", labels), ("annotations", annotations)] {
        if brought.as_object().is_some_and(|brought| !brought.is_empty()) {
            strategy::merge_texts(metadata.entry(field).or_insert_with(|| json!({})), &brought);
        }
    }
    let status = object::object_field(&mut bound, "status");
    status.remove("nominatedNodeName");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    set_scheduled_condition(conditions, &state.clock.stamp());
    bound
}

/// The labels of a Node that are copied to its pods.
pub(super) fn topology(state: &State, node: &str) -> Value {
    const COPIED: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];
    let nodes = state.kinds.find("", "v1", "nodes");
    let Some(node) = nodes.and_then(|nodes| state.find(&nodes, "", node)) else {
        return json!({});
    };
    let labels = &node["metadata"]["labels"];
    COPIED.iter().filter(|key| labels[**key].is_string()).map(|key| (*key, labels[*key].clone())).collect()
}

/// Sets the `PodScheduled` condition of the pod.
fn set_scheduled_condition(conditions: &mut Value, now: &str) {
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    match list.iter_mut().find(|one| one["type"] == "PodScheduled") {
        Some(known) => *known = scheduled,
        None => list.push(scheduled),
    }
}
