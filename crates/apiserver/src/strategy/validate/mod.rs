//! The validation of built-in kinds, as far as 5-Spot and users of the sandbox need it.

mod definitions;
mod events;

use super::names;
use crate::error::Fault;
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use serde_json::{Value, json};

pub(super) fn validate(resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Some(kind) = resource.builtin() else {
        return faults;
    };
    match kind {
        BuiltinKind::ConfigMap => config_map(value, old, &mut faults),
        BuiltinKind::Secret => secret(value, old, &mut faults),
        BuiltinKind::Pod => pod(value, old, &mut faults),
        BuiltinKind::Node => node(value, old, &mut faults),
        BuiltinKind::PodDisruptionBudget => budget(value, &mut faults),
        BuiltinKind::Lease => lease(value, &mut faults),
        BuiltinKind::Deployment | BuiltinKind::DaemonSet | BuiltinKind::ReplicaSet => {
            workload(value, old, &mut faults);
        }
        BuiltinKind::CoreEvent | BuiltinKind::Event => events::check(kind, value, old, &mut faults),
        BuiltinKind::CustomResourceDefinition => definitions::check(value, old, &mut faults),
        BuiltinKind::Namespace | BuiltinKind::ServiceAccount => {}
    }
    faults
}

fn config_map(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    for field in ["data", "binaryData"] {
        for key in value[field].as_object().into_iter().flatten().map(|(key, _)| key) {
            if !names::is_config_key(key) {
                faults.push(Fault::invalid(
                    format!("{field}[{key}]"),
                    &json!(key),
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                ));
            }
        }
    }
    immutable_once_sealed(value, old, &["data", "binaryData"], faults);
}

fn secret(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    for key in value["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !names::is_config_key(key) {
            faults.push(Fault::invalid(
                format!("data[{key}]"),
                &json!(key),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            ));
        }
    }
    if let Some(old) = old
        && old["type"] != value["type"]
    {
        faults.push(Fault::invalid("type", &value["type"], "field is immutable"));
    }
    immutable_once_sealed(value, old, &["data"], faults);
}

fn immutable_once_sealed(value: &Value, old: Option<&Value>, fields: &[&str], faults: &mut Vec<Fault>) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return;
    };
    if value["immutable"] != true {
        faults.push(Fault::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    for field in fields {
        if old[*field] != value[*field] {
            faults.push(Fault::forbidden(*field, "field is immutable when `immutable` is set"));
        }
    }
}

fn pod(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    if let Some(old) = old {
        if without_mutable_pod_fields(&old["spec"]) != without_mutable_pod_fields(&value["spec"]) {
            faults.push(Fault::forbidden("spec", "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"));
        }
        return;
    }
    pod_spec(&value["spec"], "spec", faults);
}

fn without_mutable_pod_fields(spec: &Value) -> Value {
    let mut rest = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in object::list_mut(&mut rest, list) {
            container["image"] = Value::Null;
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        rest[field] = Value::Null;
    }
    for field in ["containers", "initContainers"] {
        if rest[field].is_null() {
            rest[field] = json!([]);
        }
    }
    rest
}

fn pod_spec(spec: &Value, place: &str, faults: &mut Vec<Fault>) {
    let containers = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        faults.push(Fault::required(format!("{place}.containers"), ""));
    }
    let mut seen = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{place}.containers[{index}]");
        let name = container["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            faults.push(Fault::required(format!("{at}.name"), ""));
        } else if !names::is_label(name) {
            faults.push(Fault::invalid(
                format!("{at}.name"),
                &json!(name),
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
            ));
        } else if seen.contains(&name) {
            faults.push(Fault::duplicate(format!("{at}.name"), &json!(name)));
        }
        seen.push(name);
        if container["image"].as_str().unwrap_or_default().is_empty() {
            faults.push(Fault::required(format!("{at}.image"), ""));
        }
    }
    let policy = &spec["restartPolicy"];
    if !["Always", "OnFailure", "Never"].iter().any(|one| policy == one) {
        faults.push(Fault::unsupported(
            format!("{place}.restartPolicy"),
            policy,
            &["Always", "OnFailure", "Never"],
        ));
    }
}

fn node(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    let mut seen = Vec::new();
    for (index, taint) in value["spec"]["taints"].as_array().into_iter().flatten().enumerate() {
        let at = format!("metadata.taints[{index}]");
        let key = taint["key"].as_str().unwrap_or_default();
        if !names::is_qualified_name(key) {
            faults.push(Fault::invalid(format!("{at}.key"), &json!(key), "name part must be non-empty"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effects.iter().any(|one| taint["effect"] == *one) {
            if taint["effect"].is_null() {
                faults.push(Fault::required(format!("{at}.effect"), ""));
            } else {
                faults.push(Fault::unsupported(format!("{at}.effect"), &taint["effect"], &effects));
            }
        }
        let identity = (key, &taint["effect"]);
        if seen.contains(&identity) {
            faults.push(Fault::duplicate(format!("metadata.taints[{index}]"), taint));
        }
        seen.push(identity);
    }
    if let Some(old) = old {
        let before = old["spec"]["providerID"].as_str().unwrap_or_default();
        if !before.is_empty() && value["spec"]["providerID"].as_str().unwrap_or_default() != before {
            faults.push(Fault::forbidden(
                "spec.providerID",
                "node updates may not change providerID except from \"\" to valid",
            ));
        }
    }
}

fn budget(value: &Value, faults: &mut Vec<Fault>) {
    let spec = &value["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        faults.push(Fault::invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let amount = &spec[field];
        let is_good = match amount {
            Value::Null => true,
            Value::Number(number) => number.as_i64().is_some_and(|number| number >= 0),
            Value::String(text) => text
                .strip_suffix('%')
                .and_then(|digits| digits.parse::<u32>().ok())
                .is_some_and(|percent| percent <= 100),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        };
        if !is_good {
            faults.push(Fault::invalid(
                format!("spec.{field}"),
                amount,
                "must be greater than or equal to 0",
            ));
        }
    }
}

fn lease(value: &Value, faults: &mut Vec<Fault>) {
    let duration = &value["spec"]["leaseDurationSeconds"];
    if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
        faults.push(Fault::invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"));
    }
    let transitions = &value["spec"]["leaseTransitions"];
    if transitions.as_i64().is_some_and(|count| count < 0) {
        faults.push(Fault::invalid(
            "spec.leaseTransitions",
            transitions,
            "must be greater than or equal to 0",
        ));
    }
}

fn workload(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    let spec = &value["spec"];
    let selector = &spec["selector"];
    if selector.is_null() {
        faults.push(Fault::required("spec.selector", ""));
    } else if selector["matchLabels"].is_null() && selector["matchExpressions"].is_null() {
        faults.push(Fault::invalid("spec.selector", selector, "empty selector is invalid for deployment"));
    }
    let template = &spec["template"];
    let fits = crate::select::LabelSelector::from_object(selector).matches(template);
    if !selector.is_null() && !fits {
        let labels = template["metadata"]["labels"].clone();
        faults.push(Fault::invalid(
            "spec.template.metadata.labels",
            &labels,
            "`selector` does not match template `labels`",
        ));
    }
    pod_spec(&template["spec"], "spec.template.spec", faults);
    if spec["replicas"].as_i64().is_some_and(|count| count < 0) {
        faults.push(Fault::invalid("spec.replicas", &spec["replicas"], "must be greater than or equal to 0"));
    }
    if let Some(old) = old
        && old["spec"]["selector"] != *selector
    {
        faults.push(Fault::invalid("spec.selector", selector, "field is immutable"));
    }
}
