//! DELETE of one object and of a collection.

use super::convert::to_served;
use super::read::Selection;
use super::{Call, Served};
use crate::clock::whole_seconds;
use crate::error::ApiError;
use crate::frontend::{Reply, represent};
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use crate::state::State;
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;

/// The propagation policy of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// `metav1.DeleteOptions`, from the body or the query.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteRequest {
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub precondition_uid: Option<String>,
    pub precondition_version: Option<String>,
    pub dry_run: bool,
}

/// The result of a deletion.
pub(crate) enum Deleted {
    /// The object is gone; this is its last state.
    Gone(Arc<Value>),
    /// The object waits for its finalizers or its grace period.
    Waiting(Arc<Value>),
}

pub(super) fn delete(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let request = read_options(call)?;
    let outcome = delete_object(state, &call.resource, &call.namespace, call.name(), &request)?;
    let resource = &call.resource;
    let (object, is_gone) = match outcome {
        Deleted::Gone(object) => (object, true),
        Deleted::Waiting(object) => (object, false),
    };
    if is_gone && !returns_deleted_object(resource) {
        return Ok(Reply::ok(success(resource, &object)));
    }
    let code = StatusCode::OK;
    let served = to_served(resource, &object).into_owned();
    Ok(Reply::json(code, represent(served, resource, &call.accept, &call.options, state.clock.now())))
}

fn returns_deleted_object(resource: &Resource) -> bool {
    matches!(resource.builtin(), Some(BuiltinKind::Pod | BuiltinKind::ServiceAccount))
}

fn success(resource: &Resource, object: &Value) -> Value {
    let mut details =
        json!({"name": object::name(object), "kind": resource.plural, "uid": object::uid(object)});
    if !resource.group.is_empty() {
        details["group"] = resource.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub(super) fn delete_collection(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let request = read_options(call)?;
    let selection = Selection::of(call)?;
    let resource = call.resource.clone();
    let mut items = state.store.list(&resource.store, selection.namespace());
    items.retain(|item| selection.matches(&to_served(&resource, item)));
    let mut deleted = Vec::new();
    for item in items {
        let (namespace, name) = (object::namespace(&item), object::name(&item));
        match delete_object(state, &resource, namespace, name, &request) {
            Ok(_) => deleted.push(Served::item(&resource, &item)),
            // The object has been deleted meanwhile, by another client or with its owner.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    let items = serde_json::to_value(&deleted).map_err(|error| ApiError::internal(error.to_string()))?;
    let mut list = json!({
        "kind": resource.list_kind, "apiVersion": resource.api_version(),
        "metadata": {"resourceVersion": state.store.revision().to_string()}, "items": items,
    });
    if resource.custom().is_some() {
        list["metadata"]["continue"] = "".into();
    }
    Ok(Reply::ok(represent(list, &resource, &call.accept, &call.options, state.clock.now())))
}

pub(super) fn read_options(call: &Call) -> Result<DeleteRequest, ApiError> {
    let body: Value = if call.body.is_empty() { json!({}) } else { super::decode::body(call)? };
    parse_options(&body, call)
}

/// Reads options from a `metav1.DeleteOptions` object; the query is used where it has none.
pub(super) fn parse_options(body: &Value, call: &Call) -> Result<DeleteRequest, ApiError> {
    let policy = body["propagationPolicy"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| call.options.propagation_policy.clone());
    let orphan = body["orphanDependents"].as_bool().or(call.options.orphan_dependents);
    let propagation = match (policy.as_deref(), orphan) {
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (None, None) => None,
        (Some(other), _) => {
            let fault = crate::error::Fault::unsupported(
                "propagationPolicy",
                &json!(other),
                &["Foreground", "Background", "Orphan", "nil"],
            );
            let subject = crate::error::Subject { group: "meta.k8s.io", kind: "DeleteOptions", name: "" };
            return Err(ApiError::invalid(subject, &[fault]));
        }
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut dry_run = call.options.dry_run.clone();
    dry_run.extend(body["dryRun"].as_array().into_iter().flatten().filter_map(text));
    Ok(DeleteRequest {
        grace_period_seconds: body["gracePeriodSeconds"].as_i64().or(call.options.grace_period_seconds),
        propagation,
        precondition_uid: text(&body["preconditions"]["uid"]),
        precondition_version: text(&body["preconditions"]["resourceVersion"]),
        dry_run: crate::frontend::Options { dry_run, ..Default::default() }.is_dry_run()?,
    })
}

/// Deletes an object, or marks it as terminating.
pub(crate) fn delete_object(
    state: &mut State,
    resource: &Resource,
    namespace: &str,
    name: &str,
    request: &DeleteRequest,
) -> Result<Deleted, ApiError> {
    let old = state
        .find(resource, namespace, name)
        .cloned()
        .ok_or_else(|| ApiError::not_found(resource.subject(name)))?;
    check_preconditions(resource, &old, request)?;
    let mut value = (*old).clone();
    set_propagation_finalizers(resource, &mut value, request);
    let grace = grace_period(resource, &value, request);
    mark_terminating(state, resource, &mut value, grace);
    let holds_content = resource.is(BuiltinKind::Namespace)
        && value["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    let waits = object::finalizers(&value).next().is_some()
        || value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0
        || holds_content;
    if request.dry_run {
        let last = if resource.is(BuiltinKind::Pod) { Arc::new(value.clone()) } else { old };
        return Ok(if waits { Deleted::Waiting(Arc::new(value)) } else { Deleted::Gone(last) });
    }
    if !waits {
        if resource.is(BuiltinKind::Pod) && value != *old {
            // Watches see that a pod terminates even if its grace period is zero.
            state.store.put(&resource.store, value);
        }
        let last = state.store.remove(&resource.store, namespace, name).unwrap_or(old);
        return Ok(Deleted::Gone(last));
    }
    if value == *old {
        return Ok(Deleted::Waiting(old));
    }
    Ok(Deleted::Waiting(state.store.put(&resource.store, value)))
}

fn check_preconditions(resource: &Resource, old: &Value, request: &DeleteRequest) -> Result<(), ApiError> {
    let name = object::name(old);
    if let Some(uid) = &request.precondition_uid
        && uid != object::uid(old)
    {
        return Err(wrong_uid(resource, name, uid, object::uid(old)));
    }
    if let Some(version) = &request.precondition_version
        && version != object::resource_version(old)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            object::resource_version(old)
        );
        return Err(ApiError::conflict(resource.kind_subject(name), why));
    }
    Ok(())
}

/// The UID of the object differs from the precondition.
pub(super) fn wrong_uid(resource: &Resource, name: &str, wanted: &str, found: &str) -> ApiError {
    let why = format!(
        "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have \
         been deleted and then recreated"
    );
    ApiError::conflict(resource.kind_subject(name), why)
}

/// Records the propagation policy as finalizers, which the garbage collector acts on.
fn set_propagation_finalizers(resource: &Resource, value: &mut Value, request: &DeleteRequest) {
    let Some(propagation) = request.propagation else {
        return;
    };
    let mut finalizers: Vec<String> = object::finalizers(value)
        .filter(|one| !matches!(*one, "orphan" | "foregroundDeletion"))
        .map(str::to_owned)
        .collect();
    match propagation {
        Propagation::Orphan => finalizers.push("orphan".to_owned()),
        Propagation::Foreground => finalizers.push("foregroundDeletion".to_owned()),
        Propagation::Background => {}
    }
    let _ = resource;
    object::set_finalizers(value, &finalizers);
}

/// Only pods have a grace period: their own or the requested one; none before they run or after they have
/// ended.
fn grace_period(resource: &Resource, value: &Value, request: &DeleteRequest) -> i64 {
    if !resource.is(BuiltinKind::Pod) {
        return 0;
    }
    let is_running = value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty())
        && !matches!(value["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !is_running {
        return 0;
    }
    let own = value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    request.grace_period_seconds.unwrap_or(own).max(0)
}

fn mark_terminating(state: &State, resource: &Resource, value: &mut Value, grace: i64) {
    let deadline = |from: jiff::Timestamp| {
        whole_seconds(from.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(from))
    };
    if object::is_terminating(value) {
        let current = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if grace < current {
            // The new, earlier end counts from the time of the first deletion.
            let requested = object::meta_str(value, "deletionTimestamp")
                .parse::<jiff::Timestamp>()
                .ok()
                .and_then(|end| end.checked_sub(SignedDuration::from_secs(current)).ok());
            object::set_meta(
                value,
                "deletionTimestamp",
                deadline(requested.unwrap_or_else(|| state.clock.now())),
            );
            object::set_meta(value, "deletionGracePeriodSeconds", grace);
        }
        return;
    }
    object::set_meta(value, "deletionTimestamp", deadline(state.clock.now()));
    if resource.is(BuiltinKind::Namespace) {
        value["status"]["phase"] = "Terminating".into();
        return;
    }
    if resource.is(BuiltinKind::CustomResourceDefinition) {
        crate::side_effects::begin_crd_deletion(value, &state.clock.stamp());
        return;
    }
    object::set_meta(value, "deletionGracePeriodSeconds", grace);
    if let Some(generation) = value["metadata"]["generation"].as_i64() {
        object::set_meta(value, "generation", generation + 1);
    }
}
