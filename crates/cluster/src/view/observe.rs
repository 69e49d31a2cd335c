//! From what is on the shelves to the world that a decision looks at.

use crate::cache::fleet::{Fleet, Inner};
use crate::cache::memory::{Memory, Place};
use crate::cache::project::{
    AgentConfigFacts, MachineFacts, NodeFacts, ObjectFacts, PodFacts, ProviderFacts, kind_of,
};
use crate::cache::store::{Condition, Failure, FailureKind, Item};
use crate::cache::workload::{Link, WorkloadKey};
use crate::transport::key::ObjectKey;
use five_spot_api::{ObjectRef, ScheduledMachineStatus, WorkloadCluster, names};
use five_spot_core::world::{
    AgentConfigView, FormerNode, MachineView, NodeFact, NodeName, NodeView, PodDrain, PodView, ProviderView,
    ReferenceProblem, ReferenceProblemKind, ResourceVersion, Slot, Workload, WorkloadProblem, World,
};
use five_spot_core::{InvalidSpec, ProviderKind, ValidSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of a kubeconfig Secret that Cluster API writes.
const KUBECONFIG_KEY: &str = "value";

/// In the list of namespaces whose Nodes may be in the management cluster: every one. For a sandbox, which has only one
/// cluster; no flag takes it.
pub const ANY_NAMESPACE: &str = "*";

/// What can be said of an object now.
pub enum Observation {
    /// It is gone.
    Gone,
    /// The management cluster has not been read yet; news of that will come.
    NotYet,
    /// What there is.
    Known(Box<Observed>),
}

/// An object and its world.
pub struct Observed {
    /// What the object wants, as far as that can be understood.
    pub spec: Result<Arc<ValidSpec>, Arc<InvalidSpec>>,
    /// What there is.
    pub world: World,
    /// Who wrote the spec last, by field manager.
    pub spec_by: Option<String>,
    /// The version of the object that was read.
    pub(crate) version: String,
    pub(crate) link: Option<Arc<Link>>,
    /// The cluster in which the Node may have outlived its Machine.
    pub(crate) former: Option<Arc<Link>>,
    /// What has to be looked up before the pods of the node can be judged.
    pub(crate) lookups: Lookups,
    /// Something that should be as we applied it has not been compared, or something that is not ours was in the way:
    /// only the API server knows.
    pub unproven: bool,
    /// Something has not been read yet; news of it will come. Only an emergency does not wait for that.
    pub incomplete: bool,
}

/// What has to be looked up before the pods of a node can be judged.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    /// The rules of Cluster API that apply to the Machine.
    pub(crate) rules: bool,
    /// Whether these exist.
    pub(crate) daemon_sets: BTreeSet<ObjectKey>,
    /// The labels of these.
    pub(crate) namespaces: BTreeSet<String>,
}

impl Lookups {
    fn are_lacking(&self) -> bool {
        self.rules || !self.daemon_sets.is_empty() || !self.namespaces.is_empty()
    }
}

/// What an object needs to be watched.
pub(crate) struct Needs {
    pub(crate) kinds: Vec<ProviderKind>,
    pub(crate) secrets: Vec<ObjectKey>,
}

pub(crate) fn needs(key: &ObjectKey, object: &ObjectFacts) -> Needs {
    let record = &object.record;
    let mut kinds = record.former_kinds.to_vec();
    let mut secrets: Vec<ObjectKey> = Vec::new();
    if let Ok(spec) = &object.spec {
        kinds.extend([spec.bootstrap.clone(), spec.infrastructure.clone()]);
        secrets.push(key.beside(default_secret(spec).0));
    }
    secrets.extend(
        record.workload_cluster.as_ref().and_then(|cluster| secret_of(key, cluster)).map(|found| found.0),
    );
    Needs { kinds, secrets }
}

/// The Secrets that an object names, each with the key of it.
pub(crate) fn secret_keys(key: &ObjectKey, object: &ObjectFacts) -> Vec<(ObjectKey, String)> {
    let recorded = object.record.workload_cluster.as_ref();
    spec_secret(key, object).into_iter().chain(recorded.and_then(|cluster| secret_of(key, cluster))).collect()
}

/// The Secret that a spec leads to, and its key.
pub(crate) fn default_secret(spec: &ValidSpec) -> (String, String) {
    spec.kubeconfig_secret.as_ref().map_or_else(
        || (names::kubeconfig_secret(&spec.cluster_name), KUBECONFIG_KEY.to_owned()),
        |named| (named.name.clone(), named.key.clone()),
    )
}

fn secret_of(key: &ObjectKey, cluster: &WorkloadCluster) -> Option<(ObjectKey, String)> {
    let name = cluster.secret_name.as_ref()?;
    let in_secret = cluster.secret_key.clone().unwrap_or_else(|| KUBECONFIG_KEY.to_owned());
    Some((key.beside(name.clone()), in_secret))
}

/// The cluster of an object's Node, as far as its own words tell.
pub(crate) fn workload_of(key: &ObjectKey, object: &ObjectFacts) -> WorkloadKey {
    let by_record = object.record.workload_cluster.as_ref().map(|cluster| secret_of(key, cluster));
    match by_record {
        Some(Some((secret, key))) => WorkloadKey::Kubeconfig { secret, key },
        Some(None) => WorkloadKey::Management,
        None => spec_workload(key, object).unwrap_or(WorkloadKey::Management),
    }
}

/// The cluster that the spec of an object leads to, by its Secret.
pub(crate) fn spec_workload(key: &ObjectKey, object: &ObjectFacts) -> Option<WorkloadKey> {
    let (secret, key) = spec_secret(key, object)?;
    Some(WorkloadKey::Kubeconfig { secret, key })
}

/// The Secret that the spec of an object leads to, and its key.
fn spec_secret(key: &ObjectKey, object: &ObjectFacts) -> Option<(ObjectKey, String)> {
    let (name, in_secret) = default_secret(object.spec.as_ref().ok()?);
    Some((key.beside(name), in_secret))
}

/// How the cluster of an object's Node stands.
struct Reach {
    workload: Workload,
    link: Option<Arc<Link>>,
}

impl Reach {
    const fn pending(cluster: WorkloadCluster) -> Self {
        Self { workload: Workload::Pending(cluster), link: None }
    }

    const fn unusable(cluster: WorkloadCluster, problem: WorkloadProblem, message: String) -> Self {
        Self { workload: Workload::Unusable { cluster, problem, message }, link: None }
    }
}

impl Fleet {
    /// Looks at one object, and starts to watch what has to be watched for it.
    pub async fn observe(&self, key: &ObjectKey) -> Observation {
        let inner = &self.inner;
        let Some(object) = inner.objects.get(key) else {
            return Observation::Gone;
        };
        match inner.condition() {
            Condition::Filling => return Observation::NotYet,
            Condition::Failing(failure) if failure.kind == FailureKind::Unreachable => {
                return Observation::NotYet;
            }
            Condition::Failing(_) | Condition::Filled => {}
        }
        let machine = inner.machines.view(&key.beside(names::machine(&key.name)));
        let reach = inner.reach(key, &object.view, machine.is_some()).await;
        let former = inner.reach_former(key, &object.view, machine.is_some()).await;
        let memory = inner.remember(key, |memory| memory.belonging_to(&object.view.view.uid).clone());
        Observation::Known(Box::new(inner.world(key, object, machine, (reach, former), &memory)))
    }
}

impl Inner {
    /// The cluster of the Node: the one on record while the Machine lives, else the one that the spec leads to. Never
    /// another one: what is missing is reported.
    async fn reach(self: &Arc<Self>, key: &ObjectKey, object: &ObjectFacts, has_machine: bool) -> Reach {
        let recorded = object.record.workload_cluster.clone().filter(|_| has_machine);
        let wanted = match (recorded, &object.spec) {
            (Some(recorded), _) => recorded,
            (None, Err(_)) => {
                let message = "the spec is not valid, so that nobody knows which cluster it means".to_owned();
                return Reach::unusable(
                    WorkloadCluster::MANAGEMENT,
                    WorkloadProblem::KubeconfigInvalid,
                    message,
                );
            }
            (None, Ok(spec)) => self.wanted_cluster(key, spec),
        };
        self.reach_cluster(key, wanted).await
    }

    /// The cluster in which the Node on record may have outlived its Machine.
    async fn reach_former(
        self: &Arc<Self>,
        key: &ObjectKey,
        object: &ObjectFacts,
        has_machine: bool,
    ) -> Option<Arc<Link>> {
        let recorded = object.record.workload_cluster.clone()?;
        if has_machine || object.record.node.is_none() {
            return None;
        }
        self.reach_cluster(key, recorded).await.link
    }

    async fn reach_cluster(self: &Arc<Self>, key: &ObjectKey, wanted: WorkloadCluster) -> Reach {
        let Some((secret, in_secret)) = secret_of(key, &wanted) else {
            return self.reach_management(key, wanted).await;
        };
        let shelf = self.secret(&secret);
        match (shelf.condition(), shelf.view(&secret)) {
            (Condition::Filling, _) => Reach::pending(wanted),
            (Condition::Failing(failure), _) => secret_failure(key, &secret, wanted, &failure),
            (Condition::Filled, None) => {
                let message = format!(
                    "there is no Secret {} in namespace {}; Cluster API or an operator has to write the kubeconfig of the \
                     workload cluster into it (key {in_secret})",
                    secret.name, secret.namespace
                );
                Reach::unusable(wanted, WorkloadProblem::SecretMissing, message)
            }
            (Condition::Filled, Some(facts)) => {
                let workload = WorkloadKey::Kubeconfig { secret, key: in_secret };
                self.reach_by(workload, Some(facts), wanted).await
            }
        }
    }

    /// The cluster that a spec leads to: the management cluster only where the operator allows it and no Secret is named.
    fn wanted_cluster(self: &Arc<Self>, key: &ObjectKey, spec: &ValidSpec) -> WorkloadCluster {
        let (name, in_secret) = default_secret(spec);
        let may_be_management =
            spec.kubeconfig_secret.is_none() && self.allows_management_nodes(&key.namespace);
        let secret = key.beside(name.clone());
        if may_be_management && self.secret(&secret).is_known_to_lack(&secret) {
            return WorkloadCluster::MANAGEMENT;
        }
        WorkloadCluster::of_secret(name, in_secret)
    }

    /// Whether the Nodes of a namespace's machines may be in the management cluster itself.
    pub(crate) fn allows_management_nodes(&self, namespace: &str) -> bool {
        self.management_nodes.iter().any(|allowed| allowed == namespace || allowed == ANY_NAMESPACE)
    }

    async fn reach_management(self: &Arc<Self>, key: &ObjectKey, wanted: WorkloadCluster) -> Reach {
        if self.allows_management_nodes(&key.namespace) {
            return self.reach_by(WorkloadKey::Management, None, wanted).await;
        }
        let message = format!(
            "the Node is on record in the management cluster, and namespace {} is not named by \
             --management-nodes-namespace",
            key.namespace
        );
        Reach::unusable(wanted, WorkloadProblem::KubeconfigInvalid, message)
    }

    async fn reach_by(
        self: &Arc<Self>,
        workload: WorkloadKey,
        secret: Option<crate::transport::kubeconfig::SecretFacts>,
        cluster: WorkloadCluster,
    ) -> Reach {
        let link = match self.link(&workload, secret.as_ref()).await {
            Ok(link) => link,
            Err(message) => return Reach::unusable(cluster, WorkloadProblem::KubeconfigInvalid, message),
        };
        match link.nodes.condition() {
            Condition::Filling => Reach::pending(cluster),
            Condition::Filled => same_cluster(cluster, link),
            Condition::Failing(failure) => {
                let problem = match failure.kind {
                    FailureKind::Forbidden => WorkloadProblem::Refused,
                    FailureKind::NoSuchKind | FailureKind::OtherVersion | FailureKind::Unreachable => {
                        WorkloadProblem::Unreachable
                    }
                };
                let message =
                    format!("the Nodes of the workload cluster cannot be listed: {}", failure.message);
                Reach::unusable(cluster, problem, message)
            }
        }
    }

    fn world(
        self: &Arc<Self>,
        key: &ObjectKey,
        object: Item<ObjectFacts>,
        machine: Option<MachineFacts>,
        (reach, former): (Reach, Option<Arc<Link>>),
        memory: &Memory,
    ) -> Observed {
        let Item { version, view: object } = object;
        let Reach { workload, link } = reach;
        let spec_kinds = object.spec.as_ref().ok();
        let status = object.status.read();
        let bootstrap = self.provider_slot(
            &key.beside(names::bootstrap(&key.name)),
            status.bootstrap_ref.as_ref(),
            spec_kinds.map(|spec| ("spec.bootstrapSpec", &spec.bootstrap)),
            (memory, Place::Bootstrap),
        );
        let infrastructure = self.provider_slot(
            &key.beside(names::infrastructure(&key.name)),
            status.infrastructure_ref.as_ref(),
            spec_kinds.map(|spec| ("spec.infrastructureSpec", &spec.infrastructure)),
            (memory, Place::Infrastructure),
        );
        let incomplete =
            bootstrap.is_pending || infrastructure.is_pending || matches!(workload, Workload::Pending(_));
        let lookups =
            link.as_deref().map_or_else(Lookups::default, |link| lookups(machine.as_ref(), link, memory));
        let node = link.as_deref().map_or(NodeFact::Unknown, |link| {
            node_fact(machine.as_ref(), link, key, memory, !lookups.are_lacking())
        });
        let former_node =
            if machine.is_some() { FormerNode::Gone } else { former_node(&status, former.as_deref()) };
        let mut references: Vec<ReferenceProblem> = self.cluster_api_problem().into_iter().collect();
        references.extend([bootstrap.problem, infrastructure.problem].into_iter().flatten());
        let unproven = bootstrap.unproven
            || infrastructure.unproven
            || !memory.foreign.is_empty()
            || machine.as_ref().is_some_and(|machine| {
                !machine.terminating && !memory.is_proven(&machine.uid, &machine.digest)
            });
        let mut view = object.view;
        if let Some(deletion) = &mut view.deletion {
            // `--cascade=orphan` takes us from the owners of the Machine, and its finalizer goes when that is done. That
            // we are no owner of the provider's objects says nothing: `--cascade=foreground` does the same to them.
            deletion.orphan |=
                machine.as_ref().is_some_and(|machine| !machine.terminating && !machine.has_owner);
        }
        let world = World {
            policy: self.policy,
            cluster: spec_kinds.and_then(|spec| self.clusters.view(&key.beside(spec.cluster_name.clone()))),
            namespace_pause: self.namespaces.view(&ObjectKey::new("", key.namespace.clone())).flatten(),
            references,
            bootstrap: bootstrap.slot,
            infrastructure: infrastructure.slot,
            machine: machine_slot(machine, memory),
            agent_configs: link.as_deref().map_or_else(Vec::new, |link| agent_configs(key, link)),
            former_node,
            unrecorded_since: memory.unrecorded_since,
            workload,
            node,
            failures: memory.failures.clone(),
            status,
            object: view,
        };
        Observed {
            spec: object.spec,
            spec_by: object.spec_by,
            world,
            version,
            former,
            link,
            lookups,
            unproven,
            incomplete,
        }
    }

    fn cluster_api_problem(&self) -> Option<ReferenceProblem> {
        let conditions = [self.machines.condition(), self.clusters.condition()];
        conditions.into_iter().find_map(|condition| match condition {
            Condition::Failing(failure) => Some(problem_of("spec.clusterName", &failure)),
            Condition::Filling | Condition::Filled => None,
        })
    }

    /// What is under the name of a provider's object.
    ///
    /// The kind on record comes first: when the spec names another, what was made before still has to go. Only a kind
    /// that is not served at all has no objects; what cannot be listed is unknown.
    fn provider_slot(
        self: &Arc<Self>,
        key: &ObjectKey,
        recorded: Option<&ObjectRef>,
        wanted: Option<(&'static str, &ProviderKind)>,
        (memory, place): (&Memory, Place),
    ) -> ProviderSlot {
        if let Some(owner) = memory.foreign.get(&place) {
            let slot = Slot::Foreign { owner: owner.clone() };
            return ProviderSlot { slot, problem: None, unproven: true, is_pending: false };
        }
        let mut found =
            ProviderSlot { slot: Slot::Absent, problem: None, unproven: false, is_pending: false };
        // The spec's kind is asked about also where an object of another kind is there: that one is not given up for
        // what cannot be made. Where an object of that kind is there, a watch that fails is no fault of the spec.
        if let Some((field, kind)) = wanted {
            let shelf = self.provider(kind);
            match shelf.condition() {
                Condition::Filling => found.is_pending = true,
                Condition::Failing(failure) if shelf.view(key).is_none() => {
                    found.problem = Some(problem_of(field, &failure));
                }
                Condition::Failing(_) | Condition::Filled => {}
            }
        }
        let wanted = wanted.map(|(_, kind)| kind.clone());
        for kind in recorded.map(kind_of).into_iter().chain(wanted) {
            let shelf = self.provider(&kind);
            if let Some(facts) = shelf.view(key) {
                found.unproven = !facts.terminating && !memory.is_proven(&facts.uid, &facts.digest);
                found.slot = Slot::Ours(provider_view(kind, facts, memory));
                return found;
            }
            match shelf.condition() {
                Condition::Filled => {}
                Condition::Filling => {
                    found.is_pending = true;
                    found.slot = Slot::Unknown;
                }
                Condition::Failing(failure) => {
                    let is_gone =
                        failure.kind == FailureKind::NoSuchKind && self.kinds.known(&kind).is_none();
                    if !is_gone {
                        found.slot = Slot::Unknown;
                    }
                }
            }
        }
        found
    }
}

struct ProviderSlot {
    slot: Slot<ProviderView>,
    problem: Option<ReferenceProblem>,
    unproven: bool,
    /// The first list has not come yet.
    is_pending: bool,
}

/// A Secret that cannot be read.
fn secret_failure(key: &ObjectKey, secret: &ObjectKey, wanted: WorkloadCluster, failure: &Failure) -> Reach {
    match failure.kind {
        FailureKind::Forbidden => {
            let message = format!(
                "the controller may not read Secret {secret}: {}; allow it with `kubectl create rolebinding \
                 5spot-kubeconfig-reader --clusterrole=5spot-kubeconfig-reader \
                 --serviceaccount=5spot-system:5spot-controller --namespace={}`",
                failure.message, key.namespace
            );
            Reach::unusable(wanted, WorkloadProblem::SecretForbidden, message)
        }
        FailureKind::NoSuchKind | FailureKind::OtherVersion | FailureKind::Unreachable => {
            let message = format!("Secret {secret} cannot be read: {}", failure.message);
            Reach::unusable(wanted, WorkloadProblem::Unreachable, message)
        }
    }
}

/// A link counts only if it leads to the cluster that the Node was last seen in.
fn same_cluster(mut cluster: WorkloadCluster, link: Arc<Link>) -> Reach {
    let identity = link.identity();
    match (&cluster.cluster_uid, identity) {
        (Some(recorded), Some(now)) if *recorded != now => {
            let by = cluster.secret_name.as_deref().map_or_else(
                || "the controller's own configuration".to_owned(),
                |name| format!("the kubeconfig in Secret {name}"),
            );
            let message = format!(
                "{by} leads to another cluster than the one that the Node was last seen in (the UID of its kube-system \
                 namespace is {now}, and was {recorded}); nothing is done there"
            );
            Reach::unusable(cluster, WorkloadProblem::WrongCluster, message)
        }
        (_, identity) => {
            cluster.cluster_uid = identity.or(cluster.cluster_uid);
            Reach { workload: Workload::Reachable(cluster), link: Some(link) }
        }
    }
}

/// What has become of the Node on record, once its Machine is gone. Only the cluster that it was last seen in can tell.
fn former_node(status: &ScheduledMachineStatus, link: Option<&Link>) -> FormerNode {
    let Some(recorded) = &status.node_ref else { return FormerNode::Gone };
    let Some(link) = link else { return FormerNode::Unknown };
    let there = link.nodes.view(&node_key(&NodeName::from(recorded.name.as_str())));
    let is_same = |node: &NodeFacts| recorded.uid.as_deref().is_none_or(|uid| uid == node.uid.as_str());
    if there.as_ref().is_some_and(is_same) { FormerNode::LeftBehind } else { FormerNode::Gone }
}

fn problem_of(field: &str, failure: &Failure) -> ReferenceProblem {
    let (kind, message) = match failure.kind {
        FailureKind::Forbidden => (
            ReferenceProblemKind::Forbidden,
            format!(
                "{}; grant get, list, watch, create, patch and delete on it to the controller",
                failure.message
            ),
        ),
        FailureKind::NoSuchKind | FailureKind::OtherVersion => {
            (ReferenceProblemKind::NotFound, failure.message.clone())
        }
        FailureKind::Unreachable => (
            ReferenceProblemKind::NotFound,
            format!("objects of this kind cannot be listed: {}", failure.message),
        ),
    };
    ReferenceProblem { field: field.to_owned(), kind, message }
}

fn provider_view(kind: ProviderKind, facts: ProviderFacts, memory: &Memory) -> ProviderView {
    ProviderView {
        kind,
        intact: memory.is_intact(&facts.uid, &facts.digest),
        uid: facts.uid,
        terminating: facts.terminating,
        machine_hash: facts.machine_hash,
    }
}

fn machine_slot(machine: Option<MachineFacts>, memory: &Memory) -> Slot<MachineView> {
    if let Some(owner) = memory.foreign.get(&Place::Machine) {
        return Slot::Foreign { owner: owner.clone() };
    }
    machine.map_or(Slot::Absent, |facts| {
        Slot::Ours(MachineView {
            intact: memory.is_intact(&facts.uid, &facts.digest),
            delete_refused: memory.delete_refused.as_ref() == Some(&facts.uid),
            api_version: facts.api_version,
            uid: facts.uid,
            created_at: facts.created_at,
            terminating: facts.terminating,
            machine_hash: facts.machine_hash,
            applied_hash: facts.applied_hash,
            capi_paused: facts.capi_paused,
            provider_id: facts.provider_id,
            drain_excluded: facts.drain_excluded,
            volume_wait_excluded: facts.volume_wait_excluded,
        })
    })
}

fn node_fact(
    machine: Option<&MachineFacts>,
    link: &Link,
    object: &ObjectKey,
    memory: &Memory,
    drain_rules_resolved: bool,
) -> NodeFact {
    let Some(machine) = machine else { return NodeFact::NotYet };
    let Some(name) = &machine.node else { return NodeFact::NotYet };
    let Some(Item { version, view: facts }) = link.nodes.get(&node_key(name)) else {
        // Cluster API asks by itself: as long as it sees the Node, one of us asks the wrong cluster.
        return if machine.node_healthy { NodeFact::Unknown } else { NodeFact::Gone };
    };
    if facts.provider_id.is_none() || facts.provider_id != machine.provider_id {
        return NodeFact::Mismatch { name: name.clone() };
    }
    let pods = link.watched_pods(name).filter(|shelf| shelf.condition() == Condition::Filled);
    let is_there = |pod: &PodFacts| !memory.left.contains(&pod.id.uid);
    let pods = pods.map(|shelf| shelf.select(|_, pod| is_there(pod).then(|| pod_view(pod, link, memory))));
    let view = node_view(name.clone(), version, facts, object);
    NodeFact::Found(NodeView { pods, drain_rules_resolved, ..view })
}

/// Nodes have no namespace.
pub(crate) fn node_key(name: &NodeName) -> ObjectKey {
    ObjectKey::new("", name.as_str())
}

fn node_view(name: NodeName, version: String, facts: NodeFacts, object: &ObjectKey) -> NodeView {
    NodeView {
        name,
        uid: facts.uid,
        resource_version: ResourceVersion::from(version),
        readiness: facts.readiness,
        unschedulable: facts.unschedulable,
        cordoned_by_us: facts.cordoned_by == Some(object.to_string()),
        taints: facts.taints,
        owned_taints: facts.owned_taints,
        agent_label: facts.agent_label,
        reclaim: facts.reclaim,
        pods: None,
        drain_rules_resolved: false,
    }
}

fn pod_view(pod: &PodFacts, link: &Link, memory: &Memory) -> PodView {
    // Until someone has looked, a DaemonSet that is named exists: almost always it does.
    let daemon_set = pod.daemon_set.as_ref().is_some_and(|key| link.daemon_set(key).unwrap_or(true));
    let by_rule = || {
        let namespace = link.namespace_labels(&pod.id.namespace).unwrap_or_default();
        memory.drain_rules.as_ref()?.drain(&pod.labels, &namespace)
    };
    PodView {
        eviction: memory.evictions.get(&pod.id.uid).cloned(),
        id: pod.id.clone(),
        mirror: pod.mirror,
        daemon_set,
        comes_back: pod.comes_back,
        finished: pod.finished,
        terminating: pod.terminating,
        drain: pod.drain.or_else(by_rule).unwrap_or(PodDrain::Evict { order: 0 }),
    }
}

/// What nobody has looked up yet of all that decides how the pods of the node are treated.
fn lookups(machine: Option<&MachineFacts>, link: &Link, memory: &Memory) -> Lookups {
    let node = machine.and_then(|machine| machine.node.as_ref());
    let Some(shelf) = node.and_then(|node| link.watched_pods(node)) else {
        return Lookups::default();
    };
    let mut lookups = Lookups { rules: memory.drain_rules.is_none(), ..Lookups::default() };
    let by_namespace = memory.drain_rules.as_ref().is_some_and(|rules| rules.look_at_namespaces());
    shelf.select(|key, pod| {
        lookups.daemon_sets.extend(pod.daemon_set.clone().filter(|key| link.daemon_set(key).is_none()));
        if by_namespace && link.namespace_labels(&key.namespace).is_none() {
            lookups.namespaces.insert(key.namespace.to_string());
        }
        None::<()>
    });
    lookups
}

fn agent_configs(key: &ObjectKey, link: &Link) -> Vec<AgentConfigView> {
    let object = key.to_string();
    let is_ours = |config: &AgentConfigFacts| config.made_for.as_deref() == Some(object.as_str());
    link.agent_configs.select(|_, config| {
        is_ours(config).then(|| AgentConfigView { node: config.node.clone(), rendered: config.rendered })
    })
}
