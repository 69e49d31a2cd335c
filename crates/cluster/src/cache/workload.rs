//! Links to the clusters in which Nodes live. Each has a client and watches of its own, so that a cluster that is broken
//! or hangs delays no other.

use crate::cache::change_cause::ChangeCause;
use crate::cache::drain_rules::Labels;
use crate::cache::lock::lock;
use crate::cache::project::{self, AgentConfigFacts, AgentPodFacts, NodeFacts, PodFacts};
use crate::cache::reachability::Reachability;
use crate::cache::room::Room;
use crate::cache::store::{Store, SyncState};
use crate::cache::watch::{WatchSignal, WatchSource, fill};
use crate::transport::core_kinds::{Node, Pod};
use crate::transport::credential::UsedCredential;
use crate::transport::error::{CallError, ReadFailure, is_absent, or_absent};
use crate::transport::http::{Budget, Share};
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::SecretFacts;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::transport::valid_name::is_identifier;
use five_spot_api::names::label;
use five_spot_api::reclaim::{AGENT_SELECTOR, CONFIG_NAMESPACE, REQUESTED, REQUESTED_TRUE};
use five_spot_core::world::{NodeName, PodId};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client, ResourceExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The pods of one node that are kept. A kubelet runs 110 by default; 500 is the most that is in use anywhere.
const MOST_PODS: usize = 1000;

/// `DaemonSet`s, and namespaces, that are remembered of one cluster while its nodes are drained. A cluster can invent pods of
/// new ones without end.
const MOST_LOOKED_UP: usize = 10_000;

/// Bytes that a namespace takes besides its name and labels, and a label besides its key and value.
const NAMESPACE_BYTES: usize = 256;
const LABEL_BYTES: usize = 2 * size_of::<String>();

/// A cluster in which Nodes live: its client, its stores and its watches.
pub(crate) struct WorkloadLink {
    pub(crate) client: Client,
    source: WatchSource,
    pub(crate) made_from: MadeFrom,
    /// For what is kept of its objects; absent if it is trusted.
    budget: Option<Budget>,
    pub(crate) nodes: Store<NodeFacts>,
    pub(crate) agent_configs: Store<AgentConfigFacts>,
    /// The UID of its `kube-system` namespace, which identifies the cluster. Absent until it has been read, and where
    /// that is forbidden.
    identity: Arc<Mutex<Option<String>>>,
    reachability: Arc<Reachability>,
    pods: Mutex<BTreeMap<NodeName, PodWatch<PodFacts>>>,
    /// The pods of the reclaim agents, while a Node of the cluster needs one.
    agent_pods: Mutex<Option<PodWatch<AgentPodFacts>>>,
    daemon_sets: Mutex<BTreeMap<ObjectKey, bool>>,
    namespace_labels: Mutex<BTreeMap<String, KnownLabels>>,
    /// False if the stores are filled by single reads.
    is_watched: bool,
    stop: CancellationToken,
    _ends_watch: DropGuard,
}

/// The kubeconfig that a link was made from; empty for the management cluster.
pub(crate) struct MadeFrom {
    /// The Secret. A changed Secret means a new link.
    pub(crate) secret: Option<SecretFacts>,
    /// Its credentials, if they expire: reported while the link exists.
    pub(crate) _credential: Option<UsedCredential>,
}

/// The labels of a namespace, and their share of what may be kept of the cluster.
struct KnownLabels {
    labels: Labels,
    _share: Option<Share>,
}

struct PodWatch<V> {
    /// The objects whose node is drained. There are two if one machine is lent twice.
    users: BTreeSet<ObjectKey>,
    store: Store<V>,
    _ends_watch: DropGuard,
}

/// A callback for a change of a Node.
pub(crate) type NotifyNode = Arc<dyn Fn(&NodeName, ChangeCause) + Send + Sync>;

/// A callback for a change of the status of a watch.
pub(crate) type NotifySyncState = Arc<dyn Fn() + Send + Sync>;

impl WorkloadLink {
    /// Opens a link. With callbacks its watches are started; `stop` ends them with everything else. With a budget no more is
    /// kept of its objects than that.
    pub(crate) fn open(
        client: Client,
        source: WatchSource,
        made_from: MadeFrom,
        budget: Option<Budget>,
        stop: &CancellationToken,
        notify: Option<(NotifyNode, NotifySyncState)>,
    ) -> Arc<Self> {
        let stop = stop.child_token();
        let link = Arc::new(Self {
            nodes: Store::new([None]).within(budget.as_ref().map(Room::new)),
            agent_configs: Store::new([None]).within(budget.as_ref().map(Room::new)),
            budget,
            identity: Arc::default(),
            reachability: Arc::default(),
            pods: Mutex::new(BTreeMap::new()),
            agent_pods: Mutex::default(),
            daemon_sets: Mutex::new(BTreeMap::new()),
            namespace_labels: Mutex::new(BTreeMap::new()),
            _ends_watch: stop.clone().drop_guard(),
            client,
            source,
            made_from,
            is_watched: notify.is_some(),
            stop,
        });
        if let Some((notify, notify_sync_state)) = notify {
            link.watch_nodes(notify.clone(), notify_sync_state);
            link.watch_agent_configs(notify);
        }
        link
    }

    /// Reads the identity of the cluster, these Nodes and the ConfigMaps of the agents, for a link without watches.
    pub(super) async fn read_once(&self, nodes: &[NodeName]) {
        let reading = async {
            self.read_nodes(nodes).await?;
            self.read_agent_configs().await;
            Ok::<(), kube::Error>(())
        };
        let failure = match tokio::time::timeout(READ_ONCE_WITHIN, reading).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => ReadFailure::of(&error),
            Err(_) => ReadFailure::late(READ_ONCE_WITHIN),
        };
        // Nodes that were read stay known.
        self.nodes.fail(failure);
    }

    /// Reads the ConfigMaps of the agents. As with a watch, a failure leaves the store incomplete.
    async fn read_agent_configs(&self) {
        let api: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        if let Ok(found) = api.list(&ListParams::default().labels(label::SCHEDULED_MACHINE)).await {
            self.agent_configs.mark_synced();
            for object in &found.items {
                let version = object.resource_version().unwrap_or_default();
                self.agent_configs.put(ObjectKey::of(object), &version, project::agent_config(object));
            }
        }
    }

    async fn read_nodes(&self, nodes: &[NodeName]) -> Result<(), kube::Error> {
        *lock(&self.identity) = read_identity(&self.client).await?;
        let api: Api<Node> = Api::all(self.client.clone());
        for name in nodes {
            if let Some(node) = or_absent(api.get(name.as_str()).await)? {
                let version = node.resource_version().unwrap_or_default();
                self.nodes.put(node_key(name), &version, project::node(&node));
            }
        }
        self.nodes.mark_synced();
        Ok(())
    }

    fn watch_nodes(&self, notify: NotifyNode, notify_sync_state: NotifySyncState) {
        let (source, store, stop) = (self.source.clone(), self.nodes.clone(), self.stop.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (client, identity) = (self.client.clone(), self.identity.clone());
        let reachability = self.reachability.clone();
        tokio::spawn(async move {
            // The Nodes count only once the cluster is identified.
            stop.run_until_cancelled(identify(&client, &identity, &store, &notify_sync_state)).await;
            let ignored = IgnoredRequests::default();
            let handle = |signal: WatchSignal| match signal {
                WatchSignal::Changed(key) => {
                    ignored.check(&source, &key, store.view(&key).as_ref());
                    notify(&NodeName::from(&*key.name), ChangeCause::Node);
                }
                WatchSignal::SyncState => notify_sync_state(),
                WatchSignal::Failed => reachability.note_failure(),
                WatchSignal::NotServed => {}
            };
            let filling = fill(&source, nodes, Config::default(), None, &store, project::node, handle);
            // A cluster that no longer permits this is as good as one that does not respond: its Nodes are unknown.
            let monitoring = reachability.monitor(
                || async {
                    let nodes: Api<Node> = Api::all(client.clone());
                    nodes.list_metadata(&ListParams::default().limit(1)).await.is_ok()
                },
                || notify_sync_state(),
            );
            stop.run_until_cancelled(async { tokio::join!(filling, monitoring) }).await;
        });
    }

    fn watch_agent_configs(&self, notify: NotifyNode) {
        let (source, store, stop) = (self.source.clone(), self.agent_configs.clone(), self.stop.clone());
        let configs: Api<PartialObjectMeta<ConfigMap>> =
            Api::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        tokio::spawn(async move {
            let config = Config::default().labels(label::SCHEDULED_MACHINE);
            let handle = |signal: WatchSignal| {
                if let WatchSignal::Changed(key) = signal {
                    notify(&project::agent_node(&key.name), ChangeCause::AgentConfig);
                }
            };
            let filling = fill(&source, configs, config, None, &store, project::agent_config, handle);
            stop.run_until_cancelled(filling).await;
        });
    }

    /// The UID of the `kube-system` namespace, which identifies the cluster, if it can be read.
    pub(crate) fn identity(&self) -> Option<String> {
        lock(&self.identity).clone()
    }

    /// True if the cluster had been reached and has not responded for minutes: what the stores hold may be wrong by now.
    pub(crate) fn is_lost(&self) -> bool {
        self.reachability.is_lost()
    }

    /// Identifies the cluster again: another one may answer at its address now.
    pub(crate) async fn identify_again(&self) -> Result<(), CallError> {
        let uid = read_identity(&self.client).await.map_err(|error| {
            let namespace = ObjectKey::new("", IDENTITY_NAMESPACE);
            CallError::new(Operation::new(Verb::Get, TargetKind::Namespace, namespace), error)
        })?;
        *lock(&self.identity) = uid;
        Ok(())
    }

    /// Watches the pods of a node from now on, for this object.
    pub(crate) fn watch_pods(&self, node: &NodeName, user: &ObjectKey, notify: &NotifyNode) {
        let mut watches = lock(&self.pods);
        let watch = watches.entry(node.clone()).or_insert_with(|| self.open_pod_watch(node, notify.clone()));
        if !watch.users.contains(user) {
            watch.users.insert(user.clone());
        }
    }

    /// The pods of a node, if they are watched.
    pub(crate) fn watched_pods(&self, node: &NodeName) -> Option<Store<PodFacts>> {
        lock(&self.pods).get(node).map(|watch| watch.store.clone())
    }

    /// Ends the watch of the pods of a node, unless another object needs it.
    pub(crate) fn forget_pods(&self, node: &NodeName, user: &ObjectKey) {
        let mut watches = lock(&self.pods);
        let Some(watch) = watches.get_mut(node) else { return };
        watch.users.remove(user);
        if !watch.users.is_empty() {
            return;
        }
        if watches.remove(node).is_some() && watches.is_empty() {
            self.forget_lookups();
        }
    }

    fn open_pod_watch(&self, node: &NodeName, notify: NotifyNode) -> PodWatch<PodFacts> {
        let store = Store::new([None]).within(self.budget.as_ref().map(Room::new));
        let stop = self.stop.child_token();
        let users = BTreeSet::new();
        let watch = PodWatch { users, store: store.clone(), _ends_watch: stop.clone().drop_guard() };
        if !self.is_watched {
            store.mark_synced();
            return watch;
        }
        let pods: Api<Pod> = Api::all(self.client.clone());
        let (node, source) = (node.clone(), self.source.with_most_objects(MOST_PODS));
        tokio::spawn(async move {
            let config = Config::default().fields(&format!("spec.nodeName={node}"));
            let handle = |signal: WatchSignal| match signal {
                WatchSignal::Changed(_) | WatchSignal::SyncState => notify(&node, ChangeCause::Pod),
                WatchSignal::NotServed | WatchSignal::Failed => {}
            };
            let filling = fill(&source, pods, config, None, &store, project::pod, handle);
            stop.run_until_cancelled(filling).await;
        });
        watch
    }

    /// Watches the pods of the reclaim agents from now on. No decision depends on them, so a change wakes no object.
    pub(crate) fn watch_agent_pods(&self) {
        if self.is_watched {
            lock(&self.agent_pods).get_or_insert_with(|| self.open_agent_pod_watch());
        }
    }

    /// The pods of the reclaim agents, if they are watched and have been listed.
    pub(crate) fn agent_pods(&self) -> Option<Vec<AgentPodFacts>> {
        let store = lock(&self.agent_pods).as_ref()?.store.clone();
        let is_listed = matches!(store.sync_state(), SyncState::Synced);
        is_listed.then(|| store.select(|_, pod| Some(pod.clone())))
    }

    /// Ends the watch of the pods of the reclaim agents.
    pub(super) fn forget_agent_pods(&self) {
        lock(&self.agent_pods).take();
    }

    fn open_agent_pod_watch(&self) -> PodWatch<AgentPodFacts> {
        let store = Store::new([None]).within(self.budget.as_ref().map(Room::new));
        let stop = self.stop.child_token();
        let users = BTreeSet::new();
        let watch = PodWatch { users, store: store.clone(), _ends_watch: stop.clone().drop_guard() };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        let source = self.source.clone();
        tokio::spawn(async move {
            let config = Config::default().labels(AGENT_SELECTOR);
            let filling = fill(&source, pods, config, None, &store, project::agent_pod, |_| {});
            stop.run_until_cancelled(filling).await;
        });
        watch
    }

    /// True if a `DaemonSet` exists; `None` if it has not been looked up.
    pub(crate) fn daemon_set(&self, key: &ObjectKey) -> Option<bool> {
        lock(&self.daemon_sets).get(key).copied()
    }

    pub(crate) fn remember_daemon_set(&self, key: ObjectKey, exists: bool) {
        remember(&mut lock(&self.daemon_sets), key, exists);
    }

    /// The labels of a namespace; `None` if it has not been looked up.
    pub(crate) fn namespace_labels(&self, namespace: &str) -> Option<Labels> {
        lock(&self.namespace_labels).get(namespace).map(|known| known.labels.clone())
    }

    /// Remembers the labels of a namespace. One whose labels there is no room for counts as one without, as with pods.
    pub(crate) fn remember_namespace_labels(&self, namespace: String, labels: Labels) {
        let of_labels: usize = labels.iter().map(|(key, value)| LABEL_BYTES + key.len() + value.len()).sum();
        let bytes = NAMESPACE_BYTES + namespace.len() + of_labels;
        let mut share = self.budget.as_ref().map(Budget::share);
        let has_room = share.as_mut().is_none_or(|share| share.grow(bytes).is_ok());
        let known = if has_room {
            KnownLabels { labels, _share: share }
        } else {
            KnownLabels { labels: Labels::new(), _share: None }
        };
        remember(&mut lock(&self.namespace_labels), namespace, known);
    }

    /// Notes a refused eviction. Returns how often it was refused for the same reason since that was last logged, if it is to
    /// be logged now.
    pub(crate) fn note_refused_eviction(&self, pod: &PodId, reason: &str) -> Option<u64> {
        self.source.note_refused_eviction(&format!("{pod}: {reason}"))
    }

    /// Forgets what was looked up for a drain, so that the next one looks again.
    fn forget_lookups(&self) {
        lock(&self.daemon_sets).clear();
        lock(&self.namespace_labels).clear();
    }
}

/// Remembers something that was looked up. If there is too much of it already, all of that is looked up again.
fn remember<K: Ord, V>(known: &mut BTreeMap<K, V>, key: K, value: V) {
    if known.len() >= MOST_LOOKED_UP && !known.contains_key(&key) {
        known.clear();
    }
    known.insert(key, value);
}

/// Reclaim annotations with a value other than the valid one. Each is logged once.
#[derive(Default)]
struct IgnoredRequests {
    logged: Mutex<BTreeMap<ObjectKey, Box<str>>>,
}

impl IgnoredRequests {
    fn check(&self, source: &WatchSource, key: &ObjectKey, node: Option<&NodeFacts>) {
        if let Some((value, repeated)) = self.note(source, key, node) {
            tracing::warn!(
                node = &*key.name,
                value = &*value,
                repeated,
                "Annotation {REQUESTED} is ignored: only \"{REQUESTED_TRUE}\" asks for a node"
            );
        }
    }

    /// Notes the value of a Node. Returns it if it is to be logged now: the cluster can change it as often as it likes.
    fn note(
        &self,
        source: &WatchSource,
        key: &ObjectKey,
        node: Option<&NodeFacts>,
    ) -> Option<(Box<str>, u64)> {
        let mut logged = lock(&self.logged);
        let Some(value) = node.and_then(|node| node.ignored_request.clone()) else {
            logged.remove(key);
            return None;
        };
        if logged.get(key) == Some(&value) {
            return None;
        }
        logged.insert(key.clone(), value.clone());
        let repeated = source.note(&format!("ignored request of {}: {value}", key.name))?;
        Some((value, repeated))
    }
}

/// The namespace whose UID tells one cluster from another: it is made with the cluster, and cannot be deleted.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// The time after which a failed identification is retried.
const IDENTIFY_AGAIN: Duration = Duration::from_secs(5);

/// The time limit of a person's single look at a cluster that may hang.
pub(crate) const READ_ONCE_WITHIN: Duration = Duration::from_secs(4);

/// Identifies the cluster, and retries until the API server has answered. A failure counts as one of the store of Nodes.
async fn identify(
    client: &Client,
    identity: &Mutex<Option<String>>,
    nodes: &Store<NodeFacts>,
    notify_sync_state: &NotifySyncState,
) {
    loop {
        match read_identity(client).await {
            Ok(uid) => {
                *lock(identity) = uid;
                return;
            }
            Err(error) => {
                if nodes.fail(ReadFailure::of(&error)) {
                    notify_sync_state();
                }
                tokio::time::sleep(IDENTIFY_AGAIN).await;
            }
        }
    }
}

/// The UID of the namespace; `None` if it may not be read, does not exist or has no valid UID.
async fn read_identity(client: &Client) -> Result<Option<String>, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_metadata(IDENTITY_NAMESPACE).await {
        // It enters status and messages. One that is no UID identifies nothing.
        Ok(namespace) => Ok(namespace.metadata.uid.filter(|uid| !uid.is_empty() && is_identifier(uid))),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The key of a Node, which has no namespace.
pub(crate) fn node_key(name: &NodeName) -> ObjectKey {
    ObjectKey::new("", name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::{NamespaceShares, Transport};
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn values_that_change_without_end_do_not_fill_the_log() {
        let source = WatchSource::workload("shop/demo", Arc::default());
        let ignored = IgnoredRequests::default();
        let node = |value: &str| {
            let annotations = json!({REQUESTED: value});
            let object = json!({"metadata": {"name": "a", "annotations": annotations}});
            project::node(&serde_json::from_value(object).expect("a Node"))
        };
        let is_logged = |number: &i32| {
            let key = ObjectKey::new("", format!("node-{}", number % 10));
            ignored.note(&source, &key, Some(&node(&number.to_string()))).is_some()
        };
        let lines = (0..1000).filter(is_logged).count();
        assert!((1..=64).contains(&lines), "{lines} lines");
    }

    /// A link whose cluster answers nothing.
    fn link() -> Arc<WorkloadLink> {
        let service = tower::service_fn(move |_| {
            let body = http_body_util::Full::new(bytes::Bytes::new());
            async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        });
        WorkloadLink::open(
            Transport::new("test").workload("shop/demo").client_over(service),
            WatchSource::workload("shop/demo", Arc::default()),
            MadeFrom { secret: None, _credential: None },
            Some(Budget::new(100_000)),
            &CancellationToken::new(),
            None,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn refused_evictions_of_all_clusters_share_a_bound() {
        let share = NamespaceShares::new(8).of("shop");
        let is_logged = |number: &usize| {
            let source = WatchSource::workload(&format!("shop/{number}"), share.warnings());
            let source = source.with_refused_evictions(share.refused_evictions());
            source.note_refused_eviction("shop/web-0: blocked").is_some()
        };
        assert_eq!((0..100).filter(is_logged).count(), 64);
        assert_eq!(share.warnings().note("unreachable"), Some(0), "they hide no other warnings");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_evictions_do_not_fill_the_log() {
        let link = link();
        let pod = |number: usize| PodId {
            namespace: "shop".to_owned(),
            name: format!("web-{number}"),
            uid: five_spot_core::world::Uid::from(number.to_string()),
        };
        let is_logged = |number: &usize| link.note_refused_eviction(&pod(*number), "blocked").is_some();
        assert_eq!((0..10).filter(is_logged).count(), 10);
        assert_eq!((0..10).filter(is_logged).count(), 0, "the same within a minute");
        let lines = (0..1000).filter(is_logged).count();
        assert!(lines <= 64, "{lines} lines");
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(link.note_refused_eviction(&pod(0), "blocked"), Some(2));
    }

    #[tokio::test]
    async fn what_is_looked_up_for_a_drain_is_bounded() {
        let link = link();
        for number in 0..=MOST_LOOKED_UP {
            link.remember_daemon_set(ObjectKey::new("a", number.to_string()), true);
            link.remember_namespace_labels(number.to_string(), Labels::new());
        }
        assert_eq!(lock(&link.daemon_sets).len(), 1, "all are looked up again");
        assert_eq!(lock(&link.namespace_labels).len(), 1);
        let labels = Labels::from([("key".to_owned(), "x".repeat(40_000))]);
        for name in ["a", "b", "c"] {
            link.remember_namespace_labels(name.to_owned(), labels.clone());
        }
        assert_eq!(link.namespace_labels("b"), Some(labels));
        assert_eq!(link.namespace_labels("c"), Some(Labels::new()), "there is no room for its labels");
    }

    #[tokio::test]
    async fn an_invalid_uid_identifies_no_cluster() {
        let answer = |uid: &str| json!({"metadata": {"name": IDENTITY_NAMESPACE, "uid": uid}}).to_string();
        for (uid, expected) in
            [("7c1d", Some("7c1d")), ("", None), ("a\nb", None), (&*"x".repeat(100_000), None)]
        {
            let body = answer(uid);
            let service = tower::service_fn(move |_| {
                let body = http_body_util::Full::new(bytes::Bytes::from(body.clone()));
                async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
            });
            let client = Transport::new("test").workload("shop/demo").client_over(service);
            assert_eq!(read_identity(&client).await.expect("an answer").as_deref(), expected);
        }
    }
}
