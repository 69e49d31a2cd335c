//! Decodes the body of a request into an object of the right kind.

use super::Call;
use crate::clock::whole_seconds;
use crate::error::ApiError;
use crate::frontend::{PROTOBUF, decode_protobuf};
use crate::kinds::Resource;
use crate::object;
use crate::types::{TypeRef, drop_empty, drop_unknown, type_mismatch};
use serde_json::Value;

/// The body of a request, in JSON or YAML.
pub(super) fn body(call: &Call) -> Result<Value, ApiError> {
    let media = call.content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => {
            serde_json::from_slice(&call.body).map_err(|error| unreadable(call, &error.to_string()))
        }
        "application/yaml" => {
            let text =
                std::str::from_utf8(&call.body).map_err(|error| unreadable(call, &error.to_string()))?;
            serde_saphyr::from_str(text).map_err(|error| unreadable(call, &error.to_string()))
        }
        PROTOBUF => decode_protobuf(&call.body)
            .ok_or_else(|| ApiError::not_implemented(format!("protobuf bodies of {}", call.resource.kind))),
        _ => Err(ApiError::unsupported_media_type(&["application/json", "application/yaml"])),
    }
}

fn unreadable(call: &Call, why: &str) -> ApiError {
    let Resource { kind, version, .. } = call.resource.as_ref();
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// The object of the body, checked against its kind and the URL. Warnings list what was ignored.
pub(super) fn object(call: &Call) -> Result<(Value, Vec<String>), ApiError> {
    let mut value = body(call)?;
    check_type(&mut value, call)?;
    let unknown = accept_fields(&mut value, call)?;
    let warnings = judge_unknown(&unknown, call, |strict| unreadable(call, &strict))?;
    drop_empty_collections(&mut value, &call.resource);
    Ok((value, warnings))
}

/// `apiVersion` and `kind` must match the URL; built-in kinds may omit them.
pub(super) fn check_type(value: &mut Value, call: &Call) -> Result<(), ApiError> {
    let resource = &call.resource;
    if !value.is_object() {
        return Err(unreadable(call, "the body is no object"));
    }
    let expected = resource.api_version();
    for (field, expected) in [("apiVersion", expected.as_str()), ("kind", resource.kind.as_str())] {
        match value[field].as_str() {
            Some(found) if found == expected => {}
            None | Some("") if resource.custom().is_none() => value[field] = expected.into(),
            None | Some("") => {
                let message = format!(
                    "Object '{}' is missing in '{value}'",
                    if field == "kind" { "Kind" } else { "apiVersion" }
                );
                return Err(ApiError::bad_request(message));
            }
            Some(found) if field == "kind" && resource.custom().is_some() => {
                let fault =
                    crate::error::Fault::invalid("kind", &found.into(), format!("must be {}", resource.kind));
                let subject =
                    crate::error::Subject { group: &resource.group, kind: found, name: object::name(value) };
                return Err(ApiError::invalid(subject, &[fault]));
            }
            Some(found) if field == "kind" => {
                let message = format!(
                    "{found} in version {:?} cannot be handled as a {}: no kind {found:?} is registered for version {:?}",
                    resource.version,
                    resource.kind,
                    resource.api_version()
                );
                return Err(ApiError::bad_request(message));
            }
            Some(found) => {
                let message = format!(
                    "the API version in the data ({found}) does not match the expected API version ({expected})"
                );
                return Err(ApiError::bad_request(message));
            }
        }
    }
    Ok(())
}

/// Removes unknown fields and returns their paths; refuses values of the wrong type.
pub(super) fn accept_fields(value: &mut Value, call: &Call) -> Result<Vec<String>, ApiError> {
    let resource = &call.resource;
    let of = resource.type_ref();
    shorten_numbers(value);
    if let Some(metadata) = value.get_mut("metadata") {
        write_times_alike(metadata);
    }
    match resource.custom() {
        None => {
            if let Some(mismatch) = type_mismatch(value, of) {
                return Err(unreadable(call, &format!("json: {mismatch}")));
            }
            Ok(drop_unknown(value, of))
        }
        Some(custom) => {
            let mut unknown =
                custom.validator.as_ref().map(|validator| validator.prune(value)).unwrap_or_default();
            unknown.extend(accept_metadata(value, of, call)?);
            Ok(unknown)
        }
    }
}

/// The handling of unknown fields by `fieldValidation`: ignored, warnings, or an error that `refusal` creates
/// from the message of the strict decoder.
pub(super) fn judge_unknown(
    unknown: &[String],
    call: &Call,
    refusal: impl FnOnce(String) -> ApiError,
) -> Result<Vec<String>, ApiError> {
    let messages: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    match call.options.field_validation.as_str() {
        "Ignore" => Ok(Vec::new()),
        "Strict" if !messages.is_empty() => {
            Err(refusal(format!("strict decoding error: {}", messages.join(", "))))
        }
        "" | "Warn" | "Strict" => Ok(messages),
        other => Err(ApiError::bad_request(format!("invalid fieldValidation {other:?}"))),
    }
}

/// Removes empty lists and maps: everywhere in a built-in kind, in the metadata of a custom one.
pub(super) fn drop_empty_collections(value: &mut Value, resource: &Resource) {
    let of = resource.type_ref();
    if resource.custom().is_none() {
        drop_empty(value, of);
    } else if let Some(metadata) = value.get_mut("metadata") {
        drop_empty(metadata, of.field_or_unknown("metadata"));
    }
}

/// Normalises times: clients write the same instant in several formats, the server in one.
fn write_times_alike(metadata: &mut Value) {
    let rewrite = |place: &mut Value| {
        if let Some(time) = place.as_str().and_then(|text| text.parse().ok()) {
            *place = whole_seconds(time).into();
        }
    };
    for field in ["creationTimestamp", "deletionTimestamp"] {
        metadata.get_mut(field).into_iter().for_each(rewrite);
    }
    object::list_mut(metadata, "managedFields").filter_map(|entry| entry.get_mut("time")).for_each(rewrite);
}

/// Writes `2.0` as `2`.
fn shorten_numbers(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(shorten_numbers),
        Value::Object(map) => map.values_mut().for_each(shorten_numbers),
        Value::Number(number) if number.is_f64() => {
            // Only numbers that an integer represents exactly; all of them are far below the bounds of `i64`.
            let exact =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0);
            if let Some(whole) = exact.and_then(|float| format!("{float:.0}").parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The metadata of a custom resource is decoded strictly by type, like that of all objects.
fn accept_metadata(value: &mut Value, of: TypeRef<'_>, call: &Call) -> Result<Vec<String>, ApiError> {
    let of = of.field_or_unknown("metadata");
    let metadata = &mut value["metadata"];
    if let Some(mismatch) = type_mismatch(metadata, of) {
        return Err(unreadable(call, &format!("json: {mismatch}")));
    }
    let unknown = drop_unknown(metadata, of);
    Ok(unknown.into_iter().map(|field| format!("metadata.{field}")).collect())
}

/// The namespace and name of the object must match the URL; if omitted, they are taken from the URL.
pub(super) fn check_place(value: &mut Value, call: &Call) -> Result<(), ApiError> {
    let in_object = object::namespace(value);
    if !in_object.is_empty() && in_object != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if !call.namespace.is_empty() {
        object::set_meta(value, "namespace", call.namespace.clone());
    }
    if let Some(name) = &call.name {
        let in_object = object::name(value);
        if in_object.is_empty() {
            object::set_meta(value, "name", name.clone());
        } else if in_object != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({in_object}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}
