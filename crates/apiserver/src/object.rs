//! Reading and writing the parts that every Kubernetes object has, on plain JSON.
//!
//! The API keeps objects as JSON because it serves kinds that it does not know at compile time.

use serde_json::{Map, Value, json};

/// `metadata.name`, or nothing.
pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`, or nothing.
pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`, or nothing.
pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`, or nothing.
pub(crate) fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// A string of `metadata`, or nothing.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// `metadata` for changing; made if it is not there.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    object_field(object, "metadata")
}

/// A field of an object as a map; made if it is not there or is no map.
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

/// True once a deletion was asked for.
pub(crate) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Replaces `metadata.finalizers`; an empty list leaves no field.
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

/// A field of the object itself, put in place of its counterpart in another; absent there means removed here.
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

/// The elements of a list field for changing; none if it is absent.
pub(crate) fn list_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
