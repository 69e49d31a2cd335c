//! Everything that is known of the clusters, and the watches that keep it known.

use crate::cause::Cause;
use crate::connection::Connection;
use crate::key::ObjectKey;
use crate::kinds::{Kinds, capi_resource, our_resource};
use crate::kubeconfig::{self, SecretFacts};
use crate::memory::Memory;
use crate::observe::node_key;
use crate::own_namespace;
use crate::project::{self, ClusterFacts, MachineFacts, ObjectFacts, ProviderFacts};
use crate::render::CapiVersion;
use crate::shelf::{Condition, FailureKind, Scope, Shelf};
use crate::watch::{News, fill, fill_from};
use crate::workload::{Link, TellNode, WorkloadKey};
use five_spot_api::names::{self, label};
use five_spot_core::ProviderKind;
use five_spot_core::world::{NodeName, PauseLevel, Policy};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::{CancellationToken, DropGuard};

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
            FailureKind::NoSuchKind | FailureKind::Forbidden => LOOK_AGAIN.1,
        };
        let pause = self.0.min(longest);
        self.0 = (pause * 2).min(LOOK_AGAIN.1);
        pause
    }
}

/// Everything that is known. Clones are the same fleet.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) connection: Connection,
    pub(crate) client: Client,
    pub(crate) policy: Policy,
    pub(crate) instance: String,
    pub(crate) kinds: Kinds,
    pub(crate) objects: Shelf<ObjectFacts>,
    pub(crate) machines: Shelf<MachineFacts>,
    pub(crate) clusters: Shelf<ClusterFacts>,
    pub(crate) namespaces: Shelf<Option<PauseLevel>>,
    capi: Mutex<Option<CapiVersion>>,
    providers: Mutex<BTreeMap<ProviderKind, Watched<ProviderFacts>>>,
    secrets: Mutex<BTreeMap<ObjectKey, Watched<SecretFacts>>>,
    links: Mutex<BTreeMap<WorkloadKey, Arc<Link>>>,
    /// Which objects have, or had, which node.
    users_of_node: Mutex<BTreeMap<NodeName, Vec<ObjectKey>>>,
    /// Boxed, because a map has room for nearly twice as many as it holds.
    memories: Mutex<BTreeMap<ObjectKey, Box<Memory>>>,
    scopes: Vec<Scope>,
    changes: UnboundedSender<(ObjectKey, Cause)>,
    stop: CancellationToken,
}

struct Watched<V> {
    shelf: Shelf<V>,
    _ends_with_us: DropGuard,
}

/// How a fleet is watched.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// How the controller was told to behave.
    pub policy: Policy,
    /// The namespaces to look after; empty: all.
    pub namespaces: Vec<String>,
    /// The name of this instance in the events that it publishes.
    pub instance: String,
}

impl Fleet {
    /// Starts to watch. Whoever holds the other end of `changes` hears of every object that has to be looked at, and why.
    pub fn watch(
        connection: Connection,
        settings: FleetSettings,
        changes: UnboundedSender<(ObjectKey, Cause)>,
        stop: &CancellationToken,
    ) -> Result<Self, kube::Error> {
        let client = connection.management()?;
        let scopes: Vec<Scope> = if settings.namespaces.is_empty() {
            vec![None]
        } else {
            settings.namespaces.into_iter().map(Some).collect()
        };
        let inner = Arc::new(Inner {
            kinds: Kinds::new(client.clone()),
            policy: settings.policy,
            instance: settings.instance,
            objects: Shelf::new(scopes.clone()),
            machines: Shelf::new(scopes.clone()),
            clusters: Shelf::new(scopes.clone()),
            namespaces: Shelf::new(scopes.clone()),
            capi: Mutex::new(None),
            providers: Mutex::default(),
            secrets: Mutex::default(),
            links: Mutex::default(),
            users_of_node: Mutex::default(),
            memories: Mutex::default(),
            scopes,
            changes,
            stop: stop.child_token(),
            connection,
            client,
        });
        let fleet = Self { inner };
        fleet.watch_namespaces();
        fleet.watch_cluster_api();
        fleet.watch_objects();
        Ok(fleet)
    }

    /// Every object there is, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.inner.objects.keys()
    }

    fn watch_namespaces(&self) {
        for scope in self.inner.scopes.clone() {
            let fleet = self.inner.clone();
            self.inner.spawn(async move {
                let tell = |news: News| match news {
                    News::Changed(namespace) => {
                        fleet.tell_where(Cause::Namespace, |key, _| key.namespace == namespace.name);
                    }
                    News::Condition => fleet.tell_all(Cause::Watch),
                };
                let (client, shelf) = (fleet.client.clone(), &fleet.namespaces);
                if let Some(name) = scope.clone() {
                    let events = own_namespace::events(client, name.clone());
                    let path = own_namespace::watch_path(&name);
                    fill_from(events, &path, scope, shelf, project::namespace_pause, tell).await;
                } else {
                    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
                    fill(api, Config::default(), scope, shelf, project::namespace_pause, tell).await;
                }
            });
        }
    }

    fn watch_objects(&self) {
        for scope in self.inner.scopes.clone() {
            let fleet = self.inner.clone();
            self.inner.spawn(async move {
                let api = fleet.api_in(&scope, &our_resource());
                let tell = |news: News| match news {
                    News::Changed(key) if fleet.is_echo(&key) => {}
                    News::Changed(key) => fleet.tell(key, Cause::Object),
                    News::Condition => {}
                };
                fill(api, Config::default(), scope, &fleet.objects, project::scheduled_machine, tell).await;
            });
        }
    }

    fn watch_cluster_api(&self) {
        let fleet = self.inner.clone();
        self.inner.spawn(async move {
            let version = fleet.find_cluster_api().await;
            for scope in fleet.scopes.clone() {
                fleet.watch_machines(version, scope.clone());
                fleet.watch_clusters(version, scope);
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

    fn watch_machines(self: &Arc<Self>, version: CapiVersion, scope: Scope) {
        let fleet = self.clone();
        self.spawn(async move {
            let api = fleet.api_in(&scope, &capi_resource(version, "Machine", "machines"));
            let config = Config::default().labels(label::SCHEDULED_MACHINE);
            let tell = |news: News| match news {
                News::Changed(key) => {
                    fleet.note_node(&key);
                    fleet.tell_owner(&key, Cause::Machine);
                }
                News::Condition => fleet.tell_all(Cause::Watch),
            };
            fill(api, config, scope, &fleet.machines, project::machine, tell).await;
        });
    }

    fn watch_clusters(self: &Arc<Self>, version: CapiVersion, scope: Scope) {
        let fleet = self.clone();
        self.spawn(async move {
            let api = fleet.api_in(&scope, &capi_resource(version, "Cluster", "clusters"));
            let tell = |news: News| match news {
                News::Changed(cluster) => fleet.tell_where(Cause::Cluster, |key, object| {
                    let named = object.spec.as_ref().is_ok_and(|spec| *spec.cluster_name == *cluster.name);
                    key.namespace == cluster.namespace && named
                }),
                News::Condition => fleet.tell_all(Cause::Watch),
            };
            fill(api, Config::default(), scope, &fleet.clusters, project::cluster, tell).await;
        });
    }

    /// The objects of a provider's kind that are ours, which are watched from the first time that they are asked for.
    pub(crate) fn provider(self: &Arc<Self>, kind: &ProviderKind) -> Shelf<ProviderFacts> {
        let mut providers = lock(&self.providers);
        let watched = providers.entry(kind.clone()).or_insert_with(|| self.watch_provider(kind));
        watched.shelf.clone()
    }

    fn watch_provider(self: &Arc<Self>, kind: &ProviderKind) -> Watched<ProviderFacts> {
        let shelf = Shelf::new(self.scopes.clone());
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
                    };
                    let config = Config::default().labels(label::SCHEDULED_MACHINE);
                    fill(
                        fleet.api_in(scope, &resource),
                        config,
                        scope.clone(),
                        &shelf,
                        project::provider,
                        tell,
                    )
                });
                futures::future::join_all(watches).await;
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

    /// A Secret, which is watched, and it alone, from the first time that it is asked for.
    pub(crate) fn secret(self: &Arc<Self>, key: &ObjectKey) -> Shelf<SecretFacts> {
        let mut secrets = lock(&self.secrets);
        let watched = secrets.entry(key.clone()).or_insert_with(|| self.watch_secret(key));
        watched.shelf.clone()
    }

    fn watch_secret(self: &Arc<Self>, key: &ObjectKey) -> Watched<SecretFacts> {
        let shelf = Shelf::new([None]);
        let stop = self.stop.child_token();
        let watched = Watched { shelf: shelf.clone(), _ends_with_us: stop.clone().drop_guard() };
        let (fleet, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            let api: Api<Secret> = Api::namespaced(fleet.client.clone(), &key.namespace);
            let config = Config::default().fields(&format!("metadata.name={}", key.name));
            let tell =
                |_: News| fleet.tell_where(Cause::Secret, |object, _| object.namespace == key.namespace);
            stop.run_until_cancelled(fill(api, config, None, &shelf, kubeconfig::secret, tell)).await;
        });
        watched
    }

    /// The link to a cluster, made anew if what leads to it has changed.
    pub(crate) async fn link(
        self: &Arc<Self>,
        key: &WorkloadKey,
        secret: Option<&SecretFacts>,
    ) -> Result<Arc<Link>, String> {
        if let Some(link) = lock(&self.links).get(key)
            && link.made_from.as_ref() == secret
        {
            return Ok(link.clone());
        }
        let client = match (key, secret) {
            (WorkloadKey::Kubeconfig { secret: name, key }, Some(facts)) => {
                let kubeconfig = kubeconfig::read(facts, key)
                    .map_err(|problem| format!("the kubeconfig in Secret {name} {problem}"))?;
                self.connection
                    .workload(kubeconfig)
                    .await
                    .map_err(|error| format!("the kubeconfig in Secret {name} cannot be used: {error}"))?
            }
            (WorkloadKey::Kubeconfig { .. } | WorkloadKey::Management, _) => self.client.clone(),
        };
        let link = Link::open(client, secret.cloned(), &self.stop, self.tell_node(), self.tell_everyone());
        lock(&self.links).insert(key.clone(), link.clone());
        Ok(link)
    }

    /// The link to a cluster, if it is open.
    pub(crate) fn open_link(&self, key: &WorkloadKey) -> Option<Arc<Link>> {
        lock(&self.links).get(key).cloned()
    }

    /// Whether the owner of a node of this name wants it back, in whichever cluster: urgency need not be exact.
    pub(crate) fn is_reclaimed(&self, node: &NodeName) -> bool {
        let links: Vec<Arc<Link>> = lock(&self.links).values().cloned().collect();
        let asks =
            |link: &Arc<Link>| link.nodes.view(&node_key(node)).is_some_and(|node| node.reclaim.is_some());
        links.iter().any(asks)
    }

    pub(crate) fn tell_node(self: &Arc<Self>) -> TellNode {
        let fleet = Arc::downgrade(self);
        Arc::new(move |node, cause| {
            if let Some(fleet) = fleet.upgrade() {
                let users = lock(&fleet.users_of_node).get(node).cloned().unwrap_or_default();
                for key in users {
                    fleet.tell(key, cause);
                }
            }
        })
    }

    fn tell_everyone(self: &Arc<Self>) -> Arc<dyn Fn() + Send + Sync> {
        let fleet = Arc::downgrade(self);
        Arc::new(move || {
            if let Some(fleet) = fleet.upgrade() {
                fleet.tell_all(Cause::Watch);
            }
        })
    }

    /// Closes watches and links that no object needs any more.
    pub(crate) fn close_unused(&self) {
        let mut kinds = BTreeSet::new();
        let mut secrets = BTreeSet::new();
        for needs in self.objects.select(|key, object| Some(crate::observe::needs(key, object))) {
            kinds.extend(needs.kinds);
            secrets.extend(needs.secrets);
        }
        lock(&self.providers).retain(|kind, _| kinds.contains(kind));
        lock(&self.secrets).retain(|secret, _| secrets.contains(secret));
        let is_empty = self.objects.keys().is_empty();
        lock(&self.links).retain(|key, _| match key {
            WorkloadKey::Management => !is_empty,
            WorkloadKey::Kubeconfig { secret, .. } => secrets.contains(secret),
        });
    }

    /// The version of Cluster API, once it is known.
    pub(crate) fn capi(&self) -> Option<CapiVersion> {
        *lock(&self.capi)
    }

    /// What is remembered of an object.
    pub(crate) fn remember<R>(&self, key: &ObjectKey, act: impl FnOnce(&mut Memory) -> R) -> R {
        act(lock(&self.memories).entry(key.clone()).or_default())
    }

    /// Whether the news of an object are of its status alone, while it waits after a failure. Then it is what we wrote
    /// ourselves, and have had no answer to: to act upon it would be to write again, without an end and without a pause.
    fn is_echo(&self, key: &ObjectKey) -> bool {
        let Some(object) = self.objects.view(key) else { return false };
        self.remember(key, |memory| {
            let is_known = memory.hear(&object.view, object.force_reconcile.as_deref());
            is_known && memory.failures.count > 0
        })
    }

    /// What is remembered of an object, if anything is.
    pub(crate) fn recall<R>(&self, key: &ObjectKey, look: impl FnOnce(&Memory) -> R) -> Option<R> {
        lock(&self.memories).get(key).map(|memory| look(memory))
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        lock(&self.memories).remove(key);
        self.forget_node(key);
        self.close_unused();
    }

    /// All shelves that every decision needs, and what is wrong with them.
    pub(crate) fn condition(&self) -> Condition {
        let conditions = [
            self.objects.condition(),
            self.namespaces.condition(),
            self.machines.condition(),
            self.clusters.condition(),
        ];
        let worst = |condition: &Condition| match condition {
            Condition::Filling => 2,
            Condition::Failing(_) => 1,
            Condition::Filled => 0,
        };
        conditions.into_iter().max_by_key(worst).unwrap_or(Condition::Filling)
    }

    pub(crate) fn api(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }

    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    pub(crate) fn api_in(&self, scope: &Scope, resource: &ApiResource) -> Api<DynamicObject> {
        match scope {
            Some(namespace) => self.api(namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Notes which node a Machine has, so that news of the node find its object.
    fn note_node(&self, machine: &ObjectKey) {
        let Some(owner) = owner(machine) else { return };
        if let Some(node) = self.machines.view(machine).and_then(|machine| machine.node) {
            let mut users_of_node = lock(&self.users_of_node);
            let users = users_of_node.entry(node).or_default();
            if !users.contains(&owner) {
                // Nearly always one, and room for no more.
                users.reserve_exact(1);
                users.push(owner);
            }
        } else if self.objects.view(&owner).is_none() {
            self.forget_node(&owner);
        }
    }

    /// Forgets which nodes an object had, unless its Machine is still there: at the start the Machine may be known
    /// before the object is, which is then not gone but on its way.
    fn forget_node(&self, key: &ObjectKey) {
        if self.machines.view(&key.beside(names::machine(&key.name))).is_none() {
            lock(&self.users_of_node).retain(|_, users| {
                users.retain(|user| user != key);
                !users.is_empty()
            });
        }
    }

    fn tell(&self, key: ObjectKey, cause: Cause) {
        // Nobody listens any more only when everything ends.
        let _ = self.changes.send((key, cause));
    }

    fn tell_owner(&self, object: &ObjectKey, cause: Cause) {
        if let Some(key) = owner(object) {
            self.tell(key, cause);
        }
    }

    fn tell_all(&self, cause: Cause) {
        self.tell_where(cause, |_, _| true);
    }

    fn tell_where(&self, cause: Cause, concerns: impl Fn(&ObjectKey, &ObjectFacts) -> bool) {
        let keys = self.objects.select(|key, object| concerns(key, object).then(|| key.clone()));
        for key in keys {
            self.tell(key, cause);
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}

/// The `ScheduledMachine` whose name an object's name was made from.
fn owner(object: &ObjectKey) -> Option<ObjectKey> {
    let suffixes = [names::machine(""), names::bootstrap(""), names::infrastructure("")];
    let name = suffixes.iter().find_map(|suffix| object.name.strip_suffix(suffix.as_str()))?;
    Some(object.beside(name))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one insertion or removal: a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
