//! PATCH in its four forms.

use super::convert::to_served;
use super::create::{self, owner};
use super::update::{check_uid, reply, store_changed};
use super::{Call, decode};
use crate::apply::{ConflictingFields, Operation, apply, note_last_applied, take_over, track_update};
use crate::error::{ApiError, Fault};
use crate::frontend::Reply;
use crate::object;
use crate::patch::{PatchError, json_patch, merge_patch, strategic_merge_patch};
use crate::state::State;
use crate::strategy;
use http::StatusCode;
use serde_json::{Value, json};

const SUPPORTED: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

pub(super) fn patch(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let media = call.content_type.split(';').next().unwrap_or_default().trim();
    if media == "application/apply-patch+yaml" {
        return server_side_apply(state, call);
    }
    let resource = &call.resource;
    let is_supported = SUPPORTED.contains(&media)
        && !(media == "application/strategic-merge-patch+json" && resource.custom().is_some());
    if !is_supported {
        let supported: &[&str] = if resource.custom().is_some() {
            &[SUPPORTED[0], SUPPORTED[1], SUPPORTED[3]]
        } else {
            &SUPPORTED
        };
        let mut error = ApiError::unsupported_media_type(supported);
        if resource.custom().is_none() {
            error.details = json!({});
        }
        return Err(error);
    }
    if call.options.force.is_some() {
        let fault = Fault::forbidden("force", "may not be specified for non-apply patch");
        let subject = crate::error::Subject { group: "meta.k8s.io", kind: "PatchOptions", name: "" };
        return Err(ApiError::invalid(subject, &[fault]));
    }
    let stored = state
        .find(resource, &call.namespace, call.name())
        .cloned()
        .ok_or_else(|| ApiError::not_found(resource.subject(call.name())))?;
    let old = to_served(resource, &stored).into_owned();
    let patch: Value =
        serde_json::from_slice(&call.body).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let mut value = patched(call, media, &old, &patch)?;
    check_identity(call, &mut value, &old)?;
    let unknown = decode::accept_fields(&mut value, call).map_err(as_bad_patch)?;
    let warnings = decode::judge_unknown(&unknown, call, |strict| bad_patch(&patch, &strict))?;
    decode::drop_empty_collections(&mut value, resource);
    strategy::apply_defaults(resource, &mut value);
    let owner = owner(state, call, Operation::Update);
    track_update(&old, &mut value, resource.type_ref(), &owner, false);
    let result = store_changed(state, call, value, &old)?;
    Ok(reply(state, call, StatusCode::OK, &result).with_warnings(warnings))
}

/// A patch with a result that cannot be decoded is invalid.
fn as_bad_patch(error: ApiError) -> ApiError {
    if error.code != StatusCode::BAD_REQUEST || !error.message.contains("cannot unmarshal") {
        return error;
    }
    bad_patch(&json!(error.message), "cannot be decoded")
}

fn bad_patch(patch: &Value, why: &str) -> ApiError {
    let fault = Fault::invalid("patch", patch, why);
    ApiError::invalid(crate::error::Subject { group: "", kind: "", name: "" }, &[fault])
}

fn patched(call: &Call, media: &str, old: &Value, patch: &Value) -> Result<Value, ApiError> {
    let result = match media {
        "application/json-patch+json" => json_patch(old, patch),
        "application/strategic-merge-patch+json" => {
            strategic_merge_patch(old, patch, call.resource.type_ref())
        }
        _ if !patch.is_object() => Err(PatchError::Malformed("a merge patch must be an object".to_owned())),
        _ => Ok(merge_patch(old, patch)),
    };
    result.map_err(|error| match error {
        PatchError::Malformed(why) => ApiError::bad_request(why),
        // A real server does not report which operation failed either.
        PatchError::DoesNotFit => ApiError {
            details: json!({}),
            ..ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
        },
    })
}

/// A patch may not change the identity of an object, and a resource version in it must be the current one.
fn check_identity(call: &Call, value: &mut Value, old: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    decode::check_type(value, call)?;
    if object::resource_version(value) != object::resource_version(old)
        && !object::resource_version(value).is_empty()
    {
        return Err(ApiError::stale(resource.subject(call.name())));
    }
    if object::name(value) != object::name(old) || object::namespace(value) != object::namespace(old) {
        decode::check_place(value, call)?;
    }
    Ok(())
}

fn server_side_apply(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let resource = &call.resource;
    let mut config = apply_body(call)?;
    check_apply_options(call, &config)?;
    decode::check_type(&mut config, call)?;
    let sent = config.clone();
    decode::check_place(&mut config, call)?;
    if let Some(field) = decode::accept_fields(&mut config, call)?.first() {
        return Err(undeclared(call, &sent, field));
    }
    let stored = state.find(resource, &call.namespace, call.name()).cloned();
    let owner = owner(state, call, Operation::Apply);
    let force = call.options.force == Some(true);
    let Some(stored) = stored else {
        if call.subresource.is_some() {
            return Err(ApiError::not_found(resource.subject(call.name())));
        }
        if !object::uid(&config).is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object::uid(&config)
            );
            return Err(ApiError::conflict(resource.subject(call.name()), why));
        }
        let zero = strategy::zero(resource);
        let applied = apply(&zero, &config, resource.type_ref(), &owner, force)
            .map_err(|conflicts| refusal(call, &conflicts))?;
        let mut value = applied.object;
        // Not an error here, unlike in a POST: a version can only conflict with that of an existing object.
        object::remove_meta(&mut value, "resourceVersion");
        decode::drop_empty_collections(&mut value, resource);
        create::prepare(state, resource, &mut value)?;
        strategy::apply_defaults(resource, &mut value);
        let dry_run = call.options.is_dry_run()?;
        let stored = create::store_new(state, call, value, dry_run)?;
        return Ok(reply(state, call, StatusCode::CREATED, &stored));
    };
    let old = to_served(resource, &stored).into_owned();
    check_identity(call, &mut config, &old)?;
    check_uid(call, &config, &old)?;
    let applied = apply(&old, &config, resource.type_ref(), &owner, force)
        .or_else(|conflicts| take_over(&old, &config, resource.type_ref(), &owner, conflicts))
        .map_err(|conflicts| refusal(call, &conflicts))?;
    let mut value = applied.object;
    note_last_applied(&mut value, &sent, &owner);
    decode::drop_empty_collections(&mut value, resource);
    strategy::apply_defaults(resource, &mut value);
    let result = store_changed(state, call, value, &old)?;
    Ok(reply(state, call, StatusCode::OK, &result))
}

/// The error for a field that is not in the schema: the server cannot merge it, with any field validation.
fn undeclared(call: &Call, sent: &Value, field: &str) -> ApiError {
    let resource = &call.resource;
    let (namespace, name) = (object::namespace(sent), call.name());
    let api_version =
        if resource.group.is_empty() { format!("/{}", resource.version) } else { resource.api_version() };
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {api_version}, Kind={}): .{field}: field not declared \
         in schema",
        resource.kind
    );
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

fn apply_body(call: &Call) -> Result<Value, ApiError> {
    // JSON is also YAML, and far more frequent; its parser is faster.
    if let Ok(value) = serde_json::from_slice(&call.body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(&call.body).map_err(|error| ApiError::bad_request(error.to_string()))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}

fn check_apply_options(call: &Call, config: &Value) -> Result<(), ApiError> {
    if call.options.field_manager.is_empty() {
        let fault = Fault::required("fieldManager", "is required for apply patch");
        let subject = crate::error::Subject { group: "meta.k8s.io", kind: "PatchOptions", name: "" };
        return Err(ApiError::invalid(subject, &[fault]));
    }
    if config["metadata"]["managedFields"].is_array() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// The 409 response that lists every conflicting field and its manager.
fn refusal(call: &Call, conflicts: &ConflictingFields) -> ApiError {
    let mut causes = Vec::new();
    for (id, paths) in &conflicts.0 {
        let mut manager = format!("conflict with {:?}", id.manager);
        if !id.subresource.is_empty() {
            manager = format!("{manager} with subresource {:?}", id.subresource);
        }
        if id.operation == Operation::Update || id.api_version != call.resource.api_version() {
            manager = format!("{manager} using {}", id.api_version);
        }
        for path in paths {
            causes.push((manager.clone(), path.clone()));
        }
    }
    let noun = if causes.len() == 1 { "conflict" } else { "conflicts" };
    let mut lines: Vec<String> = Vec::new();
    if let [(manager, path)] = causes.as_slice() {
        lines.push(format!("{manager}: {path}"));
    } else {
        let mut current = "";
        for (manager, path) in &causes {
            if manager != current {
                lines.push(format!("{}s with {}:", "conflict", manager.trim_start_matches("conflict with ")));
                current = manager;
            }
            lines.push(format!("- {path}"));
        }
    }
    let message = format!("Apply failed with {} {noun}: {}", causes.len(), lines.join("\n"));
    let details: Vec<Value> = causes
        .iter()
        .map(|(manager, path)| json!({"reason": "FieldManagerConflict", "message": manager, "field": path}))
        .collect();
    ApiError {
        details: json!({"causes": details}),
        ..ApiError::new(StatusCode::CONFLICT, "Conflict", message)
    }
}
