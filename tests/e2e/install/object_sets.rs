//! Sets of Kubernetes objects, and what differs between two of them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Labels and annotations that the chart adds, and the kustomizations do not have.
const OF_THE_CHART: [&str; 7] = [
    "helm.sh/chart",
    "helm.sh/resource-policy",
    "checksum/config",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
];

/// Objects by API version, kind, namespace and name, without what the chart adds and without the order of variables.
pub(super) struct Objects(BTreeMap<String, Value>);

impl Objects {
    pub(super) fn new(documents: Vec<Value>) -> anyhow::Result<Self> {
        let mut objects = BTreeMap::new();
        for mut document in documents {
            strip(&mut document["metadata"]);
            if let Some(metadata) = document.pointer_mut("/spec/template/metadata") {
                strip(metadata);
            }
            sort_variables(&mut document);
            let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
            let name =
                text("/metadata/name").with_context(|| format!("an object without a name: {document}"))?;
            let key = [text("/apiVersion"), text("/kind"), text("/metadata/namespace"), Some(name)]
                .map(Option::unwrap_or_default)
                .join(" ");
            ensure!(!objects.contains_key(&key), "{key} is there twice");
            objects.insert(key, document);
        }
        Ok(Self(objects))
    }
}

fn strip(metadata: &mut Value) {
    for part in ["labels", "annotations"] {
        let Some(map) = metadata.get_mut(part).and_then(Value::as_object_mut) else { continue };
        map.retain(|key, _| !OF_THE_CHART.contains(&key.as_str()));
        if map.is_empty()
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove(part);
        }
    }
}

/// Sorts the variables of containers: kustomize puts those that a patch has changed first.
fn sort_variables(document: &mut Value) {
    let containers = document.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) {
            variables.sort_by_key(|variable| variable["name"].to_string());
        }
    }
}

/// The differences between the objects of the kustomizations and those of the chart, one in a line.
pub(super) fn differences(kustomizations: &Objects, chart: &Objects) -> Vec<String> {
    let mut differences = Vec::new();
    let names: BTreeSet<&String> = kustomizations.0.keys().chain(chart.0.keys()).collect();
    for name in names {
        match (kustomizations.0.get(name), chart.0.get(name)) {
            (Some(expected), Some(found)) => compare(name, expected, found, &mut differences),
            (Some(_), None) => differences.push(format!("{name}: only in the kustomizations")),
            (None, Some(_)) => differences.push(format!("{name}: only in the chart")),
            (None, None) => {}
        }
    }
    differences
}

fn compare(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                let part = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}/{key}"), &part(expected), &part(found), differences);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(&format!("{path}/{index}"), expected, found, differences);
            }
        }
        // kustomize writes 100.0 as 100.
        (Value::Number(expected), Value::Number(found)) if expected.as_f64() == found.as_f64() => {}
        _ if expected == found => {}
        _ => differences.push(format!("{path}: kustomization {expected}, chart {found}")),
    }
}
