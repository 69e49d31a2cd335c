//! Lists of conditions with their transition times.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The desired value of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn new(kind: &'static str, status: &'static str, reason: impl Into<String>) -> Self {
        Self { kind, status, reason: reason.into(), message: String::new() }
    }

    pub(super) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }
}

/// Returns the conditions of an object with the desired ones set. Others are kept.
pub(super) fn merged(existing: &Value, desired: &[Condition], now: Timestamp) -> Value {
    let existing = existing.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut list: Vec<Value> = existing
        .iter()
        .filter(|one| desired.iter().all(|condition| one["type"] != condition.kind))
        .cloned()
        .collect();
    for condition in desired {
        let before = existing.iter().find(|one| one["type"] == condition.kind);
        let since = before.filter(|before| before["status"] == condition.status).map_or_else(
            || json!(five_spot_apiserver::clock::whole_seconds(now)),
            |before| before["lastTransitionTime"].clone(),
        );
        list.push(json!({
            "type": condition.kind, "status": condition.status, "reason": condition.reason,
            "message": condition.message, "lastTransitionTime": since,
        }));
    }
    // The order of Cluster API: the summary first, the rest by name.
    list.sort_by_key(|one| {
        let kind = one["type"].as_str().unwrap_or_default().to_owned();
        (kind != "Available", kind != "Ready", kind)
    });
    list.into()
}
