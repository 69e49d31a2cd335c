//! The clusters in which Nodes live: one link each, with a client of its own and its own watches, so that one that is
//! broken or hangs holds up nobody else.

use crate::cache::cause::Cause;
use crate::cache::drain_rules::Labels;
use crate::cache::fleet::lock;
use crate::cache::project::{self, AgentConfigFacts, NodeFacts, PodFacts};
use crate::cache::store::{Failure, Shelf};
use crate::cache::watch::{News, Origin, fill};
use crate::transport::error::{CallError, is_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::SecretFacts;
use five_spot_api::names::label;
use five_spot_api::reclaim::{CONFIG_NAMESPACE, REQUESTED, REQUESTED_TRUE};
use five_spot_core::world::NodeName;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The pods of one node that are kept. A kubelet runs 110 by default; 500 is the most that is in use anywhere.
const MOST_PODS: usize = 1000;

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkloadKey {
    /// The one in which the `ScheduledMachine`s are.
    Management,
    /// The one that the kubeconfig under a key of a Secret leads to.
    Kubeconfig { secret: ObjectKey, key: String },
}

/// A cluster that can be asked.
pub(crate) struct Link {
    pub(crate) client: Client,
    origin: Origin,
    /// What it was made from; another Secret means another link.
    pub(crate) made_from: Option<SecretFacts>,
    pub(crate) nodes: Shelf<NodeFacts>,
    pub(crate) agent_configs: Shelf<AgentConfigFacts>,
    /// The UID of its `kube-system` namespace: which cluster this really is. Absent until it has been read, and where
    /// that is forbidden.
    identity: Arc<Mutex<Option<String>>>,
    pods: Mutex<BTreeMap<NodeName, PodWatch>>,
    daemon_sets: Mutex<BTreeMap<ObjectKey, bool>>,
    namespace_labels: Mutex<BTreeMap<String, Labels>>,
    stop: CancellationToken,
    _ends_with_us: DropGuard,
}

struct PodWatch {
    shelf: Shelf<PodFacts>,
    _ends_with_us: DropGuard,
}

/// Whom a link tells of what has happened in its cluster.
pub(crate) type TellNode = Arc<dyn Fn(&NodeName, Cause) + Send + Sync>;

impl Link {
    /// Opens a link and starts to watch the Nodes. `stop` ends it with everything else.
    pub(crate) fn open(
        client: Client,
        origin: Origin,
        made_from: Option<SecretFacts>,
        stop: &CancellationToken,
        tell: TellNode,
        tell_condition: Arc<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        let stop = stop.child_token();
        let link = Arc::new(Self {
            nodes: Shelf::new([None]),
            agent_configs: Shelf::new([None]),
            identity: Arc::default(),
            pods: Mutex::new(BTreeMap::new()),
            daemon_sets: Mutex::new(BTreeMap::new()),
            namespace_labels: Mutex::new(BTreeMap::new()),
            _ends_with_us: stop.clone().drop_guard(),
            client,
            origin,
            made_from,
            stop,
        });
        link.watch_nodes(tell.clone(), tell_condition);
        link.watch_agent_configs(tell);
        link
    }

    fn watch_nodes(&self, tell: TellNode, tell_condition: Arc<dyn Fn() + Send + Sync>) {
        let (origin, shelf, stop) = (self.origin.clone(), self.nodes.clone(), self.stop.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (client, identity) = (self.client.clone(), self.identity.clone());
        tokio::spawn(async move {
            // Nothing that the Nodes say counts before it is known whose they are.
            stop.run_until_cancelled(identify(&client, &identity, &shelf, &tell_condition)).await;
            let warned = IgnoredRequests::default();
            let news = |news: News| match news {
                News::Changed(key) => {
                    warned.look_at(&key, shelf.view(&key).as_ref());
                    tell(&NodeName::from(&*key.name), Cause::Node);
                }
                News::Condition => tell_condition(),
                News::NotServed => {}
            };
            let filling = fill(&origin, nodes, Config::default(), None, &shelf, project::node, news);
            stop.run_until_cancelled(filling).await;
        });
    }

    fn watch_agent_configs(&self, tell: TellNode) {
        let (origin, shelf, stop) = (self.origin.clone(), self.agent_configs.clone(), self.stop.clone());
        let configs: Api<PartialObjectMeta<ConfigMap>> =
            Api::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        tokio::spawn(async move {
            let config = Config::default().labels(label::SCHEDULED_MACHINE);
            let news = |news: News| {
                if let News::Changed(key) = news {
                    tell(&project::agent_node(&key.name), Cause::AgentConfig);
                }
            };
            let filling = fill(&origin, configs, config, None, &shelf, project::agent_config, news);
            stop.run_until_cancelled(filling).await;
        });
    }

    /// Which cluster this is, by the UID of its `kube-system` namespace, if that can be read.
    pub(crate) fn identity(&self) -> Option<String> {
        lock(&self.identity).clone()
    }

    /// Reads anew which cluster this is: behind one address there may be another one since.
    pub(crate) async fn identify_again(&self) -> Result<(), CallError> {
        let uid = read_identity(&self.client)
            .await
            .map_err(|error| CallError::new(format!("get Namespace {IDENTITY_NAMESPACE}"), error))?;
        *lock(&self.identity) = uid;
        Ok(())
    }

    /// The pods of a node, which are watched from the first time that they are asked for.
    pub(crate) fn pods(&self, node: &NodeName, tell: &TellNode) -> Shelf<PodFacts> {
        let mut watches = lock(&self.pods);
        let watch = watches.entry(node.clone()).or_insert_with(|| self.watch_pods(node, tell.clone()));
        watch.shelf.clone()
    }

    /// The pods of a node, if they are watched.
    pub(crate) fn watched_pods(&self, node: &NodeName) -> Option<Shelf<PodFacts>> {
        lock(&self.pods).get(node).map(|watch| watch.shelf.clone())
    }

    /// Nobody needs the pods of this node any more.
    pub(crate) fn forget_pods(&self, node: &NodeName) {
        let mut watches = lock(&self.pods);
        if watches.remove(node).is_some() && watches.is_empty() {
            self.forget_lookups();
        }
    }

    fn watch_pods(&self, node: &NodeName, tell: TellNode) -> PodWatch {
        let shelf = Shelf::new([None]);
        let stop = self.stop.child_token();
        let watch = PodWatch { shelf: shelf.clone(), _ends_with_us: stop.clone().drop_guard() };
        let pods: Api<Pod> = Api::all(self.client.clone());
        let (node, origin) = (node.clone(), self.origin.with_most_objects(MOST_PODS));
        tokio::spawn(async move {
            let config = Config::default().fields(&format!("spec.nodeName={node}"));
            let news = |_: News| tell(&node, Cause::Pod);
            let filling = fill(&origin, pods, config, None, &shelf, project::pod, news);
            stop.run_until_cancelled(filling).await;
        });
        watch
    }

    /// Whether a `DaemonSet` exists; nothing if nobody has looked yet.
    pub(crate) fn daemon_set(&self, key: &ObjectKey) -> Option<bool> {
        lock(&self.daemon_sets).get(key).copied()
    }

    pub(crate) fn remember_daemon_set(&self, key: ObjectKey, exists: bool) {
        lock(&self.daemon_sets).insert(key, exists);
    }

    /// The labels of a namespace; nothing if nobody has looked yet.
    pub(crate) fn namespace_labels(&self, namespace: &str) -> Option<Labels> {
        lock(&self.namespace_labels).get(namespace).cloned()
    }

    pub(crate) fn remember_namespace_labels(&self, namespace: String, labels: Labels) {
        lock(&self.namespace_labels).insert(namespace, labels);
    }

    /// Forgets what was looked up for a drain, so that the next one looks again.
    fn forget_lookups(&self) {
        lock(&self.daemon_sets).clear();
        lock(&self.namespace_labels).clear();
    }
}

/// Reclaim annotations with a value that does not count, each of which is logged once.
#[derive(Default)]
struct IgnoredRequests {
    logged: Mutex<BTreeMap<ObjectKey, Box<str>>>,
}

impl IgnoredRequests {
    fn look_at(&self, key: &ObjectKey, node: Option<&NodeFacts>) {
        let mut logged = lock(&self.logged);
        let Some(value) = node.and_then(|node| node.ignored_request.clone()) else {
            logged.remove(key);
            return;
        };
        if logged.get(key) != Some(&value) {
            tracing::warn!(
                node = &*key.name,
                value = &*value,
                "Annotation {REQUESTED} is ignored: only \"{REQUESTED_TRUE}\" asks for a node"
            );
            logged.insert(key.clone(), value);
        }
    }
}

/// The namespace whose UID tells one cluster from another: it is made with the cluster, and cannot be deleted.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// How long after a failure the identity of a cluster is asked for again.
const IDENTIFY_AGAIN: Duration = Duration::from_secs(5);

/// Reads which cluster this is, until it is known or known to be unknowable. A failure is one of the shelf that waits for it.
async fn identify(
    client: &Client,
    identity: &Mutex<Option<String>>,
    nodes: &Shelf<NodeFacts>,
    tell_condition: &Arc<dyn Fn() + Send + Sync>,
) {
    loop {
        match read_identity(client).await {
            Ok(uid) => {
                *lock(identity) = uid;
                return;
            }
            Err(error) => {
                if nodes.fail(Failure::of(&error)) {
                    tell_condition();
                }
                tokio::time::sleep(IDENTIFY_AGAIN).await;
            }
        }
    }
}

/// The UID, or nothing if the API server will not tell.
async fn read_identity(client: &Client) -> Result<Option<String>, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_metadata(IDENTITY_NAMESPACE).await {
        Ok(namespace) => Ok(namespace.metadata.uid),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
