//! Everything that is known of the clusters, and the watches that keep it known.

use super::secrets::NamespaceSecrets;
use crate::cache::cause::Cause;
use crate::cache::memory::Memory;
use crate::cache::project::{ClusterFacts, MachineFacts, ObjectFacts, ProviderFacts};
use crate::cache::store::{Condition, Scope, Shelf};
use crate::cache::watch::Origin;
use crate::cache::workload::{Link, TellNode, WorkloadKey};
use crate::transport::connection::Connection;
use crate::transport::key::ObjectKey;
use crate::transport::kinds::Kinds;
use crate::transport::kubeconfig::{self, SecretFacts};
use crate::view::observe::{node_key, spec_workload, workload_of};
use crate::view::render::CapiVersion;
use five_spot_api::names;
use five_spot_core::ProviderKind;
use five_spot_core::world::{NodeName, PauseLevel, Policy};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Everything that is known. Clones are the same fleet.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) connection: Connection,
    pub(crate) client: Client,
    /// The management cluster, for the log lines of its watches.
    pub(super) origin: Origin,
    pub(crate) policy: Policy,
    pub(crate) instance: String,
    pub(crate) kinds: Kinds,
    pub(crate) objects: Shelf<ObjectFacts>,
    pub(crate) machines: Shelf<MachineFacts>,
    pub(crate) clusters: Shelf<ClusterFacts>,
    pub(crate) namespaces: Shelf<Option<PauseLevel>>,
    pub(super) capi: Mutex<Option<CapiVersion>>,
    pub(super) providers: Mutex<BTreeMap<ProviderKind, Watched<ProviderFacts>>>,
    /// By namespace.
    pub(super) secrets: Mutex<BTreeMap<Arc<str>, NamespaceSecrets>>,
    pub(super) links: Mutex<BTreeMap<WorkloadKey, Arc<Link>>>,
    /// Which objects have, or had, which node.
    pub(super) users_of_node: Mutex<BTreeMap<NodeName, Vec<ObjectKey>>>,
    /// Boxed, because a map has room for nearly twice as many as it holds.
    pub(super) memories: Mutex<BTreeMap<ObjectKey, Box<Memory>>>,
    /// How often this instance has become the leader; 0 without an election.
    term: AtomicU64,
    pub(super) scopes: Vec<Scope>,
    pub(crate) management_nodes: Vec<String>,
    pub(super) untidy: Notify,
    changes: UnboundedSender<(ObjectKey, Cause)>,
    pub(super) stop: CancellationToken,
}

pub(super) struct Watched<V> {
    pub(super) shelf: Shelf<V>,
    pub(super) _ends_with_us: DropGuard,
}

/// How a fleet is watched.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// How the controller was told to behave.
    pub policy: Policy,
    /// The namespaces to look after; empty: all.
    pub namespaces: Vec<String>,
    /// The namespaces whose Nodes may be in the management cluster itself.
    pub management_nodes: Vec<String>,
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
            origin: Origin::management(),
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
            term: AtomicU64::new(0),
            scopes,
            management_nodes: settings.management_nodes,
            untidy: Notify::new(),
            changes,
            stop: stop.child_token(),
            connection,
            client,
        });
        let fleet = Self { inner };
        fleet.watch_namespaces();
        fleet.watch_cluster_api();
        fleet.watch_objects();
        fleet.keep_tidy();
        Ok(fleet)
    }

    /// Begins a new term as the leader: the first decision about every object needs facts that the API server has
    /// confirmed, because the caches may be older than the last write of the leader before. What was remembered of an
    /// earlier term is forgotten.
    pub fn begin_term(&self) {
        let inner = &self.inner;
        inner.objects.read_latest();
        inner.machines.read_latest();
        for watched in lock(&inner.providers).values() {
            watched.shelf.read_latest();
        }
        inner.term.fetch_add(1, Ordering::SeqCst);
        lock(&inner.memories).clear();
    }

    /// The facts about an object have been confirmed since the term began.
    pub fn confirmed(&self, key: &ObjectKey) {
        let term = self.inner.term();
        if term > 0 {
            self.inner.remember(key, |memory| memory.confirmed_in_term = term);
        }
    }

    /// Every object there is, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.inner.objects.keys()
    }
}

impl Inner {
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
                    .workload(kubeconfig, &name.to_string())
                    .await
                    .map_err(|error| format!("the kubeconfig in Secret {name} cannot be used: {error}"))?
            }
            (WorkloadKey::Kubeconfig { .. } | WorkloadKey::Management, _) => self.client.clone(),
        };
        let origin = match key {
            WorkloadKey::Management => self.origin.clone(),
            WorkloadKey::Kubeconfig { secret, .. } => Origin::workload(&secret.to_string()),
        };
        let (tell_node, tell_users) = (self.tell_node(key), self.tell_users(key));
        let link = Link::open(client, origin, secret.cloned(), &self.stop, tell_node, tell_users);
        lock(&self.links).insert(key.clone(), link.clone());
        Ok(link)
    }

    /// The link to a cluster, if it is open.
    pub(crate) fn open_link(&self, key: &WorkloadKey) -> Option<Arc<Link>> {
        lock(&self.links).get(key).cloned()
    }

    /// Whether the owner of a node wants it back. A Node of the same name in another cluster is another node.
    pub(crate) fn is_reclaimed(&self, cluster: &WorkloadKey, node: &NodeName) -> bool {
        let there = self.open_link(cluster).and_then(|link| link.nodes.view(&node_key(node)));
        there.is_some_and(|node| node.reclaim.is_some())
    }

    /// Tells the objects whose Node, in this cluster, something has happened to.
    pub(crate) fn tell_node(self: &Arc<Self>, cluster: &WorkloadKey) -> TellNode {
        let (fleet, cluster) = (Arc::downgrade(self), cluster.clone());
        Arc::new(move |node, cause| {
            let Some(fleet) = fleet.upgrade() else { return };
            let users = lock(&fleet.users_of_node).get(node).cloned().unwrap_or_default();
            for key in users.into_iter().filter(|key| fleet.is_in(key, &cluster)) {
                fleet.tell(key, cause);
            }
        })
    }

    /// Tells the objects whose Nodes are in this cluster.
    fn tell_users(self: &Arc<Self>, cluster: &WorkloadKey) -> Arc<dyn Fn() + Send + Sync> {
        let (fleet, cluster) = (Arc::downgrade(self), cluster.clone());
        Arc::new(move || {
            if let Some(fleet) = fleet.upgrade() {
                fleet.tell_where(Cause::Watch, |key, object| fleet.may_use(key, object, &cluster));
            }
        })
    }

    /// Whether the Node of an object is in this cluster, as far as its own words tell.
    fn is_in(&self, key: &ObjectKey, cluster: &WorkloadKey) -> bool {
        self.objects.view(key).is_some_and(|object| self.may_use(key, &object, cluster))
    }

    fn may_use(&self, key: &ObjectKey, object: &ObjectFacts, cluster: &WorkloadKey) -> bool {
        match cluster {
            // Where no Secret is found, an object whose operator allows it is here.
            WorkloadKey::Management => self.allows_management_nodes(&key.namespace),
            WorkloadKey::Kubeconfig { .. } => {
                workload_of(key, object) == *cluster || spec_workload(key, object).as_ref() == Some(cluster)
            }
        }
    }

    /// The term of this leader; 0 without an election.
    pub(crate) fn term(&self) -> u64 {
        self.term.load(Ordering::SeqCst)
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
    pub(super) fn is_echo(&self, key: &ObjectKey) -> bool {
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

    pub(crate) fn tell(&self, key: ObjectKey, cause: Cause) {
        // Nobody listens any more only when everything ends.
        let _ = self.changes.send((key, cause));
    }

    pub(super) fn tell_owner(&self, object: &ObjectKey, cause: Cause) {
        if let Some(key) = owner(object) {
            self.tell(key, cause);
        }
    }

    pub(super) fn tell_all(&self, cause: Cause) {
        self.tell_where(cause, |_, _| true);
    }

    pub(super) fn tell_where(&self, cause: Cause, concerns: impl Fn(&ObjectKey, &ObjectFacts) -> bool) {
        let keys = self.objects.select(|key, object| concerns(key, object).then(|| key.clone()));
        for key in keys {
            self.tell(key, cause);
        }
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}

/// The `ScheduledMachine` whose name an object's name was made from.
pub(super) fn owner(object: &ObjectKey) -> Option<ObjectKey> {
    let suffixes = [names::machine(""), names::bootstrap(""), names::infrastructure("")];
    let name = suffixes.iter().find_map(|suffix| object.name.strip_suffix(suffix.as_str()))?;
    Some(object.beside(name))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one insertion or removal: a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
