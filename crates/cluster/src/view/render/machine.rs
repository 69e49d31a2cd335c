//! The CAPI Machine, in either version.

use super::{Source, texts};
use crate::transport::kinds::CapiVersion;
use five_spot_api::ProviderObject;
use five_spot_api::names::{self, annotation};
use serde_json::{Value, json};

pub(crate) fn machine(source: &Source<'_>) -> Value {
    let template = &source.raw.machine_template;
    let mut labels = texts(&template.labels);
    labels.extend(source.labels());
    let mut annotations = texts(&template.annotations);
    annotations.insert(annotation::MACHINE_HASH.to_owned(), source.spec.machine_hash.to_string().into());
    annotations.insert(annotation::APPLIED_HASH.to_owned(), source.spec.applied_hash.to_string().into());
    let bootstrap = reference(source, &source.raw.bootstrap_spec, &names::bootstrap(source.name));
    let infrastructure =
        reference(source, &source.raw.infrastructure_spec, &names::infrastructure(source.name));
    let mut spec = json!({
        "clusterName": source.spec.cluster_name,
        "bootstrap": {"configRef": bootstrap},
        "infrastructureRef": infrastructure,
    });
    if let Some(version) = &template.version {
        spec["version"] = version.as_str().into();
    }
    if let Some(domain) = &template.failure_domain {
        spec["failureDomain"] = domain.as_str().into();
    }
    // Never 0, which CAPI reads as forever: the shortest that a spec can say is a second.
    let seconds = source.spec.handling.node_drain_timeout.as_secs().max(1);
    match source.capi_version {
        CapiVersion::V1Beta1 => spec["nodeDrainTimeout"] = format!("{seconds}s").into(),
        CapiVersion::V1Beta2 => spec["deletion"] = json!({"nodeDrainTimeoutSeconds": seconds}),
    }
    merge(&mut spec, node_deletion_timeout(source.capi_version));
    json!({
        "apiVersion": source.capi_version.api_version(),
        "kind": "Machine",
        "metadata": {
            "name": names::machine(source.name),
            "namespace": source.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [source.owner(true)],
        },
        "spec": spec,
    })
}

/// The time for which Cluster API tries to delete the Node of a deleted Machine. Its default of ten seconds leaves the Node behind
/// if the workload cluster is away for longer; 0 would keep the Machine of a cluster that is gone forever.
const NODE_DELETION_TIMEOUT_SECONDS: u32 = 3600;

/// The part of a Machine's spec that says how long Cluster API tries to delete its Node.
pub(crate) fn node_deletion_timeout(version: CapiVersion) -> Value {
    match version {
        CapiVersion::V1Beta1 => json!({"nodeDeletionTimeout": format!("{NODE_DELETION_TIMEOUT_SECONDS}s")}),
        CapiVersion::V1Beta2 => {
            json!({"deletion": {"nodeDeletionTimeoutSeconds": NODE_DELETION_TIMEOUT_SECONDS}})
        }
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn reference(source: &Source<'_>, object: &ProviderObject, name: &str) -> Value {
    match source.capi_version {
        CapiVersion::V1Beta1 => json!({
            "apiVersion": object.api_version, "kind": object.kind, "name": name, "namespace": source.namespace,
        }),
        CapiVersion::V1Beta2 => {
            let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
            json!({"apiGroup": group, "kind": object.kind, "name": name})
        }
    }
}
