//! Bootstrap and infrastructure objects, whatever their provider.
//!
//! They carry a second owner, the Cluster: without it a foreground deletion of the `ScheduledMachine` would let the
//! garbage collector delete the infrastructure at once, and CAPI, which then finds it going, would give up its drain.

use super::Source;
use five_spot_api::ProviderObject;
use five_spot_api::names::{self, annotation};
use five_spot_core::world::Uid;
use serde_json::{Value, json};

pub(crate) fn bootstrap(source: &Source<'_>, cluster: &Uid) -> Value {
    object(source, cluster, &source.raw.bootstrap_spec, &names::bootstrap(source.name))
}

pub(crate) fn infrastructure(source: &Source<'_>, cluster: &Uid) -> Value {
    object(source, cluster, &source.raw.infrastructure_spec, &names::infrastructure(source.name))
}

fn object(source: &Source<'_>, cluster: &Uid, object: &ProviderObject, name: &str) -> Value {
    let cluster = json!({
        "apiVersion": source.capi_version.api_version(),
        "kind": "Cluster",
        "name": source.spec.cluster_name,
        "uid": cluster.as_str(),
    });
    json!({
        "apiVersion": object.api_version,
        "kind": object.kind,
        "metadata": {
            "name": name,
            "namespace": source.namespace,
            "labels": source.labels(),
            "annotations": {annotation::MACHINE_HASH: source.spec.machine_hash.to_string()},
            "ownerReferences": [source.owner(false), cluster],
        },
        "spec": object.spec,
    })
}
