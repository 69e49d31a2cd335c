//! Everything that is known of the clusters: the stores of the management cluster, the links to workload clusters, and
//! what is remembered of each object. The watches that fill the stores are in [`super::watches`].

use crate::cache::change_cause::ChangeCause;
use crate::cache::changes::ChangeSender;
use crate::cache::claims::Claims;
use crate::cache::lock::lock;
use crate::cache::memory::Memories;
use crate::cache::node_index::NodeIndex;
use crate::cache::project::{ClusterFacts, MachineFacts, NamespaceFacts, ObjectFacts, ProviderFacts};
use crate::cache::references::{WorkloadKey, owner, spec_workload, workload_of};
use crate::cache::secret_store::NamespaceSecrets;
use crate::cache::store::{Scope, Store};
use crate::cache::watch::WatchSource;
use crate::cache::workload::WorkloadLink;
use crate::transport::connection::Connection;
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{CapiVersion, Kinds};
use five_spot_api::names;
use five_spot_core::ProviderKind;
use five_spot_core::world::{NodeName, Policy, Uid};
use jiff::{SignedDuration, Timestamp};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// In the list of namespaces whose Nodes may be in the management cluster: every one. For a sandbox, which has only one
/// cluster; no flag accepts it.
pub const ANY_NAMESPACE: &str = "*";

/// The settings of a controller that concern its clusters.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The options of the controller that decisions depend on.
    pub policy: Policy,
    /// The namespaces to watch; empty: all.
    pub namespaces: Vec<String>,
    /// The namespaces whose Nodes may be in the management cluster itself.
    pub management_nodes: Vec<String>,
    /// The name of this instance in the events that it publishes.
    pub instance: String,
    /// The namespace of the controller: of the Leases that claim physical machines, and of annotations for the controller itself.
    pub controller_namespace: String,
}

/// The caches of the management cluster and of every workload cluster.
pub struct Caches {
    pub(crate) connection: Connection,
    pub(crate) client: Client,
    /// The management cluster, for the log lines of its watches.
    pub(crate) source: WatchSource,
    pub(crate) settings: ClusterSettings,
    pub(crate) kinds: Kinds,
    pub(crate) objects: Store<ObjectFacts>,
    pub(crate) machines: Store<MachineFacts>,
    pub(crate) clusters: Store<ClusterFacts>,
    pub(crate) namespaces: Store<NamespaceFacts>,
    pub(crate) memories: Memories,
    /// The claims on physical machines.
    pub(crate) claims: Claims,
    pub(super) capi: Mutex<Option<CapiVersion>>,
    pub(super) providers: Mutex<BTreeMap<ProviderKind, Watched<ProviderFacts>>>,
    /// By namespace.
    pub(super) secrets: Mutex<BTreeMap<Arc<str>, NamespaceSecrets>>,
    pub(super) links: Mutex<BTreeMap<WorkloadKey, Arc<WorkloadLink>>>,
    /// The namespaces in which a link was refused because there were too many.
    pub(super) refused_links: Mutex<BTreeSet<Arc<str>>>,
    pub(super) node_index: NodeIndex,
    /// The number of times that this instance has become the leader; 0 without an election.
    term: AtomicU64,
    pub(crate) scopes: Vec<Scope>,
    /// Notified when something may have become unused.
    pub(super) maybe_unused: Notify,
    changes: ChangeSender,
    /// False if the stores are filled by single reads, for one look at one object.
    pub(super) is_watched: bool,
    pub(super) stop: CancellationToken,
}

/// A store, and the watch that fills it for as long as this lives.
pub(super) struct Watched<V> {
    pub(super) store: Store<V>,
    pub(super) _ends_watch: DropGuard,
}

impl Caches {
    /// Empty caches, which nothing fills yet.
    pub(super) fn new(
        connection: Connection,
        settings: ClusterSettings,
        changes: ChangeSender,
        is_watched: bool,
        stop: &CancellationToken,
    ) -> Result<Self, kube::Error> {
        let client = connection.management()?;
        let scopes: Vec<Scope> = if settings.namespaces.is_empty() {
            vec![None]
        } else {
            settings.namespaces.iter().cloned().map(Some).collect()
        };
        Ok(Self {
            kinds: Kinds::new(client.clone()),
            source: WatchSource::management(),
            objects: Store::new(scopes.clone()),
            machines: Store::new(scopes.clone()),
            clusters: Store::new(scopes.clone()),
            // The namespace of the controller is no reason to wait: nothing but a brake needs it.
            namespaces: Store::new(scopes.clone()),
            memories: Memories::default(),
            claims: Claims::new(&settings.controller_namespace, connection.now()),
            capi: Mutex::new(None),
            providers: Mutex::default(),
            secrets: Mutex::default(),
            links: Mutex::default(),
            refused_links: Mutex::default(),
            node_index: NodeIndex::default(),
            term: AtomicU64::new(0),
            scopes,
            maybe_unused: Notify::new(),
            changes,
            is_watched,
            stop: stop.child_token(),
            settings,
            connection,
            client,
        })
    }

    /// Begins a new term as the leader: the first decision about every object needs facts that the API server has
    /// confirmed, because the caches may be older than the last write of the previous leader. What was remembered in an
    /// earlier term is forgotten.
    pub fn begin_term(&self) {
        self.objects.read_latest();
        self.machines.read_latest();
        for watched in lock(&self.providers).values() {
            watched.store.read_latest();
        }
        self.term.fetch_add(1, Ordering::SeqCst);
        self.memories.clear();
    }

    /// Demands that the first decision about an object is made on facts that the API server has confirmed: another instance
    /// may have changed it.
    pub fn confirm_first(&self, key: &ObjectKey) {
        if self.term() == 0 {
            // The first term of an instance that had nothing to confirm until now.
            self.begin_term();
        }
        self.memories.forget(key);
    }

    /// True if the facts about an object have been confirmed since this instance became the leader. Without an election
    /// there is nothing to confirm.
    pub fn is_confirmed_in_term(&self, key: &ObjectKey) -> bool {
        let confirmed = self.memories.read(key, |memory| memory.confirmed_in_term).unwrap_or(0);
        confirmed == self.term()
    }

    /// Notes that the facts about an object have been confirmed.
    pub(crate) fn note_confirmed(&self, key: &ObjectKey) {
        let term = self.term();
        if term > 0 {
            self.memories.update(key, |memory| memory.confirmed_in_term = term);
        }
    }

    /// The term of this leader; 0 without an election.
    pub(crate) fn term(&self) -> u64 {
        self.term.load(Ordering::SeqCst)
    }

    /// The namespaces to watch: those of the objects, and that of the controller.
    pub(crate) fn namespace_scopes(&self) -> Vec<Scope> {
        let own = Some(self.settings.controller_namespace.clone());
        let is_watched = self.scopes.iter().any(|scope| scope.is_none() || *scope == own);
        self.scopes.iter().cloned().chain((!is_watched).then_some(own)).collect()
    }

    /// The time until which the brake holds no removal, by the annotation on the namespace of the controller.
    pub fn allow_removals(&self) -> Option<Timestamp> {
        let own = ObjectKey::new("", self.settings.controller_namespace.as_str());
        self.namespaces.read(&own, |facts| facts.allow_removals).flatten()
    }

    /// The objects whose removal was not planned, and when each began; nothing while it is held.
    pub fn unplanned_removals(&self) -> Vec<(ObjectKey, Option<Timestamp>)> {
        self.objects.select(|key, object| Some((key.clone(), object.record.unplanned_removal?)))
    }

    /// The number of lent machines whose object is counted.
    pub fn lent(&self, counts: impl Fn(&ObjectKey) -> bool) -> usize {
        let machines = self.machines.keys();
        machines.iter().filter_map(owner).filter(|object| counts(object)).count()
    }

    /// True if the Machine of an object exists.
    pub fn is_lent(&self, object: &ObjectKey) -> bool {
        self.machines.has(&machine_key(object))
    }

    /// The difference between the clock of this process and that of the API server when that last answered.
    pub fn clock_skew(&self) -> Option<SignedDuration> {
        self.connection.transport().clock_skew()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.objects.keys()
    }

    /// True if there is such an object.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.objects.has(key)
    }

    /// The UID of an object.
    pub fn uid(&self, key: &ObjectKey) -> Option<Uid> {
        self.objects.read(key, |object| object.view.uid.clone())
    }

    /// Forgets an object that is gone. Watches that only it needed are closed a while later.
    pub fn forget(&self, key: &ObjectKey) {
        self.memories.forget(key);
        self.maybe_unused.notify_one();
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.connection.now()
    }

    /// The version of Cluster API, once it is known.
    pub(crate) fn capi(&self) -> Option<CapiVersion> {
        *lock(&self.capi)
    }

    /// The link to a cluster, if it is open.
    pub(crate) fn open_link(&self, key: &WorkloadKey) -> Option<Arc<WorkloadLink>> {
        lock(&self.links).get(key).cloned()
    }

    /// True if the Nodes of a namespace's machines may be in the management cluster itself.
    pub(crate) fn allows_management_nodes(&self, namespace: &str) -> bool {
        let allowed = &self.settings.management_nodes;
        allowed.iter().any(|allowed| allowed == namespace || allowed == ANY_NAMESPACE)
    }

    /// True if the Node of an object may be in this cluster.
    pub(super) fn may_use(&self, key: &ObjectKey, object: &ObjectFacts, cluster: &WorkloadKey) -> bool {
        match cluster {
            // Where no Secret is found, and the operator allows it, the Node is in the management cluster.
            WorkloadKey::Management => self.allows_management_nodes(&key.namespace),
            // The namespace first: this is asked of every object, and the rest takes a while.
            WorkloadKey::Kubeconfig { secret, .. } => {
                secret.namespace == key.namespace
                    && (workload_of(key, object) == *cluster
                        || spec_workload(key, object).as_ref() == Some(cluster))
            }
        }
    }

    /// Indexes the Nodes that an object has, by its Machine and by its status: a Node may outlive its Machine.
    pub(crate) fn index_nodes(&self, key: &ObjectKey) {
        let Some(object) = self.objects.view(key) else { return };
        let by_machine = self.machines.view(&machine_key(key)).and_then(|machine| machine.node);
        for node in [by_machine, object.record.node.clone()].into_iter().flatten() {
            for cluster in self.clusters_of(key, &object) {
                self.node_index.insert(&cluster, &node, key);
            }
        }
    }

    /// The clusters in which the Node of an object may be.
    pub(super) fn clusters_of(&self, key: &ObjectKey, object: &ObjectFacts) -> Vec<WorkloadKey> {
        let mut clusters = Vec::with_capacity(1);
        let management = self.allows_management_nodes(&key.namespace).then_some(WorkloadKey::Management);
        let by_object = [Some(workload_of(key, object)), spec_workload(key, object)].into_iter().flatten();
        for cluster in by_object.filter(|cluster| *cluster != WorkloadKey::Management).chain(management) {
            if !clusters.contains(&cluster) {
                clusters.push(cluster);
            }
        }
        clusters
    }

    /// True if an entry of the index is current: the object may use the cluster, and has the Node. An object that is not
    /// known yet while its Machine is will be listed in a moment.
    pub(super) fn is_indexed(&self, cluster: &WorkloadKey, node: &NodeName, key: &ObjectKey) -> bool {
        let by_machine = self.machines.view(&machine_key(key)).and_then(|machine| machine.node);
        self.objects.view(key).is_some_and(|object| {
            let has_node = by_machine.as_ref() == Some(node) || object.record.node.as_ref() == Some(node);
            has_node && self.may_use(key, &object, cluster)
        })
    }

    pub(crate) fn api(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }

    pub(crate) fn api_in(&self, scope: &Scope, resource: &ApiResource) -> Api<DynamicObject> {
        match scope {
            Some(namespace) => self.api(namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Reports that an object has to be reconciled.
    pub(crate) fn notify(&self, key: ObjectKey, cause: ChangeCause) {
        self.changes.send(key, cause);
    }

    pub(super) fn notify_owner(&self, object: &ObjectKey, cause: ChangeCause) {
        if let Some(key) = owner(object) {
            self.notify(key, cause);
        }
    }

    pub(super) fn notify_all(&self, cause: ChangeCause) {
        self.notify_where(cause, |_, _| true);
    }

    pub(super) fn notify_where(
        &self,
        cause: ChangeCause,
        concerns: impl Fn(&ObjectKey, &ObjectFacts) -> bool,
    ) {
        let keys = self.objects.select(|key, object| concerns(key, object).then(|| key.clone()));
        for key in keys {
            self.notify(key, cause);
        }
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}

/// The key of the Machine of an object.
pub(crate) fn machine_key(object: &ObjectKey) -> ObjectKey {
    object.beside(names::machine(&object.name))
}
