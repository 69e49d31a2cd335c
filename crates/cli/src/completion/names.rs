//! Names from the kubeconfig and from the cluster, for shell completion. Whatever fails gives no names: the line below the cursor
//! is no place for messages.

use crate::cluster_access::{CallerCluster, ClusterArgs};
use crate::why::{Catalog, Served, Target};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use std::time::Duration;

/// The time in which a cluster must answer. A person waits for it with a line half written.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// The most names of a kind: a terminal asks before it shows more than a hundred.
const MOST: u32 = 1000;

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// `ScheduledMachine`s of the namespace.
    Machines,
    /// Namespaces.
    Namespaces,
    /// Clusters of Cluster API in the namespace.
    Clusters,
    /// `KIND/NAME` for objects of all kinds.
    Objects,
    /// Contexts of the kubeconfig.
    Contexts,
}

/// The names in a cluster.
#[derive(Debug, Default)]
pub struct ClusterNames {
    pub cluster: ClusterArgs,
    /// The namespace, if it is not that of the context.
    pub namespace: Option<String>,
}

impl ClusterNames {
    /// The names of a kind that begin with a word.
    pub fn like(&self, kind: NameKind, word: &str) -> Vec<String> {
        let mut names = match kind {
            NameKind::Contexts => self.contexts(),
            NameKind::Machines | NameKind::Namespaces | NameKind::Clusters | NameKind::Objects => {
                self.ask(kind, word)
            }
        };
        names.retain(|name| name.starts_with(word));
        names.sort();
        names.dedup();
        names
    }

    fn contexts(&self) -> Vec<String> {
        let contexts = self.cluster.read().map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
        contexts.into_iter().map(|context| context.name).collect()
    }

    fn ask(&self, kind: NameKind, word: &str) -> Vec<String> {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return Vec::new();
        };
        let names = async { tokio::time::timeout(WAIT_LIMIT, self.names(kind, word)).await.ok().flatten() };
        let names = runtime.block_on(names).unwrap_or_default();
        // A connection that hangs delays nothing else.
        runtime.shutdown_background();
        names
    }

    async fn names(&self, kind: NameKind, word: &str) -> Option<Vec<String>> {
        let access = self.cluster.access().await.ok()?;
        let client = access.connection.management().ok()?;
        let namespace = Some(self.namespace_of(&access));
        match kind {
            NameKind::Machines => list(&client, &machines(), namespace).await,
            NameKind::Namespaces => list(&client, &ApiResource::erase::<Namespace>(&()), None).await,
            NameKind::Clusters => {
                let catalog = Catalog::discover(&client).await.ok()?;
                list(&client, &catalog.by_kind("cluster.x-k8s.io", "Cluster")?.resource(), namespace).await
            }
            NameKind::Objects => {
                let catalog = Catalog::discover(&client).await.ok()?;
                let Some((kind, _)) = word.split_once('/') else { return Some(kinds(&catalog)) };
                let served = target(kind).find(&catalog).ok()?;
                let names =
                    list(&client, &served.resource(), namespace.filter(|_| served.namespaced)).await?;
                Some(names.into_iter().map(|name| format!("{kind}/{name}")).collect())
            }
            NameKind::Contexts => None,
        }
    }

    fn namespace_of(&self, access: &CallerCluster) -> String {
        self.namespace.clone().unwrap_or_else(|| access.default_namespace.clone())
    }
}

fn machines() -> ApiResource {
    ApiResource::erase::<five_spot_api::ScheduledMachine>(&())
}

fn target(kind: &str) -> Target {
    Target { kind: kind.to_owned(), name: String::new() }
}

/// Every kind whose objects can be listed, in the shortest form that `5spot why` understands, with the slash.
fn kinds(catalog: &Catalog) -> Vec<String> {
    let form = |served: &Served| {
        let singular = if served.singular.is_empty() { &served.plural } else { &served.singular };
        match target(singular).find(catalog) {
            Ok(found) if found == served => format!("{singular}/"),
            Ok(_) | Err(_) => format!("{singular}.{}/", served.group),
        }
    };
    catalog.kinds.iter().filter(|served| served.can("list") && served.can("get")).map(form).collect()
}

async fn list(client: &Client, resource: &ApiResource, namespace: Option<String>) -> Option<Vec<String>> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let objects = api.list_metadata(&ListParams::default().limit(MOST)).await.ok()?;
    Some(objects.items.iter().map(ResourceExt::name_any).collect())
}
