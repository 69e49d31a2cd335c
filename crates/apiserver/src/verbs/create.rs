//! POST.

use super::convert::{to_served, to_stored};
use super::{Call, binding, decode};
use crate::apply::{ManagerId, Operation, Owner, track_update};
use crate::error::ApiError;
use crate::frontend::{Reply, represent};
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use crate::state::State;
use crate::strategy::{self, Admission};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn create(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let (mut value, warnings) = decode::object(call)?;
    decode::check_place(&mut value, call)?;
    let dry_run = call.options.is_dry_run()?;
    prepare(state, &call.resource, &mut value)?;
    strategy::apply_defaults(&call.resource, &mut value);
    let owner = owner(state, call, Operation::Update);
    let zero = strategy::zero(&call.resource);
    track_update(&zero, &mut value, call.resource.type_ref(), &owner, true);
    let stored = store_new(state, call, value, dry_run)?;
    let served = to_served(&call.resource, &stored).into_owned();
    let body = represent(served, &call.resource, &call.accept, &call.options, state.clock.now());
    Ok(Reply::json(StatusCode::CREATED, body).with_warnings(warnings))
}

/// The field manager of a request in `managedFields`.
pub(super) fn owner(state: &State, call: &Call, operation: Operation) -> Owner {
    let resource = &call.resource;
    Owner {
        id: ManagerId {
            operation,
            manager: call.manager(),
            api_version: resource.api_version(),
            subresource: call.subresource.clone().unwrap_or_default(),
        },
        time: state.clock.stamp(),
        ignored: ignored_fields(resource, call.is_status()),
    }
}

/// The fields that an endpoint ignores: `status` on the main one, everything else on `/status`.
fn ignored_fields(resource: &Resource, is_status: bool) -> Value {
    match (is_status, resource.has_status, resource.custom().is_some()) {
        (true, _, true) => json!({"f:metadata": {}, "f:spec": {}}),
        (true, _, false) => json!({"f:spec": {}}),
        (false, true, _) => json!({"f:status": {}}),
        (false, false, _) => json!({}),
    }
}

/// Sets the fields that only the server can set.
pub(super) fn prepare(state: &mut State, resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    if !object::resource_version(value).is_empty() {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    if object::name(value).is_empty() && !object::meta_str(value, "generateName").is_empty() {
        let prefix: String = object::meta_str(value, "generateName").chars().take(58).collect();
        let name = format!("{prefix}{}", state.ids.suffix());
        object::set_meta(value, "name", name);
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
        object::remove_meta(value, field);
    }
    object::set_meta(value, "uid", state.ids.uid());
    object::set_meta(value, "creationTimestamp", state.clock.stamp());
    if strategy::has_generation(resource) {
        object::set_meta(value, "generation", 1);
    }
    Ok(())
}

/// Admission, validation, and the write; a dry run skips the write.
pub(super) fn store_new(
    state: &mut State,
    call: &Call,
    mut value: Value,
    dry_run: bool,
) -> Result<Arc<Value>, ApiError> {
    let resource = &call.resource;
    check_namespace(state, call, &value)?;
    if resource.custom().is_some()
        && resource.has_status
        && let Some(map) = value.as_object_mut()
    {
        map.remove("status");
    }
    let node = value["spec"]["nodeName"].as_str().filter(|_| resource.is(BuiltinKind::Pod));
    let topology = node.map(|node| binding::topology(state, node)).unwrap_or_default();
    strategy::admit_create(resource, &mut value, &mut Admission { ids: &mut state.ids, topology });
    let mut faults = strategy::validate_metadata(resource, &value, None);
    faults.extend(strategy::validate(resource, &value, None));
    let name = object::name(&value).to_owned();
    if !faults.is_empty() {
        return Err(ApiError::invalid(resource.kind_subject(&name), &faults));
    }
    if state.find(resource, object::namespace(&value), &name).is_some() {
        return Err(ApiError::already_exists(resource.subject(&name)));
    }
    let value = to_stored(resource, value)?;
    Ok(if dry_run { Arc::new(value) } else { state.store.put(&resource.store, value) })
}

/// A namespaced object needs an existing namespace that is not terminating.
fn check_namespace(state: &State, call: &Call, value: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    if !resource.namespaced {
        return Ok(());
    }
    let name = call.namespace.as_str();
    let Some(namespaces) = state.kinds.find("", "v1", "namespaces") else {
        return Ok(());
    };
    match state.find(&namespaces, "", name) {
        None => Err(ApiError::not_found(namespaces.subject(name))),
        Some(namespace) if object::is_terminating(namespace) => {
            let why =
                format!("unable to create new content in namespace {name} because it is being terminated");
            let mut error = ApiError::forbidden(resource.subject(object::name(value)), why);
            error.details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace",
            }]);
            Err(error)
        }
        Some(_) if resource.is(BuiltinKind::Pod) => check_service_account(state, call, value),
        Some(_) => Ok(()),
    }
}

fn check_service_account(state: &State, call: &Call, pod: &Value) -> Result<(), ApiError> {
    let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default");
    let Some(accounts) = state.kinds.find("", "v1", "serviceaccounts") else {
        return Ok(());
    };
    if state.find(&accounts, &call.namespace, account).is_some() {
        return Ok(());
    }
    let why = format!(
        "error looking up service account {}/{account}: serviceaccount {account:?} not found",
        call.namespace
    );
    Err(ApiError::forbidden(call.resource.subject(object::name(pod)), why))
}
