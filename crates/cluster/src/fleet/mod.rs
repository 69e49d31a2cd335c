//! Everything that is known of the clusters, and the watches that keep it known.

mod tidy;
mod watches;

use crate::cause::Cause;
use crate::connection::Connection;
use crate::key::ObjectKey;
use crate::kinds::Kinds;
use crate::kubeconfig::{self, SecretFacts};
use crate::memory::Memory;
use crate::observe::node_key;
use crate::project::{ClusterFacts, MachineFacts, ObjectFacts, ProviderFacts};
use crate::render::CapiVersion;
use crate::shelf::{Condition, Scope, Shelf};
use crate::workload::{Link, TellNode, WorkloadKey};
use five_spot_api::names;
use five_spot_core::ProviderKind;
use five_spot_core::world::{NodeName, PauseLevel, Policy};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use std::collections::BTreeMap;
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
    untidy: Notify,
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
