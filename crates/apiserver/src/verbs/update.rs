//! PUT, and the steps that every change of an existing object goes through.

use super::convert::{to_served, to_stored};
use super::create::{self, owner};
use super::{Call, decode};
use crate::apply::{Operation, track_update};
use crate::error::{ApiError, Fault};
use crate::frontend::{Reply, represent};
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use crate::state::State;
use crate::strategy;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn update(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let (mut value, warnings) = decode::object(call)?;
    decode::check_place(&mut value, call)?;
    let resource = &call.resource;
    let Some(stored) = state.find(resource, &call.namespace, call.name()).cloned() else {
        return create_by_update(state, call, value, warnings);
    };
    let old = to_served(resource, &stored).into_owned();
    check_version(call, &value, &old)?;
    check_uid(call, &value, &old)?;
    strategy::apply_defaults(resource, &mut value);
    let owner = owner(state, call, Operation::Update);
    track_update(&old, &mut value, resource.type_ref(), &owner, false);
    let result = store_changed(state, call, value, &old)?;
    Ok(reply(state, call, StatusCode::OK, &result).with_warnings(warnings))
}

/// The response that contains an object after a write.
pub(super) fn reply(state: &State, call: &Call, code: StatusCode, stored: &Value) -> Reply {
    let served = to_served(&call.resource, stored).into_owned();
    Reply::json(code, represent(served, &call.resource, &call.accept, &call.options, state.clock.now()))
}

/// A few kinds are created by an update of a missing object; for the others, the update fails.
fn create_by_update(
    state: &mut State,
    call: &Call,
    mut value: Value,
    warnings: Vec<String>,
) -> Result<Reply, ApiError> {
    let resource = &call.resource;
    let allowed =
        matches!(resource.builtin(), Some(BuiltinKind::Lease | BuiltinKind::CoreEvent | BuiltinKind::Event));
    if !allowed || call.subresource.is_some() {
        return Err(ApiError::not_found(resource.subject(call.name())));
    }
    create::prepare(state, resource, &mut value)?;
    strategy::apply_defaults(resource, &mut value);
    let owner = owner(state, call, Operation::Update);
    track_update(&strategy::zero(resource), &mut value, resource.type_ref(), &owner, true);
    let dry_run = call.options.is_dry_run()?;
    let stored = create::store_new(state, call, value, dry_run)?;
    Ok(reply(state, call, StatusCode::CREATED, &stored).with_warnings(warnings))
}

/// A resource version in an update must be the current one. Custom resources require one.
fn check_version(call: &Call, value: &Value, old: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let sent = object::resource_version(value);
    if sent.is_empty() {
        let is_unconditional = !matches!(
            resource.builtin(),
            None | Some(
                BuiltinKind::CustomResourceDefinition | BuiltinKind::Lease | BuiltinKind::PodDisruptionBudget
            )
        );
        if is_unconditional {
            return Ok(());
        }
        let fault = Fault {
            field: "metadata.resourceVersion".to_owned(),
            reason: "FieldValueInvalid",
            message: "Invalid value: 0x0: must be specified for an update".to_owned(),
        };
        return Err(ApiError::invalid(resource.subject(call.name()), &[fault]));
    }
    if sent == object::resource_version(old) {
        Ok(())
    } else {
        Err(ApiError::stale(resource.subject(call.name())))
    }
}

pub(super) fn check_uid(call: &Call, value: &Value, old: &Value) -> Result<(), ApiError> {
    let (sent, present) = (object::uid(value), object::uid(old));
    if sent.is_empty() || sent == present {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {present}");
    Err(ApiError::conflict(call.resource.subject(call.name()), why))
}

/// All steps from a changed object to the store: fields that the endpoint must not change, validation, the
/// write (skipped if nothing changed), and the removal of an object that only waited for its finalizers.
pub(super) fn store_changed(
    state: &mut State,
    call: &Call,
    mut value: Value,
    old: &Value,
) -> Result<Arc<Value>, ApiError> {
    let resource = &call.resource;
    keep_server_fields(resource, &mut value, old);
    restrict_to_endpoint(call, &mut value, old);
    strategy::prepare_update(resource, &mut value, old);
    count_generation(resource, &mut value, old);
    let mut faults = strategy::validate_metadata(resource, &value, Some(old));
    if !call.is_status() || resource.custom().is_some() {
        faults.extend(strategy::validate(resource, &value, Some(old)));
    }
    if !faults.is_empty() {
        return Err(ApiError::invalid(resource.kind_subject(call.name()), &faults));
    }
    let stored_old = state.find(resource, &call.namespace, call.name()).cloned();
    if same_but_times(&value, old) {
        return stored_old.ok_or_else(|| ApiError::not_found(resource.subject(call.name())));
    }
    let stored = to_stored(resource, value)?;
    if call.options.is_dry_run()? {
        return Ok(Arc::new(stored));
    }
    Ok(put_or_finish(state, resource, stored))
}

/// Stores an object, or removes it if it is terminating and has no finalizers left.
pub(crate) fn put_or_finish(state: &mut State, resource: &Resource, value: Value) -> Arc<Value> {
    let is_finished = object::is_terminating(&value)
        && object::finalizers(&value).next().is_none()
        && value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !(resource.is(BuiltinKind::Namespace)
            && value["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()));
    if is_finished {
        // Watches get the last stored state; the client gets what it wrote.
        state.store.remove(&resource.store, object::namespace(&value), object::name(&value));
        return Arc::new(value);
    }
    state.store.put(&resource.store, value)
}

/// Fields that a client may send back but not change.
fn keep_server_fields(resource: &Resource, value: &mut Value, old: &Value) {
    let kept = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
        "resourceVersion",
        "generateName",
    ];
    for field in kept {
        // A different UID or creation time is refused by validation.
        if matches!(field, "uid" | "creationTimestamp") && value["metadata"][field].is_string() {
            continue;
        }
        match old["metadata"].get(field) {
            Some(present) => object::set_meta(value, field, present.clone()),
            None => object::remove_meta(value, field),
        }
    }
    let _ = resource;
}

fn restrict_to_endpoint(call: &Call, value: &mut Value, old: &Value) {
    let resource = &call.resource;
    if !call.is_status() {
        if resource.has_status {
            object::take_field_from(value, old, "status");
        }
        return;
    }
    if resource.custom().is_some() {
        let managers = value["metadata"]["managedFields"].clone();
        let status = value["status"].clone();
        *value = old.clone();
        if status.is_null() {
            if let Some(map) = value.as_object_mut() {
                map.remove("status");
            }
        } else {
            value["status"] = status;
        }
        if !managers.is_null() {
            object::set_meta(value, "managedFields", managers);
        }
        return;
    }
    object::take_field_from(value, old, "spec");
    if resource.is(BuiltinKind::Deployment) {
        let labels = old["metadata"].get("labels").cloned();
        match labels {
            Some(labels) => object::set_meta(value, "labels", labels),
            None => object::remove_meta(value, "labels"),
        }
    }
}

/// A changed spec increments the generation; changed status or metadata does not.
fn count_generation(resource: &Resource, value: &mut Value, old: &Value) {
    if !strategy::has_generation(resource) {
        return;
    }
    let changed = if resource.custom().is_some() {
        let plain = |value: &Value| {
            let mut map = value.as_object().cloned().unwrap_or_default();
            map.remove("metadata");
            map.remove("apiVersion");
            if resource.has_status {
                map.remove("status");
            }
            map
        };
        plain(value) != plain(old)
    } else {
        value["spec"] != old["spec"]
    };
    if changed {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object::set_meta(value, "generation", generation);
    }
}

/// Returns true if two objects are equal, except for the times in `managedFields`.
fn same_but_times(value: &Value, old: &Value) -> bool {
    let plain = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata") {
            for entry in object::list_mut(metadata, "managedFields") {
                entry["time"] = Value::Null;
            }
        }
        value
    };
    let differs_elsewhere = ["spec", "status", "data"].iter().any(|field| value.get(field) != old.get(field));
    !differs_elsewhere && (value == old || plain(value) == plain(old))
}

/// PUT to `/finalize`, which only changes `spec.finalizers`.
pub(super) fn finalize_namespace(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let (mut value, warnings) = decode::object(call)?;
    decode::check_place(&mut value, call)?;
    let stored = state
        .find(&call.resource, "", call.name())
        .cloned()
        .ok_or_else(|| ApiError::not_found(call.resource.subject(call.name())))?;
    check_version(call, &value, &stored)?;
    let mut changed = (*stored).clone();
    let finalizers = value["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    changed["spec"] = if finalizers.is_empty() { json!({}) } else { json!({"finalizers": finalizers}) };
    let result = put_or_finish(state, &call.resource, changed);
    Ok(reply(state, call, StatusCode::OK, &result).with_warnings(warnings))
}
