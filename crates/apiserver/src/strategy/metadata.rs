//! The validation of `metadata`, for all kinds.

use super::names::{self, NameRule};
use crate::error::Fault;
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use serde_json::{Value, json};

/// The largest total size of the keys and values of annotations.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Validates `metadata`; with `old`, also what must not change.
pub(crate) fn validate_metadata(resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<Fault> {
    let mut faults = Vec::new();
    // The name of a custom resource is validated by its schema.
    if old.is_none() && resource.custom().is_none() {
        check_name(resource, value, &mut faults);
    }
    check_labels(value, &mut faults);
    check_annotations(value, &mut faults);
    check_owner_references(value, &mut faults);
    check_finalizers(value, &mut faults);
    if let Some(old) = old {
        check_unchanged(resource, value, old, &mut faults);
    }
    faults
}

fn name_rule(resource: &Resource) -> NameRule {
    match resource.builtin() {
        Some(BuiltinKind::Namespace) => NameRule::Label,
        _ => NameRule::Subdomain,
    }
}

fn check_name(resource: &Resource, value: &Value, faults: &mut Vec<Fault>) {
    let name = object::name(value);
    let field = "metadata.name";
    if name.is_empty() {
        faults.push(Fault::required(field, "name or generateName is required"));
    } else if !names::fits(name_rule(resource), name) {
        faults.push(Fault::invalid(field, &json!(name), names::SUBDOMAIN_HELP));
    }
}

fn check_labels(value: &Value, faults: &mut Vec<Fault>) {
    for (key, label) in value["metadata"]["labels"].as_object().into_iter().flatten() {
        if !names::is_qualified_name(key) {
            faults.push(Fault::invalid(
                "metadata.labels",
                &json!(key),
                "name part must consist of alphanumeric characters",
            ));
        }
        if !label.as_str().is_some_and(names::is_label_value) {
            faults.push(Fault::invalid(
                "metadata.labels",
                label,
                "a valid label must be an empty string or consist of alphanumeric characters",
            ));
        }
    }
}

fn check_annotations(value: &Value, faults: &mut Vec<Fault>) {
    let mut size = 0;
    for (key, annotation) in value["metadata"]["annotations"].as_object().into_iter().flatten() {
        if !names::is_qualified_name(&key.to_lowercase()) {
            faults.push(Fault::invalid(
                "metadata.annotations",
                &json!(key),
                "name part must consist of alphanumeric characters",
            ));
        }
        size += key.len() + annotation.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        faults.push(Fault::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
}

fn check_owner_references(value: &Value, faults: &mut Vec<Fault>) {
    let mut controllers = 0;
    for (index, owner) in object::owner_references(value).iter().enumerate() {
        let place = format!("metadata.ownerReferences[{index}]");
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let fault = if field == "apiVersion" {
                    Fault::invalid(format!("{place}.apiVersion"), &json!(""), "version must not be empty")
                } else {
                    Fault::invalid(format!("{place}.{field}"), &json!(""), "must not be empty")
                };
                faults.push(fault);
            }
        }
        controllers += i32::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let references = &value["metadata"]["ownerReferences"];
        faults.push(Fault::invalid(
            "metadata.ownerReferences",
            references,
            "Only one reference can have Controller set to true",
        ));
    }
}

fn check_finalizers(value: &Value, faults: &mut Vec<Fault>) {
    for finalizer in object::finalizers(value) {
        if !names::is_qualified_name(finalizer) {
            faults.push(Fault::invalid(
                "metadata.finalizers",
                &json!(finalizer),
                "name part must consist of alphanumeric characters",
            ));
        }
    }
}

fn check_unchanged(resource: &Resource, value: &Value, old: &Value, faults: &mut Vec<Fault>) {
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        let (before, after) = (&old["metadata"][field], &value["metadata"][field]);
        if before != after {
            faults.push(Fault::invalid(format!("metadata.{field}"), after, "field is immutable"));
        }
    }
    if object::is_terminating(old) {
        let added: Vec<&str> = object::finalizers(value)
            .filter(|one| !object::finalizers(old).any(|before| before == *one))
            .collect();
        if !added.is_empty() {
            faults.push(Fault::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
                ),
            ));
        }
    }
    let _ = resource;
}
