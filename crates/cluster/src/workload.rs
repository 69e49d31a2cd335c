//! The clusters in which Nodes live: one link each, with a client of its own and its own watches, so that one that is
//! broken or hangs holds up nobody else.

use crate::cause::Cause;
use crate::drain_rules::Labels;
use crate::fleet::lock;
use crate::key::ObjectKey;
use crate::kubeconfig::SecretFacts;
use crate::project::{self, AgentConfigFacts, NodeFacts, PodFacts};
use crate::shelf::Shelf;
use crate::watch::{News, fill};
use five_spot_api::names::label;
use five_spot_api::reclaim::CONFIG_NAMESPACE;
use five_spot_core::world::NodeName;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio_util::sync::{CancellationToken, DropGuard};

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
    /// What it was made from; another Secret means another link.
    pub(crate) made_from: Option<SecretFacts>,
    pub(crate) nodes: Shelf<NodeFacts>,
    pub(crate) agent_configs: Shelf<AgentConfigFacts>,
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
        made_from: Option<SecretFacts>,
        stop: &CancellationToken,
        tell: TellNode,
        tell_condition: Arc<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        let stop = stop.child_token();
        let link = Arc::new(Self {
            nodes: Shelf::new([None]),
            agent_configs: Shelf::new([None]),
            pods: Mutex::new(BTreeMap::new()),
            daemon_sets: Mutex::new(BTreeMap::new()),
            namespace_labels: Mutex::new(BTreeMap::new()),
            _ends_with_us: stop.clone().drop_guard(),
            client,
            made_from,
            stop,
        });
        link.watch_nodes(tell.clone(), tell_condition);
        link.watch_agent_configs(tell);
        link
    }

    fn watch_nodes(&self, tell: TellNode, tell_condition: Arc<dyn Fn() + Send + Sync>) {
        let (shelf, stop) = (self.nodes.clone(), self.stop.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        tokio::spawn(async move {
            let news = |news: News| match news {
                News::Changed(key) => tell(&NodeName::from(&*key.name), Cause::Node),
                News::Condition => tell_condition(),
                News::NotServed => {}
            };
            stop.run_until_cancelled(fill(nodes, Config::default(), None, &shelf, project::node, news)).await;
        });
    }

    fn watch_agent_configs(&self, tell: TellNode) {
        let (shelf, stop) = (self.agent_configs.clone(), self.stop.clone());
        let configs: Api<PartialObjectMeta<ConfigMap>> =
            Api::namespaced(self.client.clone(), CONFIG_NAMESPACE);
        tokio::spawn(async move {
            let config = Config::default().labels(label::SCHEDULED_MACHINE);
            let news = |news: News| {
                if let News::Changed(key) = news {
                    tell(&project::agent_node(&key.name), Cause::AgentConfig);
                }
            };
            stop.run_until_cancelled(fill(configs, config, None, &shelf, project::agent_config, news)).await;
        });
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
        let node = node.clone();
        tokio::spawn(async move {
            let config = Config::default().fields(&format!("spec.nodeName={node}"));
            let news = |_: News| tell(&node, Cause::Pod);
            stop.run_until_cancelled(fill(pods, config, None, &shelf, project::pod, news)).await;
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
