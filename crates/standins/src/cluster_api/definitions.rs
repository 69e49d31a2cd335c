//! The CRDs of Cluster API's kinds, in a minimal form.
//!
//! The real ones are 600 KB and need a conversion webhook; these accept any field and serve one version.

use super::shape::Contract;
use serde_json::{Value, json};

/// The CRDs of Cluster, Machine and `MachineDrainRule` in a version.
pub fn crds(contract: Contract) -> Vec<Value> {
    let cluster = column("Cluster", ".spec.clusterName");
    let phase = column("Phase", ".status.phase");
    let node = column("Node Name", ".status.nodeRef.name");
    let provider = column("Provider ID", ".spec.providerID");
    vec![
        crd(contract, "Cluster", "clusters", &["cl"], std::slice::from_ref(&phase)),
        crd(contract, "Machine", "machines", &["ma"], &[cluster, node, provider, phase]),
        crd(
            contract,
            "MachineDrainRule",
            "machinedrainrules",
            &[],
            &[column("Behavior", ".spec.drain.behavior")],
        ),
    ]
}

fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

fn crd(contract: Contract, kind: &str, plural: &str, short_names: &[&str], columns: &[Value]) -> Value {
    let group = super::super::kinds::CORE_GROUP;
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut columns = columns.to_vec();
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let version = json!({
        "name": contract.version(), "served": true, "storage": true, "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open.clone(), "status": open}}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {format!("{group}/{}", contract.version()): contract.version()},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase(),
                "shortNames": short_names, "categories": ["cluster-api"],
            },
            "versions": [version],
        },
    })
}
