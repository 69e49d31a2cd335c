//! Structures that a built-in type always has, and the defaults of its fields.

use super::pod;
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use serde_json::{Map, Value, json};

/// An empty object. Null stands for a list or a time that is written even if it is empty.
pub(super) fn zero(resource: &Resource) -> Value {
    let template = || json!({"metadata": {}, "spec": {"containers": null}});
    match resource.builtin() {
        None => json!({}),
        Some(kind) => match kind {
            BuiltinKind::ConfigMap | BuiltinKind::Secret | BuiltinKind::ServiceAccount => {
                json!({"metadata": {}})
            }
            BuiltinKind::CoreEvent => json!({
                "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
                "eventTime": null, "reportingComponent": "", "reportingInstance": "",
            }),
            BuiltinKind::Event => json!({
                "metadata": {}, "regarding": {}, "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
                "deprecatedLastTimestamp": null, "eventTime": null,
            }),
            BuiltinKind::CustomResourceDefinition => json!({
                "metadata": {},
                "spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null},
                "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
            }),
            BuiltinKind::DaemonSet => json!({
                "metadata": {},
                "spec": {"selector": null, "template": template(), "updateStrategy": {}},
                "status": {
                    "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
                },
            }),
            BuiltinKind::Deployment => json!({
                "metadata": {}, "spec": {"selector": null, "template": template(), "strategy": {}}, "status": {},
            }),
            BuiltinKind::ReplicaSet => json!({
                "metadata": {}, "spec": {"selector": null, "template": {"metadata": {}, "spec": {"containers": null}}},
                "status": {"replicas": 0},
            }),
            BuiltinKind::Lease => json!({"metadata": {}, "spec": {}}),
            BuiltinKind::Namespace => json!({"metadata": {}, "spec": {}, "status": {}}),
            BuiltinKind::Node => json!({
                "metadata": {}, "spec": {},
                "status": {
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": {
                        "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                        "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                        "operatingSystem": "", "architecture": "",
                    },
                },
            }),
            BuiltinKind::Pod => json!({"metadata": {}, "spec": {"containers": null}, "status": {}}),
            BuiltinKind::PodDisruptionBudget => json!({
                "metadata": {}, "spec": {},
                "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
            }),
        },
    }
}

/// Fills in a built-in kind's structures and defaults, in place.
pub(super) fn apply(resource: &Resource, value: &mut Value) {
    fill_structures(value, &zero(resource));
    match resource.builtin() {
        Some(BuiltinKind::Pod) => {
            pod::apply_pod_defaults(value);
            write_times(value, &["lastProbeTime", "lastTransitionTime"]);
        }
        Some(BuiltinKind::Secret) => {
            super::workloads::encode_string_data(value);
            default_to(value, &["type"], json!("Opaque"));
        }
        Some(BuiltinKind::Namespace) => {
            let name = object::name(value).to_owned();
            if !name.is_empty() {
                let labels = object::metadata_mut(value).entry("labels").or_insert_with(|| json!({}));
                labels["kubernetes.io/metadata.name"] = name.into();
            }
        }
        Some(BuiltinKind::Node) => {
            default_allocatable(value);
            write_times(value, &["lastHeartbeatTime", "lastTransitionTime"]);
        }
        Some(BuiltinKind::Deployment) => {
            apply_workload_defaults(value);
            default_to(value, &["spec", "replicas"], json!(1));
            default_to(value, &["spec", "progressDeadlineSeconds"], json!(600));
            default_rolling_update(value, "strategy", &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
        }
        Some(BuiltinKind::DaemonSet) => {
            apply_workload_defaults(value);
            let generation = value["metadata"]["generation"].as_i64().unwrap_or(1).to_string();
            let annotations = object::metadata_mut(value).entry("annotations").or_insert_with(|| json!({}));
            annotations["deprecated.daemonset.template.generation"] = generation.into();
            default_rolling_update(value, "updateStrategy", &json!({"maxUnavailable": 1, "maxSurge": 0}));
        }
        Some(BuiltinKind::ReplicaSet) => {
            pod::apply_template_defaults(value);
            default_to(value, &["spec", "replicas"], json!(1));
        }
        Some(BuiltinKind::CustomResourceDefinition) => super::crd::apply_defaults(value),
        _ => {}
    }
}

/// Adds the empty structures of a type that the object lacks. A null of the zero object is an empty list or
/// time; it is written for the kinds whose wire format contains it.
fn fill_structures(value: &mut Value, zero: &Value) {
    let (Some(map), Some(zeros)) = (value.as_object_mut(), zero.as_object()) else {
        return;
    };
    for (name, zero) in zeros {
        match map.get_mut(name) {
            Some(present) if present.is_object() => fill_structures(present, zero),
            Some(_) => {}
            None if is_list_or_selector(name) => {}
            None => {
                map.insert(name.clone(), without_lists(zero));
            }
        }
    }
}

fn is_list_or_selector(name: &str) -> bool {
    matches!(name, "containers" | "selector" | "versions")
}

fn without_lists(zero: &Value) -> Value {
    match zero {
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, _)| !is_list_or_selector(name));
            Value::Object(
                kept.map(|(name, value)| (name.clone(), without_lists(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => zero.clone(),
    }
}

/// Sets a field if it is absent; returns true if it was.
pub(super) fn default_to(value: &mut Value, path: &[&str], default: Value) -> bool {
    let place = path.iter().fold(value, |place, field| &mut place[*field]);
    let absent = place.is_null();
    if absent {
        *place = default;
    }
    absent
}

fn apply_workload_defaults(value: &mut Value) {
    pod::apply_template_defaults(value);
    default_to(value, &["spec", "revisionHistoryLimit"], json!(10));
}

fn default_rolling_update(value: &mut Value, field: &str, parameters: &Value) {
    default_to(value, &["spec", field, "type"], json!("RollingUpdate"));
    if value["spec"][field]["type"] == "RollingUpdate" {
        for (name, default) in parameters.as_object().into_iter().flatten() {
            default_to(value, &["spec", field, "rollingUpdate", name], default.clone());
        }
    }
}

/// The times of a condition are written even if they are not set.
fn write_times(value: &mut Value, fields: &[&str]) {
    let Some(status) = value.get_mut("status") else {
        return;
    };
    for condition in object::list_mut(status, "conditions").filter_map(Value::as_object_mut) {
        for field in fields {
            condition.entry(*field).or_insert(Value::Null);
        }
    }
}

/// A node that reports only its capacity gets the same allocatable resources.
fn default_allocatable(value: &mut Value) {
    let Some(status) = value.get_mut("status") else {
        return;
    };
    if let Some(capacity) = status.get("capacity").cloned()
        && status.get("allocatable").is_none()
    {
        status["allocatable"] = capacity;
    }
}
