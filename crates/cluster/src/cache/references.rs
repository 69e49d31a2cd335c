//! The kinds, Secrets and clusters that a `ScheduledMachine` refers to, by its spec and by its status.

use crate::cache::project::ObjectFacts;
use crate::transport::key::ObjectKey;
use five_spot_api::{WorkloadCluster, names};
use five_spot_core::{ProviderKind, ValidSpec};

/// The key of a kubeconfig Secret that Cluster API writes.
const KUBECONFIG_KEY: &str = "value";

/// The cluster in which a Node lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkloadKey {
    /// The management cluster, which holds the `ScheduledMachine`s.
    Management,
    /// The cluster of the kubeconfig under a key of a Secret.
    Kubeconfig { secret: ObjectKey, key: String },
}

/// Everything that has to be watched for one object.
pub(crate) struct References {
    pub(crate) kinds: Vec<ProviderKind>,
    pub(crate) secrets: Vec<ObjectKey>,
}

/// The provider kinds and Secrets that an object refers to.
pub(crate) fn references(key: &ObjectKey, object: &ObjectFacts) -> References {
    let record = &object.record;
    let mut kinds = record.former_kinds.to_vec();
    let mut secrets: Vec<ObjectKey> = Vec::new();
    if let Ok(spec) = &object.spec {
        kinds.extend([spec.bootstrap.clone(), spec.infrastructure.clone()]);
        secrets.push(key.beside(default_secret(spec).0));
    }
    secrets.extend(
        record.workload_cluster.as_ref().and_then(|cluster| secret_of(key, cluster)).map(|found| found.0),
    );
    References { kinds, secrets }
}

/// True if an object refers to a provider kind.
pub(crate) fn uses_kind(object: &ObjectFacts, kind: &ProviderKind) -> bool {
    object.record.former_kinds.contains(kind)
        || object.spec.as_ref().is_ok_and(|spec| spec.bootstrap == *kind || spec.infrastructure == *kind)
}

/// The Secrets that an object names, each with the key inside it.
pub(crate) fn secret_keys(key: &ObjectKey, object: &ObjectFacts) -> Vec<(ObjectKey, String)> {
    let recorded = object.record.workload_cluster.as_ref();
    spec_secret(key, object).into_iter().chain(recorded.and_then(|cluster| secret_of(key, cluster))).collect()
}

/// The name of the kubeconfig Secret of a spec, and the key inside it.
pub(crate) fn default_secret(spec: &ValidSpec) -> (String, String) {
    spec.kubeconfig_secret.as_ref().map_or_else(
        || (names::kubeconfig_secret(&spec.cluster_name), KUBECONFIG_KEY.to_owned()),
        |named| (named.name.clone(), named.key.clone()),
    )
}

/// The kubeconfig Secret of a cluster, and the key inside it; `None` for the management cluster.
pub(crate) fn secret_of(key: &ObjectKey, cluster: &WorkloadCluster) -> Option<(ObjectKey, String)> {
    let name = cluster.secret_name.as_ref()?;
    let in_secret = cluster.secret_key.clone().unwrap_or_else(|| KUBECONFIG_KEY.to_owned());
    Some((key.beside(name.clone()), in_secret))
}

/// The cluster of an object's Node: the one in its status, else the one of its spec.
pub(crate) fn workload_of(key: &ObjectKey, object: &ObjectFacts) -> WorkloadKey {
    let by_record = object.record.workload_cluster.as_ref().map(|cluster| secret_of(key, cluster));
    match by_record {
        Some(Some((secret, key))) => WorkloadKey::Kubeconfig { secret, key },
        Some(None) => WorkloadKey::Management,
        None => spec_workload(key, object).unwrap_or(WorkloadKey::Management),
    }
}

/// The cluster that the spec of an object leads to, by its Secret.
pub(crate) fn spec_workload(key: &ObjectKey, object: &ObjectFacts) -> Option<WorkloadKey> {
    let (secret, key) = spec_secret(key, object)?;
    Some(WorkloadKey::Kubeconfig { secret, key })
}

fn spec_secret(key: &ObjectKey, object: &ObjectFacts) -> Option<(ObjectKey, String)> {
    let (name, in_secret) = default_secret(object.spec.as_ref().ok()?);
    Some((key.beside(name), in_secret))
}

/// The `ScheduledMachine` that a Machine or a provider's object was made for, by the name of the object.
pub(crate) fn owner(object: &ObjectKey) -> Option<ObjectKey> {
    let suffixes = [names::machine(""), names::bootstrap(""), names::infrastructure("")];
    let name = suffixes.iter().find_map(|suffix| object.name.strip_suffix(suffix.as_str()))?;
    Some(object.beside(name))
}
