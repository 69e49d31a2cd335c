//! An object reduced to the fields that matter for debugging, and the difference between two states.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names and values, formatted.
pub(super) type Projection = BTreeMap<String, String>;

/// Paths whose value is shown as it is.
const PLAIN: [&str; 16] = [
    "/metadata/deletionTimestamp",
    "/spec/providerID",
    "/spec/unschedulable",
    "/spec/nodeName",
    "/spec/bootstrap/dataSecretName",
    "/status/phase",
    "/status/message",
    "/status/dataSecretName",
    "/status/nodeRef/name",
    "/status/machineRef/name",
    "/status/failureReason",
    "/status/failureMessage",
    "/status/initialization",
    "/status/observedGeneration",
    "/status/disruptionsAllowed",
    "/metadata/finalizers",
];

/// Reduces an object.
pub(super) fn project(object: &Value) -> Projection {
    let mut projection = Projection::new();
    for path in PLAIN {
        if let Some(value) = object.pointer(path) {
            let name = path.rsplit('/').next().unwrap_or(path);
            projection.insert(name.into(), plain(value));
        }
    }
    for owner in list(object, "/metadata/ownerReferences") {
        let controller = if owner["controller"] == true { "controller" } else { "plain" };
        let name = format!("owner {}/{}", plain(&owner["kind"]), plain(&owner["name"]));
        projection.insert(name, controller.into());
    }
    for taint in list(object, "/spec/taints") {
        let name = format!("taint {}:{}", plain(&taint["key"]), plain(&taint["effect"]));
        projection.insert(name, plain(&taint["value"]));
    }
    for condition in list(object, "/status/conditions") {
        let mut value = plain(&condition["status"]);
        for part in ["reason", "message"] {
            if let Some(text) = condition[part].as_str().filter(|text| !text.is_empty()) {
                value.push_str(if part == "reason" { "/" } else { " " });
                value.push_str(text);
            }
        }
        projection.insert(plain(&condition["type"]), value);
    }
    projection
}

/// Describes the change; `None` if nothing relevant changed.
pub(super) fn difference(before: &Projection, after: &Projection) -> Option<String> {
    let changed =
        after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, value)| {
            let was = before.get(name).map(|was| format!(" (was {was})")).unwrap_or_default();
            format!("{name}={value}{was}")
        });
    let lost = before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} gone"));
    let parts: Vec<String> = changed.chain(lost).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_shows_the_previous_value() {
        let before = json!({ "status": { "phase": "Pending", "conditions": [{ "type": "Ready", "status": "False" }] } });
        let after = json!({ "status": { "phase": "Running", "conditions": [
            { "type": "Ready", "status": "True", "reason": "NodeReady", "message": "all is well" },
        ] } });
        assert_eq!(
            difference(&project(&before), &project(&after)).as_deref(),
            Some("Ready=True/NodeReady all is well (was False); phase=Running (was Pending)")
        );
    }

    #[test]
    fn a_heartbeat_is_no_change() {
        let at = |time: &str| {
            json!({ "metadata": { "resourceVersion": time }, "status": { "conditions": [
            { "type": "Ready", "status": "True", "lastHeartbeatTime": time },
        ] } })
        };
        assert_eq!(difference(&project(&at("1")), &project(&at("2"))), None);
    }
}
