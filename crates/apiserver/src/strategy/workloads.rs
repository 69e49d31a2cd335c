//! Defaults of new nodes, namespaces, secrets and budgets.

use crate::object;
use base64::Engine as _;
use serde_json::{Value, json};

/// A new node has a taint until it is reported as ready.
pub(super) fn admit_node(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = &mut node["spec"]["taints"];
    match taints {
        Value::Array(list) => {
            if !list.iter().any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]) {
                list.push(taint);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *taints = json!([taint]);
        }
    }
}

pub(super) fn admit_namespace(namespace: &mut Value) {
    namespace["status"] = json!({"phase": "Active"});
    let finalizers = &mut namespace["spec"]["finalizers"];
    match finalizers {
        Value::Array(list) if !list.contains(&json!("kubernetes")) => list.push(json!("kubernetes")),
        Value::Array(_) => {}
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *finalizers = json!(["kubernetes"]);
        }
    }
}

pub(super) fn prepare_budget(budget: &mut Value) {
    budget["status"] =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
}

/// `stringData` is merged into `data` and never returned.
pub(super) fn encode_string_data(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    let Some(plain) = map.remove("stringData") else {
        return;
    };
    let data = object::object_field(secret, "data");
    for (key, text) in plain.as_object().into_iter().flatten() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
        data.insert(key.clone(), encoded.into());
    }
}
