//! Definitions for provider kinds that the user's machines refer to and that have no CRD, so that any
//! manifest can run.

use kube::Client;
use kube::api::GroupVersionKind;
use kube::discovery::pinned_kind;
use serde_json::{Value, json};

/// The CRDs that a `ScheduledMachine` needs and that do not exist.
pub async fn missing(client: &Client, machine: &Value) -> Vec<Value> {
    let mut missing = Vec::new();
    for field in ["bootstrapSpec", "infrastructureSpec"] {
        let provider = &machine["spec"][field];
        let (Some(api_version), Some(kind)) = (provider["apiVersion"].as_str(), provider["kind"].as_str())
        else {
            continue;
        };
        let Some((group, version)) = api_version.split_once('/') else {
            continue;
        };
        let is_known = pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await.is_ok();
        let definition = definition(group, version, kind);
        if !is_known && !missing.contains(&definition) {
            missing.push(definition);
        }
    }
    missing
}

fn definition(group: &str, version: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let access = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // The label by which Cluster API finds the provider's version for a version of its contract.
            "labels": {"cluster.x-k8s.io/v1beta2": version},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": access.clone(), "status": access},
                }},
            }],
        },
    })
}
