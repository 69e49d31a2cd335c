//! The caches for one look at one object: filled by single reads instead of watches.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::links;
use crate::cache::lock::lock;
use crate::cache::project::{self, ObjectFacts, made_for};
use crate::cache::references::{WorkloadKey, references, secret_keys};
use crate::cache::secrets;
use crate::cache::store::Store;
use crate::cache::watches;
use crate::cache::write_back::put_object;
use crate::transport::core_kinds::Lease;
use crate::transport::error::{CallError, ReadFailure, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{capi_resource, our_resource};
use crate::transport::kubeconfig;
use crate::transport::operation::{Operation, TargetKind, Verb};
use five_spot_api::names;
use five_spot_core::ProviderKind;
use five_spot_core::world::NodeName;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads an object and everything that its world consists of. False if there is no such object.
///
/// An error means that the management cluster could not be read. What fails besides (a kind, a Secret, a workload cluster)
/// is part of the world, as it is for a controller.
pub(crate) async fn read_once(caches: &Arc<Caches>, key: &ObjectKey) -> Result<bool, CallError> {
    let api = caches.api(&key.namespace, &our_resource());
    let found = or_absent(api.get(&key.name).await)
        .map_err(|error| CallError::new(get(TargetKind::ScheduledMachine, key), error))?;
    caches.objects.mark_synced();
    let Some(facts) = found.and_then(|object| put_object(caches, &object)) else { return Ok(false) };
    read_namespace(caches, key).await?;
    read_cluster_api(caches, key, &facts).await?;
    read_claim(caches, &facts).await;
    for kind in references(key, &facts).kinds {
        read_provider(caches, key, &kind).await;
    }
    // The Secret of the spec is usually the recorded one, and a cluster that hangs must not be waited for twice.
    let secrets: BTreeSet<(ObjectKey, String)> = secret_keys(key, &facts).into_iter().collect();
    let nodes = nodes(caches, key, &facts);
    join_all(secrets.into_iter().map(|secret| read_workload(caches, secret, &nodes))).await;
    if caches.allows_management_nodes(&key.namespace)
        && let Ok(link) = links::link(caches, &WorkloadKey::Management, None).await
    {
        link.read_once(&nodes).await;
    }
    Ok(true)
}

/// Reads the kubeconfig in a Secret, and the Nodes of the cluster that it leads to.
async fn read_workload(caches: &Arc<Caches>, (secret, in_secret): (ObjectKey, String), nodes: &[NodeName]) {
    read_secret(caches, &secret).await;
    let workload = WorkloadKey::Kubeconfig { secret: secret.clone(), key: in_secret };
    if let Some(content) = secrets::secret(caches, &secret).view(&secret)
        && let Ok(link) = links::link(caches, &workload, Some(&content)).await
    {
        link.read_once(nodes).await;
    }
}

async fn read_namespace(caches: &Caches, key: &ObjectKey) -> Result<(), CallError> {
    let name = ObjectKey::new("", key.namespace.clone());
    let api: Api<Namespace> = Api::all(caches.client.clone());
    let found = or_absent(api.get_metadata(&name.name).await)
        .map_err(|error| CallError::new(get(TargetKind::Namespace, &name), error))?;
    caches.namespaces.mark_synced();
    if let Some(object) = found {
        let version = object.resource_version().unwrap_or_default();
        caches.namespaces.put(name, &version, project::namespace(&object));
    }
    Ok(())
}

/// Reads the Machine and the Cluster. A missing Cluster API is part of the world.
async fn read_cluster_api(caches: &Caches, key: &ObjectKey, facts: &ObjectFacts) -> Result<(), CallError> {
    let version = match caches.kinds.cluster_api().await {
        Ok(version) => version,
        Err(failure) => {
            caches.machines.fail(failure.clone());
            caches.clusters.fail(failure);
            return Ok(());
        }
    };
    *lock(&caches.capi) = Some(version);
    let read = async |kind: &str, plural: &str, name: &ObjectKey| {
        let api = caches.api(&key.namespace, &capi_resource(version, kind, plural));
        or_absent(api.get(&name.name).await)
            .map_err(|error| CallError::new(get(TargetKind::cluster_api(kind), name), error))
    };
    let machine = read("Machine", "machines", &machine_key(key)).await?;
    put(&caches.machines, machine.filter(is_ours), project::machine);
    caches.index_nodes(key);
    let cluster = match &facts.spec {
        Ok(spec) => read("Cluster", "clusters", &key.beside(spec.cluster_name.clone())).await?,
        Err(_) => None,
    };
    put(&caches.clusters, cluster, project::cluster);
    Ok(())
}

/// Reads the claim on the physical machine. Who may not read Leases sees an object without protection.
async fn read_claim(caches: &Caches, facts: &ObjectFacts) {
    let claims = &caches.claims;
    let Some(machine) = facts.spec.as_ref().ok().and_then(|spec| spec.identity) else { return };
    let api: Api<Lease> = Api::namespaced(caches.client.clone(), claims.namespace());
    match or_absent(api.get(&machine.lease()).await) {
        Ok(found) => {
            claims.store.mark_synced();
            if let Some(lease) = found {
                claims.put(&lease);
            }
        }
        Err(error) => {
            claims.store.fail(ReadFailure::of(&error));
        }
    }
}

async fn read_provider(caches: &Arc<Caches>, key: &ObjectKey, kind: &ProviderKind) {
    let store = watches::provider(caches, kind);
    let resource = match caches.kinds.resolve(kind).await {
        Ok(resource) => resource,
        Err(failure) => {
            store.fail(failure);
            return;
        }
    };
    let api = caches.api(&key.namespace, &resource);
    for name in [names::bootstrap(&key.name), names::infrastructure(&key.name)] {
        match or_absent(api.get(&name).await) {
            Ok(found) => put(&store, found.filter(is_ours), project::provider),
            Err(error) => {
                store.fail(ReadFailure::of(&error));
                return;
            }
        }
    }
}

/// Reads a Secret by a list of one name, which needs the same permission as the watch of a controller.
async fn read_secret(caches: &Arc<Caches>, key: &ObjectKey) {
    let (store, keys) = (secrets::secret(caches, key), secrets::keys_of_secret(caches, key));
    let api: Api<Secret> = Api::namespaced(caches.client.clone(), &key.namespace);
    match api.list(&ListParams::default().fields(&format!("metadata.name={}", key.name))).await {
        Ok(found) => {
            store.mark_synced();
            for secret in found.items {
                let version = secret.resource_version().unwrap_or_default();
                store.put(key.clone(), &version, kubeconfig::secret(&secret, &keys));
            }
        }
        Err(error) => {
            store.fail(ReadFailure::of(&error));
        }
    }
}

/// The Nodes that an object has, by its Machine and by its status.
fn nodes(caches: &Caches, key: &ObjectKey, facts: &ObjectFacts) -> Vec<NodeName> {
    let by_machine = caches.machines.view(&machine_key(key)).and_then(|machine| machine.node);
    by_machine.into_iter().chain(facts.record.node.clone()).collect()
}

/// Fills a store with one object, or with none.
fn put<V: Clone + PartialEq>(
    store: &Store<V>,
    found: Option<DynamicObject>,
    project: impl Fn(&DynamicObject) -> V,
) {
    store.mark_synced();
    if let Some(object) = found {
        let version = object.resource_version().unwrap_or_default();
        store.put(ObjectKey::of(&object), &version, project(&object));
    }
}

/// The watches of a controller select objects by this label.
fn is_ours(object: &DynamicObject) -> bool {
    made_for(object).is_some()
}

fn get(kind: TargetKind, object: &ObjectKey) -> Operation {
    Operation::new(Verb::Get, kind, object.clone())
}
