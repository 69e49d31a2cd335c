//! The watches of the management cluster. Those of Cluster API wait until it is installed; those of a provider's kind
//! are opened when an object needs them.

use crate::cache::caches::{Caches, Watched};
use crate::cache::change_cause::ChangeCause;
use crate::cache::claim_watch;
use crate::cache::lock::lock;
use crate::cache::namespace_watch;
use crate::cache::project::{self, NamespaceFacts, ProviderFacts};
use crate::cache::references::{owner, uses_kind};
use crate::cache::secrets;
use crate::cache::store::{Scope, Store};
use crate::cache::watch::{WatchSignal, fill, fill_from};
use crate::transport::error::ReadFailureKind;
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{CapiVersion, capi_resource, our_resource};
use five_spot_api::names::{annotation, label};
use five_spot_core::ProviderKind;
use futures::FutureExt;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, PartialObjectMeta};
use kube::runtime::watcher::Config;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The pause before discovery is repeated for a kind that was not found: the first and the longest.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));

/// The longest pause if the server did not answer, or not properly.
const ASK_AGAIN: Duration = Duration::from_secs(20);

/// The growing pauses between two attempts at discovery.
struct DiscoveryBackoff(Duration);

impl DiscoveryBackoff {
    const fn new() -> Self {
        Self(LOOK_AGAIN.0)
    }

    fn after(&mut self, failure: ReadFailureKind) -> Duration {
        let longest = match failure {
            ReadFailureKind::Unreachable => ASK_AGAIN,
            ReadFailureKind::NoSuchKind | ReadFailureKind::OtherVersion | ReadFailureKind::Forbidden => {
                LOOK_AGAIN.1
            }
        };
        let pause = self.0.min(longest);
        self.0 = (pause * 2).min(LOOK_AGAIN.1);
        pause
    }
}

/// Starts the watches that every decision needs.
pub(super) fn start(caches: &Arc<Caches>) {
    watch_namespaces(caches);
    watch_cluster_api(caches);
    watch_objects(caches);
    claim_watch::watch_claims(caches);
}

fn watch_namespaces(caches: &Arc<Caches>) {
    for scope in caches.namespace_scopes() {
        let watched = caches.clone();
        caches.spawn(async move {
            let notify = |signal: WatchSignal| match signal {
                WatchSignal::Changed(namespace) => {
                    let is_ours = *namespace.name == *watched.settings.controller_namespace;
                    let is_unreadable = |facts: &NamespaceFacts| facts.is_allowance_unreadable;
                    if is_ours && watched.namespaces.read(&namespace, is_unreadable) == Some(true) {
                        tracing::warn!(
                            annotation = annotation::ALLOW_REMOVALS,
                            controller_namespace = &*namespace.name,
                            "The annotation is not an RFC 3339 time such as 2026-01-31T18:00:00Z; no removal is allowed"
                        );
                    }
                    watched.notify_where(ChangeCause::Namespace, |key, object| {
                        let is_held = object.record.unplanned_removal == Some(None);
                        key.namespace == namespace.name || (is_ours && is_held)
                    });
                }
                WatchSignal::SyncState => watched.notify_all(ChangeCause::Watch),
                WatchSignal::NotServed | WatchSignal::Failed => {}
            };
            let (client, store, source) = (watched.client.clone(), &watched.namespaces, &watched.source);
            if let Some(name) = scope.clone() {
                let events = namespace_watch::events(client, name.clone());
                let path = namespace_watch::watch_path(&name);
                fill_from(source, events, &path, scope, store, project::namespace, notify).await;
            } else {
                let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
                fill(source, api, Config::default(), scope, store, project::namespace, notify).await;
            }
        });
    }
}

fn watch_objects(caches: &Arc<Caches>) {
    for scope in caches.scopes.clone() {
        let watched = caches.clone();
        caches.spawn(async move {
            let api = watched.api_in(&scope, &our_resource());
            let notify = |signal: WatchSignal| {
                watched.maybe_unused.notify_one();
                match signal {
                    WatchSignal::Changed(key) => {
                        watched.index_nodes(&key);
                        claim_watch::note_object(&watched, &key);
                        secrets::note_secrets(&watched, &key);
                        let cause = change_of_object(&watched, &key);
                        watched.notify(key, cause);
                    }
                    // The objects of this namespace are reported one by one; those of the others may have waited for it.
                    WatchSignal::SyncState => watched.notify_where(ChangeCause::Watch, |key, _| {
                        scope.as_ref().is_some_and(|namespace| *key.namespace != **namespace)
                    }),
                    WatchSignal::NotServed | WatchSignal::Failed => {}
                }
            };
            let (source, store) = (&watched.source, &watched.objects);
            let config = Config::default();
            fill(source, api, config, scope.clone(), store, project::scheduled_machine, notify).await;
        });
    }
}

/// Tells a change of the status alone, which as a rule is our own write, from any other change of an object.
fn change_of_object(caches: &Caches, key: &ObjectKey) -> ChangeCause {
    let Some(object) = caches.objects.view(key) else { return ChangeCause::Object };
    let is_seen =
        caches.memories.update(key, |memory| memory.note_seen(&object.view, object.force_reconcile));
    if is_seen { ChangeCause::Status } else { ChangeCause::Object }
}

/// Watches Machines and Clusters in the version that the server serves. When it stops to serve that version, as after an
/// upgrade of Cluster API, they are watched in another one.
fn watch_cluster_api(caches: &Arc<Caches>) {
    let watched = caches.clone();
    caches.spawn(async move {
        loop {
            let version = find_cluster_api(&watched).await;
            let not_served = Notify::new();
            let running = watched.scopes.iter().cloned().flat_map(|scope| {
                let machines = watch_machines(&watched, version, scope.clone(), &not_served);
                [machines.boxed(), watch_clusters(&watched, version, scope, &not_served).boxed()]
            });
            tokio::select! {
                _ = join_all(running) => {}
                () = cluster_api_other_than(&watched, version, &not_served) => {}
            }
        }
    });
}

async fn find_cluster_api(caches: &Caches) -> CapiVersion {
    let mut backoff = DiscoveryBackoff::new();
    loop {
        let pause = match caches.kinds.cluster_api().await {
            Ok(version) => {
                *lock(&caches.capi) = Some(version);
                return version;
            }
            Err(failure) => {
                tracing::warn!(error = %failure.message, "Cluster API was not found");
                let (pause, is_new) = (backoff.after(failure.kind), caches.machines.fail(failure.clone()));
                if caches.clusters.fail(failure) || is_new {
                    caches.notify_all(ChangeCause::Watch);
                }
                pause
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Waits until Cluster API is served in another version. Discovery is repeated whenever this version was not served.
async fn cluster_api_other_than(caches: &Caches, version: CapiVersion, not_served: &Notify) {
    loop {
        not_served.notified().await;
        if caches.kinds.cluster_api().await.is_ok_and(|served| served != version) {
            return;
        }
    }
}

async fn watch_machines(caches: &Caches, version: CapiVersion, scope: Scope, not_served: &Notify) {
    let api = caches.api_in(&scope, &capi_resource(version, "Machine", "machines"));
    let config = Config::default().labels(label::SCHEDULED_MACHINE);
    let notify = |signal: WatchSignal| match signal {
        WatchSignal::Changed(machine) => {
            match owner(&machine) {
                Some(object)
                    if caches.machines.view(&machine).is_some_and(|machine| machine.node.is_some()) =>
                {
                    caches.index_nodes(&object);
                }
                Some(_) => caches.maybe_unused.notify_one(),
                None => {}
            }
            if let Some(object) = owner(&machine) {
                claim_watch::note_object(caches, &object);
            }
            caches.notify_owner(&machine, ChangeCause::Machine);
        }
        WatchSignal::SyncState => caches.notify_all(ChangeCause::Watch),
        WatchSignal::NotServed => not_served.notify_one(),
        WatchSignal::Failed => {}
    };
    fill(&caches.source, api, config, scope, &caches.machines, project::machine, notify).await;
}

async fn watch_clusters(caches: &Caches, version: CapiVersion, scope: Scope, not_served: &Notify) {
    let api = caches.api_in(&scope, &capi_resource(version, "Cluster", "clusters"));
    let notify = |signal: WatchSignal| match signal {
        WatchSignal::Changed(cluster) => caches.notify_where(ChangeCause::Cluster, |key, object| {
            let named = object.spec.as_ref().is_ok_and(|spec| *spec.cluster_name == *cluster.name);
            key.namespace == cluster.namespace && named
        }),
        WatchSignal::SyncState => caches.notify_all(ChangeCause::Watch),
        WatchSignal::NotServed => not_served.notify_one(),
        WatchSignal::Failed => {}
    };
    fill(&caches.source, api, Config::default(), scope, &caches.clusters, project::cluster, notify).await;
}

/// The store of our objects of a provider's kind, which are watched from the first call on.
pub(crate) fn provider(caches: &Arc<Caches>, kind: &ProviderKind) -> Store<ProviderFacts> {
    let mut providers = lock(&caches.providers);
    let watched = providers.entry(kind.clone()).or_insert_with(|| watch_provider(caches, kind));
    watched.store.clone()
}

/// Forgets a kind that is gone, with all of its objects. It is looked up again when an object needs it.
pub(crate) fn forget_kind(caches: &Caches, kind: &ProviderKind) {
    caches.kinds.forget(kind);
    lock(&caches.providers).remove(kind);
    claim_watch::note_kind_gone(caches, kind);
}

fn watch_provider(caches: &Arc<Caches>, kind: &ProviderKind) -> Watched<ProviderFacts> {
    let store = Store::new(caches.scopes.clone());
    if caches.term() > 0 {
        store.read_latest();
    }
    let stop = caches.stop.child_token();
    let watched = Watched { store: store.clone(), _ends_watch: stop.clone().drop_guard() };
    if !caches.is_watched {
        return watched;
    }
    let (caches, kind) = (caches.clone(), kind.clone());
    tokio::spawn(async move {
        let filling = async {
            let resource = find_kind(&caches, &kind, &store).await;
            let running = caches.scopes.iter().map(|scope| {
                let notify = |signal: WatchSignal| match signal {
                    WatchSignal::Changed(key) => {
                        if let Some(object) = owner(&key) {
                            claim_watch::note_standing(&caches, &object);
                        }
                        caches.notify_owner(&key, ChangeCause::Provider);
                    }
                    WatchSignal::SyncState => notify_users(&caches, &kind),
                    WatchSignal::NotServed | WatchSignal::Failed => {}
                };
                let (api, config) =
                    (caches.api_in(scope, &resource), Config::default().labels(label::SCHEDULED_MACHINE));
                fill(&caches.source, api, config, scope.clone(), &store, project::provider, notify)
            });
            join_all(running).await;
        };
        stop.run_until_cancelled(filling).await;
    });
    watched
}

async fn find_kind(caches: &Caches, kind: &ProviderKind, store: &Store<ProviderFacts>) -> ApiResource {
    let mut backoff = DiscoveryBackoff::new();
    loop {
        let pause = match caches.kinds.resolve(kind).await {
            Ok(resource) => return resource,
            Err(failure) => {
                let pause = backoff.after(failure.kind);
                if store.fail(failure) {
                    notify_users(caches, kind);
                }
                pause
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Reports a change of the watch of a provider's kind to the objects that refer to the kind. A tenant can name any number
/// of kinds, which do not concern other objects.
fn notify_users(caches: &Caches, kind: &ProviderKind) {
    caches.notify_where(ChangeCause::Watch, |_, object| uses_kind(object, kind));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_asked_again_sooner() {
        let mut backoff = DiscoveryBackoff::new();
        let seconds = [0; 5].map(|_| backoff.after(ReadFailureKind::NoSuchKind).as_secs());
        assert_eq!(seconds, [5, 10, 20, 40, 60]);
        let seconds = [0; 2].map(|_| backoff.after(ReadFailureKind::Unreachable).as_secs());
        assert_eq!(seconds, [20, 20]);
    }
}
