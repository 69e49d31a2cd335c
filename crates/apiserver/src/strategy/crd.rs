//! `CustomResourceDefinition`: defaults, acceptance of names, conditions.

use super::defaults::default_to;
use serde_json::{Value, json};

/// The defaults: names that follow from the kind, and conversion `None`.
pub(super) fn apply_defaults(crd: &mut Value) {
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        default_to(crd, &["spec", "names", "singular"], kind.to_lowercase().into());
        default_to(crd, &["spec", "names", "listKind"], format!("{kind}List").into());
    }
    default_to(crd, &["spec", "conversion", "strategy"], json!("None"));
}

/// The initial status of a CRD.
pub(super) fn prepare_create(crd: &mut Value) {
    let stored: Vec<Value> = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    crd["status"] = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored,
    });
}

/// Accepts and establishes a CRD if its names are free, as the server's naming controller does.
pub(crate) fn accept(crd: &mut Value, now: &str) {
    crd["status"]["acceptedNames"] = crd["spec"]["names"].clone();
    let stored = &mut crd["status"]["storedVersions"];
    let mut versions = stored.as_array().cloned().unwrap_or_default();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        if version["storage"] == true && !versions.contains(&version["name"]) {
            versions.push(version["name"].clone());
        }
    }
    crd["status"]["storedVersions"] = versions.into();
    if !crd["status"]["conditions"].is_array() {
        crd["status"]["conditions"] = conditions(now);
    }
}

/// The conditions of an established CRD.
fn conditions(now: &str) -> Value {
    json!([
        {
            "type": "NamesAccepted", "status": "True", "lastTransitionTime": now,
            "reason": "NoConflicts", "message": "no conflicts found",
        },
        {
            "type": "Established", "status": "True", "lastTransitionTime": now,
            "reason": "InitialNamesAccepted", "message": "the initial names have been accepted",
        },
    ])
}
