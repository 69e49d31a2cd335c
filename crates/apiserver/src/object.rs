//! Access to the common parts of Kubernetes objects, as plain JSON.
//!
//! Objects are JSON because the server supports kinds that are not known at compile time.

use serde_json::{Map, Value, json};

/// `metadata.name`, or an empty string.
pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`, or an empty string.
pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`, or an empty string.
pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`, or an empty string.
pub(crate) fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// A string field of `metadata`, or an empty string.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// A mutable reference to `metadata`, which is created if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    object_field(object, "metadata")
}

/// A mutable reference to a field as a map, which is created if it is missing or not a map.
pub(crate) fn object_field<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let slot = &mut object[field];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("just made a map")
}

/// Sets a field of `metadata`.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    metadata_mut(object).insert(field.to_owned(), value.into());
}

/// Removes a field of `metadata`.
pub(crate) fn remove_meta(object: &mut Value, field: &str) {
    metadata_mut(object).remove(field);
}

/// Returns true if the deletion of the object has been requested.
pub(crate) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Replaces `metadata.finalizers`; an empty list removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        remove_meta(object, "finalizers");
    } else {
        set_meta(object, "finalizers", json!(finalizers));
    }
}

/// `metadata.ownerReferences`.
pub(crate) fn owner_references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Copies a top-level field from another object; if it is absent there, removes it.
pub(crate) fn take_field_from(object: &mut Value, source: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match source.get(field) {
        Some(value) => {
            map.insert(field.to_owned(), value.clone());
        }
        None => {
            map.remove(field);
        }
    }
}

/// Mutable references to the elements of a list field; none if it is absent.
pub(crate) fn list_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
