//! Reads that only a drain needs, made once for each drain: drain rules, `DaemonSet`s and labels of namespaces.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::drain_rules::{DrainRules, Labels};
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{CapiVersion, capi_resource};
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::observed::Observed;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use std::sync::Arc;

/// The kind of Cluster API's rules for drains.
const DRAIN_RULE: &str = "MachineDrainRule";

/// Reads what an observation has shown to be unknown.
pub(super) async fn look_up(caches: &Caches, key: &ObjectKey, observed: &Observed) -> Result<(), CallError> {
    let (Some(link), lookups) = (&observed.link, &observed.lookups) else { return Ok(()) };
    if lookups.rules {
        let rules = Arc::new(drain_rules(caches, key, observed).await?);
        caches.memories.update(key, |memory| memory.drain_rules = Some(rules));
    }
    for daemon_set in &lookups.daemon_sets {
        let api: Api<DaemonSet> = Api::namespaced(link.client.clone(), &daemon_set.namespace);
        let found = or_absent(api.get_metadata(&daemon_set.name).await).map_err(|error| {
            CallError::new(Operation::new(Verb::Get, TargetKind::DaemonSet, daemon_set.clone()), error)
        })?;
        link.remember_daemon_set(daemon_set.clone(), found.is_some());
    }
    for name in &lookups.namespaces {
        let api: Api<Namespace> = Api::all(link.client.clone());
        let found = or_absent(api.get_metadata(name).await).map_err(|error| {
            let namespace = ObjectKey::new("", name.as_str());
            CallError::new(Operation::new(Verb::Get, TargetKind::Namespace, namespace), error)
        })?;
        let labels = found.map(|namespace| namespace.labels().clone()).unwrap_or_default();
        link.remember_namespace_labels(name.clone(), labels);
    }
    Ok(())
}

/// The rules that apply to the object's Machine. A Cluster API that does not serve such rules has none.
async fn drain_rules(caches: &Caches, key: &ObjectKey, observed: &Observed) -> Result<DrainRules, CallError> {
    let Some(version) = caches.capi() else { return Ok(DrainRules::default()) };
    let api = caches.api(&key.namespace, &capi_resource(version, DRAIN_RULE, "machinedrainrules"));
    let rules = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(_) if caches.kinds.lacks(&version.api_version(), DRAIN_RULE).await => Vec::new(),
        Err(error) => {
            let rules = ObjectKey::new(key.namespace.clone(), "");
            let kind = TargetKind::cluster_api(DRAIN_RULE);
            return Err(CallError::new(Operation::new(Verb::List, kind, rules), error));
        }
    };
    if rules.is_empty() {
        return Ok(DrainRules::default());
    }
    let machine = labels(caches, version, ("Machine", "machines"), &machine_key(key)).await?;
    let cluster = match &observed.spec {
        Ok(spec) => {
            let cluster = key.beside(spec.cluster_name.clone());
            labels(caches, version, ("Cluster", "clusters"), &cluster).await?
        }
        Err(_) => Labels::new(),
    };
    Ok(DrainRules::of(&rules, &machine, &cluster))
}

async fn labels(
    caches: &Caches,
    version: CapiVersion,
    (kind, plural): (&str, &str),
    key: &ObjectKey,
) -> Result<Labels, CallError> {
    let api = caches.api(&key.namespace, &capi_resource(version, kind, plural));
    let found = or_absent(api.get_metadata(&key.name).await).map_err(|error| {
        CallError::new(Operation::new(Verb::Get, TargetKind::cluster_api(kind), key.clone()), error)
    })?;
    Ok(found.map(|object| object.labels().clone()).unwrap_or_default())
}
