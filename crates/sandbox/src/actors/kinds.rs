//! The kinds of Cluster API and of a provider, as far as the stand-ins and 5-Spot use them.

use kube::api::ApiResource;
use serde_json::{Value, json};

/// The resource of a kind whose plural is regular.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

pub(super) fn machines() -> ApiResource {
    resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines")
}

pub(super) fn nodes() -> ApiResource {
    resource("", "v1", "Node", "nodes")
}

pub(super) fn pods() -> ApiResource {
    resource("", "v1", "Pod", "pods")
}

/// The bootstrap kind of the stand-in provider.
pub(super) fn bootstrap_configs() -> ApiResource {
    resource("bootstrap.cluster.x-k8s.io", "v1beta1", "K0sWorkerConfig", "k0sworkerconfigs")
}

/// The infrastructure kind of the stand-in provider.
pub(super) fn infrastructure_machines() -> ApiResource {
    resource("infrastructure.cluster.x-k8s.io", "v1beta1", "RemoteMachine", "remotemachines")
}

/// The CRDs of Cluster API and of the provider. Their schemas keep everything: what goes wrong in a real one is
/// checked on the real one.
pub fn cluster_api_definitions() -> Vec<Value> {
    [
        ("cluster.x-k8s.io", "Cluster", "clusters", "v1beta2"),
        ("cluster.x-k8s.io", "Machine", "machines", "v1beta2"),
        ("cluster.x-k8s.io", "MachineDrainRule", "machinedrainrules", "v1beta2"),
        ("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig", "k0sworkerconfigs", "v1beta1"),
        ("infrastructure.cluster.x-k8s.io", "RemoteMachine", "remotemachines", "v1beta1"),
        ("infrastructure.cluster.x-k8s.io", "RemoteCluster", "remoteclusters", "v1beta1"),
    ]
    .into_iter()
    .map(|(group, kind, plural, version)| definition(group, kind, plural, version))
    .collect()
}

fn definition(group: &str, kind: &str, plural: &str, version: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let contract = format!("cluster.x-k8s.io/{version}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {contract: version}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "categories": ["cluster-api"]},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}
