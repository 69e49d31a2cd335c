//! The columns of Deployments and other workloads.

use super::columns::{AGE, NAME, Row, number, text};
use serde_json::Value;

pub(super) fn deployment() -> Vec<Row> {
    vec![
        NAME,
        ("Ready", "string", 0, |object, _| {
            let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
            format!("{ready}/{}", object["spec"]["replicas"].as_i64().unwrap_or(0)).into()
        }),
        ("Up-to-date", "string", 0, |object, _| number(&object["status"]["updatedReplicas"])),
        ("Available", "string", 0, |object, _| number(&object["status"]["availableReplicas"])),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn daemon_set() -> Vec<Row> {
    vec![
        NAME,
        ("Desired", "integer", 0, |object, _| number(&object["status"]["desiredNumberScheduled"])),
        ("Current", "integer", 0, |object, _| number(&object["status"]["currentNumberScheduled"])),
        ("Ready", "integer", 0, |object, _| number(&object["status"]["numberReady"])),
        ("Up-to-date", "integer", 0, |object, _| number(&object["status"]["updatedNumberScheduled"])),
        ("Available", "integer", 0, |object, _| number(&object["status"]["numberAvailable"])),
        ("Node Selector", "string", 0, |object, _| {
            pairs(&object["spec"]["template"]["spec"]["nodeSelector"]).into()
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn replica_set() -> Vec<Row> {
    vec![
        NAME,
        ("Desired", "integer", 0, |object, _| number(&object["spec"]["replicas"])),
        ("Current", "integer", 0, |object, _| number(&object["status"]["replicas"])),
        ("Ready", "integer", 0, |object, _| number(&object["status"]["readyReplicas"])),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

const CONTAINERS: Row = ("Containers", "string", 1, |object, _| template_list(object, "name").into());
const IMAGES: Row = ("Images", "string", 1, |object, _| template_list(object, "image").into());
const SELECTOR: Row =
    ("Selector", "string", 1, |object, _| pairs(&object["spec"]["selector"]["matchLabels"]).into());

fn template_list(workload: &Value, field: &str) -> String {
    let containers = workload["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
    containers.map(|container| text(&container[field], "")).collect::<Vec<_>>().join(",")
}

fn pairs(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", text(value, "")))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}
