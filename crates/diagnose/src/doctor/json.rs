//! Access to objects as JSON. Everything that is missing or of another type is empty: objects may hold anything.

use jiff::Timestamp;
use serde_json::Value;

/// The text at a pointer, or nothing.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The time at a pointer.
pub(super) fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer).parse().ok()
}

/// The number at a pointer.
pub(super) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The elements of the list at a pointer.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The name of an object.
pub(super) fn name(value: &Value) -> &str {
    text(value, "/metadata/name")
}

/// The namespace of an object.
pub(super) fn namespace(value: &Value) -> &str {
    text(value, "/metadata/namespace")
}

/// An annotation of an object.
pub(super) fn annotation<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value["metadata"]["annotations"][key].as_str()
}

/// A label of an object.
pub(super) fn label<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value["metadata"]["labels"][key].as_str()
}

/// A condition of an object.
pub(super) fn condition<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    list(value, "/status/conditions").iter().find(|condition| condition["type"] == kind)
}

/// `InfrastructureReady=False/NotReady: waiting for ...`, of a condition.
pub(super) fn words(condition: &Value) -> String {
    let part = |field: &str| condition[field].as_str().unwrap_or_default();
    let message = part("message");
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{}={}/{}{colon}{message}", part("type"), part("status"), part("reason"))
}
