//! The validation of custom resource definitions.

use crate::error::Fault;
use crate::object;
use serde_json::{Value, json};

pub(super) fn check(value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    let spec = &value["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (plural, group) = (text(&spec["names"]["plural"]), text(&spec["group"]));
    for (field, value) in [
        ("spec.group", &group),
        ("spec.names.plural", &plural),
        ("spec.names.kind", &text(&spec["names"]["kind"])),
    ] {
        if value.is_empty() {
            faults.push(Fault::required(field, ""));
        }
    }
    let expected = format!("{plural}.{group}");
    if object::name(value) != expected {
        faults.push(Fault::invalid(
            "metadata.name",
            &json!(object::name(value)),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if !["Namespaced", "Cluster"].iter().any(|one| spec["scope"] == *one) {
        faults.push(Fault::unsupported("spec.scope", &spec["scope"], &["Cluster", "Namespaced"]));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        faults.push(Fault::invalid(
            "spec.versions",
            &spec["versions"],
            "must have exactly one version marked as storage version",
        ));
    }
    if value["status"]["storedVersions"].as_array().is_some_and(|stored| stored.len() > 1) && old.is_none() {
        faults.push(Fault::invalid(
            "status.storedVersions",
            &value["status"]["storedVersions"],
            "must have exactly one stored version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            faults.push(Fault::required(
                format!("spec.versions[{index}].schema.openAPIV3Schema"),
                "schemas are required",
            ));
        }
    }
    if let Some(old) = old {
        for field in ["group", "scope"] {
            if old["spec"][field] != spec[field] {
                faults.push(Fault::invalid(format!("spec.{field}"), &spec[field], "field is immutable"));
            }
        }
    }
}
