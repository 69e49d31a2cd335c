//! The two forms of an event, `v1` and `events.k8s.io/v1`. Events are stored in the first.

use serde_json::{Map, Value};

/// Fields whose names differ between the two forms: `v1` first.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The `events.k8s.io/v1` form of a stored event.
pub(crate) fn core_to_events(event: &Value) -> Value {
    let mut converted = renamed(event, |(core, modern)| (core, modern));
    converted["apiVersion"] = "events.k8s.io/v1".into();
    // This form omits empty strings; the other contains them.
    if let Some(map) = converted.as_object_mut() {
        for field in ["reportingController", "reportingInstance"] {
            if map.get(field).and_then(Value::as_str) == Some("") {
                map.remove(field);
            }
        }
        for field in ["regarding", "deprecatedSource"] {
            map.entry(field).or_insert_with(|| Value::Object(Map::new()));
        }
    }
    converted
}

/// The stored form of an `events.k8s.io/v1` event.
pub(crate) fn events_to_core(event: &Value) -> Value {
    let mut converted = renamed(event, |(core, modern)| (modern, core));
    converted["apiVersion"] = "v1".into();
    converted
}

fn renamed(
    event: &Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let mut converted = event.as_object().cloned().unwrap_or_default();
    for (from, to) in RENAMED.map(direction) {
        if let Some(value) = converted.remove(from) {
            converted.insert(to.to_owned(), value);
        }
    }
    Value::Object(converted)
}
