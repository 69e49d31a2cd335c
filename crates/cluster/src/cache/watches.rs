//! The watches that fill the shelves.

use super::fleet::{Fleet, Inner, Watched, lock};
use crate::cache::cause::Cause;
use crate::cache::own_namespace;
use crate::cache::project::{self, ProviderFacts};
use crate::cache::store::{FailureKind, Scope, Shelf};
use crate::cache::watch::{News, fill, fill_from};
use crate::transport::kinds::{capi_resource, our_resource};
use crate::view::render::CapiVersion;
use five_spot_api::names::label;
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

/// How long after a kind was not found it is looked for again, at first and at most.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));

/// The most if it was not found because nobody answered, or not well.
const ASK_AGAIN: Duration = Duration::from_secs(20);

/// The pauses between looks for a kind: longer and longer.
struct LookAgain(Duration);

impl LookAgain {
    const fn new() -> Self {
        Self(LOOK_AGAIN.0)
    }

    fn after(&mut self, failure: FailureKind) -> Duration {
        let longest = match failure {
            FailureKind::Unreachable => ASK_AGAIN,
            FailureKind::NoSuchKind | FailureKind::OtherVersion | FailureKind::Forbidden => LOOK_AGAIN.1,
        };
        let pause = self.0.min(longest);
        self.0 = (pause * 2).min(LOOK_AGAIN.1);
        pause
    }
}

impl Fleet {
    pub(super) fn watch_namespaces(&self) {
        for scope in self.inner.scopes.clone() {
            let fleet = self.inner.clone();
            self.inner.spawn(async move {
                let tell = |news: News| match news {
                    News::Changed(namespace) => {
                        fleet.tell_where(Cause::Namespace, |key, _| key.namespace == namespace.name);
                    }
                    News::Condition => fleet.tell_all(Cause::Watch),
                    News::NotServed => {}
                };
                let (client, shelf) = (fleet.client.clone(), &fleet.namespaces);
                if let Some(name) = scope.clone() {
                    let events = own_namespace::events(client, name.clone());
                    let path = own_namespace::watch_path(&name);
                    fill_from(&fleet.origin, events, &path, scope, shelf, project::namespace_pause, tell)
                        .await;
                } else {
                    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
                    fill(&fleet.origin, api, Config::default(), scope, shelf, project::namespace_pause, tell)
                        .await;
                }
            });
        }
    }

    pub(super) fn watch_objects(&self) {
        for scope in self.inner.scopes.clone() {
            let fleet = self.inner.clone();
            self.inner.spawn(async move {
                let api = fleet.api_in(&scope, &our_resource());
                let tell = |news: News| {
                    fleet.may_be_untidy();
                    if let News::Changed(key) = &news {
                        fleet.note_recorded_node(key);
                        fleet.note_secrets(key);
                    }
                    match news {
                        News::Changed(key) if fleet.is_echo(&key) => {}
                        News::Changed(key) => fleet.tell(key, Cause::Object),
                        News::Condition | News::NotServed => {}
                    }
                };
                fill(
                    &fleet.origin,
                    api,
                    Config::default(),
                    scope,
                    &fleet.objects,
                    project::scheduled_machine,
                    tell,
                )
                .await;
            });
        }
    }

    /// Watches Machines and Clusters in the version that the server speaks; in another one once it speaks only that, as
    /// after an upgrade of Cluster API.
    pub(super) fn watch_cluster_api(&self) {
        let fleet = self.inner.clone();
        self.inner.spawn(async move {
            loop {
                let version = fleet.find_cluster_api().await;
                let not_served = Notify::new();
                let watches = fleet.scopes.iter().cloned().flat_map(|scope| {
                    let machines = fleet.watch_machines(version, scope.clone(), &not_served);
                    [machines.boxed(), fleet.watch_clusters(version, scope, &not_served).boxed()]
                });
                tokio::select! {
                    _ = join_all(watches) => {}
                    () = fleet.cluster_api_other_than(version, &not_served) => {}
                }
            }
        });
    }
}

impl Inner {
    async fn find_cluster_api(self: &Arc<Self>) -> CapiVersion {
        let mut look_again = LookAgain::new();
        loop {
            let pause = match self.kinds.cluster_api().await {
                Ok(version) => {
                    *lock(&self.capi) = Some(version);
                    return version;
                }
                Err(failure) => {
                    tracing::warn!(error = %failure.message, "Cluster API was not found");
                    let (pause, news) = (look_again.after(failure.kind), self.machines.fail(failure.clone()));
                    if self.clusters.fail(failure) || news {
                        self.tell_all(Cause::Watch);
                    }
                    pause
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits until Cluster API is served in another version, which is looked for whenever this one was missed.
    async fn cluster_api_other_than(&self, version: CapiVersion, not_served: &Notify) {
        loop {
            not_served.notified().await;
            if self.kinds.cluster_api().await.is_ok_and(|served| served != version) {
                return;
            }
        }
    }

    async fn watch_machines(&self, version: CapiVersion, scope: Scope, not_served: &Notify) {
        let api = self.api_in(&scope, &capi_resource(version, "Machine", "machines"));
        let config = Config::default().labels(label::SCHEDULED_MACHINE);
        let tell = |news: News| match news {
            News::Changed(key) => {
                self.note_node(&key);
                self.tell_owner(&key, Cause::Machine);
            }
            News::Condition => self.tell_all(Cause::Watch),
            News::NotServed => not_served.notify_one(),
        };
        fill(&self.origin, api, config, scope, &self.machines, project::machine, tell).await;
    }

    async fn watch_clusters(&self, version: CapiVersion, scope: Scope, not_served: &Notify) {
        let api = self.api_in(&scope, &capi_resource(version, "Cluster", "clusters"));
        let tell = |news: News| match news {
            News::Changed(cluster) => self.tell_where(Cause::Cluster, |key, object| {
                let named = object.spec.as_ref().is_ok_and(|spec| *spec.cluster_name == *cluster.name);
                key.namespace == cluster.namespace && named
            }),
            News::Condition => self.tell_all(Cause::Watch),
            News::NotServed => not_served.notify_one(),
        };
        fill(&self.origin, api, Config::default(), scope, &self.clusters, project::cluster, tell).await;
    }

    /// The objects of a provider's kind that are ours, which are watched from the first time that they are asked for.
    pub(crate) fn provider(self: &Arc<Self>, kind: &ProviderKind) -> Shelf<ProviderFacts> {
        let mut providers = lock(&self.providers);
        let watched = providers.entry(kind.clone()).or_insert_with(|| self.watch_provider(kind));
        watched.shelf.clone()
    }

    /// Forgets a kind that is gone, with all of its objects. It is looked for anew when somebody asks for it.
    pub(crate) fn forget_kind(&self, kind: &ProviderKind) {
        self.kinds.forget(kind);
        lock(&self.providers).remove(kind);
    }

    fn watch_provider(self: &Arc<Self>, kind: &ProviderKind) -> Watched<ProviderFacts> {
        let shelf = Shelf::new(self.scopes.clone());
        if self.term() > 0 {
            shelf.read_latest();
        }
        let stop = self.stop.child_token();
        let watched = Watched { shelf: shelf.clone(), _ends_with_us: stop.clone().drop_guard() };
        let (fleet, kind) = (self.clone(), kind.clone());
        tokio::spawn(async move {
            let filling = async {
                let resource = fleet.find_kind(&kind, &shelf).await;
                let watches = fleet.scopes.iter().map(|scope| {
                    let tell = |news: News| match news {
                        News::Changed(key) => fleet.tell_owner(&key, Cause::Provider),
                        News::Condition => fleet.tell_all(Cause::Watch),
                        News::NotServed => {}
                    };
                    let config = Config::default().labels(label::SCHEDULED_MACHINE);
                    fill(
                        &fleet.origin,
                        fleet.api_in(scope, &resource),
                        config,
                        scope.clone(),
                        &shelf,
                        project::provider,
                        tell,
                    )
                });
                join_all(watches).await;
            };
            stop.run_until_cancelled(filling).await;
        });
        watched
    }

    async fn find_kind(&self, kind: &ProviderKind, shelf: &Shelf<ProviderFacts>) -> ApiResource {
        let mut look_again = LookAgain::new();
        loop {
            let pause = match self.kinds.resolve(kind).await {
                Ok(resource) => return resource,
                Err(failure) => {
                    let pause = look_again.after(failure.kind);
                    if shelf.fail(failure) {
                        self.tell_all(Cause::Watch);
                    }
                    pause
                }
            };
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_did_not_answer_is_asked_again_sooner_than_one_who_said_that_there_is_no_such_kind() {
        let mut look_again = LookAgain::new();
        let seconds = [0; 5].map(|_| look_again.after(FailureKind::NoSuchKind).as_secs());
        assert_eq!(seconds, [5, 10, 20, 40, 60]);
        let seconds = [0; 2].map(|_| look_again.after(FailureKind::Unreachable).as_secs());
        assert_eq!(seconds, [20, 20]);
    }
}
