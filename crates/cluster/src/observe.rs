//! From what is on the shelves to the world that a decision looks at.

use crate::fleet::{Fleet, Inner};
use crate::key::ObjectKey;
use crate::memory::{Memory, Place};
use crate::project::{
    AgentConfigFacts, MachineFacts, NodeFacts, ObjectFacts, PodFacts, ProviderFacts, kind_of,
};
use crate::shelf::{Condition, Failure, FailureKind, Item};
use crate::workload::{Link, WorkloadKey};
use five_spot_api::{ObjectRef, WorkloadCluster, names};
use five_spot_core::world::{
    AgentConfigView, MachineView, NodeFact, NodeName, NodeView, PodDrain, PodView, ProviderView,
    ReferenceProblem, ReferenceProblemKind, ResourceVersion, Slot, Workload, World,
};
use five_spot_core::{InvalidSpec, ProviderKind, ValidSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of a kubeconfig Secret that Cluster API writes.
const KUBECONFIG_KEY: &str = "value";

/// What can be said of an object now.
pub enum Observation {
    /// It is gone.
    Gone,
    /// A shelf that it depends upon is not filled yet; news of that will come.
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
    /// What has to be looked up before the pods of the node can be judged.
    pub(crate) lookups: Lookups,
    /// Something that should be as we applied it has not been compared, or something that is not ours was in the way:
    /// only the API server knows.
    pub unproven: bool,
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
    let by_spec = || {
        let (name, in_secret) = default_secret(object.spec.as_ref().ok()?);
        Some((key.beside(name), in_secret))
    };
    match by_record.unwrap_or_else(by_spec) {
        Some((secret, key)) => WorkloadKey::Kubeconfig { secret, key },
        None => WorkloadKey::Management,
    }
}

/// How the cluster of an object's Node stands.
enum Reach {
    NotYet,
    Unusable(WorkloadCluster, String),
    Open(WorkloadCluster, Arc<Link>),
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
        let memory = inner.remember(key, |memory| memory.belonging_to(&object.view.view.uid).clone());
        inner.world(key, object, machine, reach, &memory)
    }
}

impl Inner {
    /// The cluster of the Node: the one on record while the Machine lives, else the one that the spec leads to.
    async fn reach(self: &Arc<Self>, key: &ObjectKey, object: &ObjectFacts, has_machine: bool) -> Reach {
        let management = WorkloadCluster { secret_name: None, secret_key: None };
        let recorded = object.record.workload_cluster.clone().filter(|_| has_machine);
        let wanted = match (recorded, &object.spec) {
            (Some(recorded), _) => recorded,
            (None, Err(_)) => management.clone(),
            (None, Ok(spec)) => {
                let (name, in_secret) = default_secret(spec);
                let cluster =
                    WorkloadCluster { secret_name: Some(name.clone()), secret_key: Some(in_secret) };
                if spec.kubeconfig_secret.is_none() {
                    let secret = key.beside(name);
                    let shelf = self.secret(&secret);
                    match shelf.condition() {
                        Condition::Filling => return Reach::NotYet,
                        Condition::Failing(failure) => {
                            return Reach::Unusable(cluster, secret_failure(&secret, &failure));
                        }
                        Condition::Filled if shelf.view(&secret).is_none() => management.clone(),
                        Condition::Filled => cluster,
                    }
                } else {
                    cluster
                }
            }
        };
        let Some((secret, in_secret)) = secret_of(key, &wanted) else {
            return self.reach_by(WorkloadKey::Management, None, management).await;
        };
        let shelf = self.secret(&secret);
        match (shelf.condition(), shelf.view(&secret)) {
            (Condition::Filling, _) => Reach::NotYet,
            (Condition::Failing(failure), _) => Reach::Unusable(wanted, secret_failure(&secret, &failure)),
            (Condition::Filled, None) => {
                let message = format!("there is no Secret {} in namespace {}", secret.name, secret.namespace);
                Reach::Unusable(wanted, message)
            }
            (Condition::Filled, Some(facts)) => {
                let workload = WorkloadKey::Kubeconfig { secret, key: in_secret };
                self.reach_by(workload, Some(facts), wanted).await
            }
        }
    }

    async fn reach_by(
        self: &Arc<Self>,
        workload: WorkloadKey,
        secret: Option<crate::kubeconfig::SecretFacts>,
        cluster: WorkloadCluster,
    ) -> Reach {
        let link = match self.link(&workload, secret.as_ref()).await {
            Ok(link) => link,
            Err(message) => return Reach::Unusable(cluster, message),
        };
        match link.nodes.condition() {
            Condition::Filling => Reach::NotYet,
            Condition::Filled => Reach::Open(cluster, link),
            Condition::Failing(failure) => {
                let message =
                    format!("the Nodes of the workload cluster cannot be listed: {}", failure.message);
                Reach::Unusable(cluster, message)
            }
        }
    }

    fn world(
        self: &Arc<Self>,
        key: &ObjectKey,
        object: Item<ObjectFacts>,
        machine: Option<MachineFacts>,
        reach: Reach,
        memory: &Memory,
    ) -> Observation {
        let Item { version, view: object } = object;
        let (workload, link) = match reach {
            Reach::NotYet => return Observation::NotYet,
            Reach::Unusable(cluster, message) => (Workload::Unusable { cluster, message }, None),
            Reach::Open(cluster, link) => (Workload::Reachable(cluster), Some(link)),
        };
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
        let (Some(bootstrap), Some(infrastructure)) = (bootstrap, infrastructure) else {
            return Observation::NotYet;
        };
        let lookups =
            link.as_deref().map_or_else(Lookups::default, |link| lookups(machine.as_ref(), link, memory));
        let node = link.as_deref().map_or(NodeFact::Unknown, |link| {
            node_fact(machine.as_ref(), link, key, memory, !lookups.are_lacking())
        });
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
            workload,
            node,
            failures: memory.failures.clone(),
            status,
            object: view,
        };
        let observed =
            Observed { spec: object.spec, spec_by: object.spec_by, world, version, link, lookups, unproven };
        Observation::Known(Box::new(observed))
    }

    fn cluster_api_problem(&self) -> Option<ReferenceProblem> {
        let conditions = [self.machines.condition(), self.clusters.condition()];
        conditions.into_iter().find_map(|condition| match condition {
            Condition::Failing(failure) => Some(problem_of("spec.clusterName", &failure)),
            Condition::Filling | Condition::Filled => None,
        })
    }

    /// What is under the name of a provider's object. Nothing until its shelf is filled.
    ///
    /// The kind on record comes first: when the spec names another, what was made before still has to go.
    fn provider_slot(
        self: &Arc<Self>,
        key: &ObjectKey,
        recorded: Option<&ObjectRef>,
        wanted: Option<(&'static str, &ProviderKind)>,
        (memory, place): (&Memory, Place),
    ) -> Option<ProviderSlot> {
        if let Some(owner) = memory.foreign.get(&place) {
            let slot = Slot::Foreign { owner: owner.clone() };
            return Some(ProviderSlot { slot, problem: None, unproven: true });
        }
        // The spec's kind is asked about also where an object of another kind is there: that one is not given up for
        // what cannot be made. Where an object of that kind is there, a watch that fails is no fault of the spec.
        let mut problem = None;
        if let Some((field, kind)) = wanted {
            let shelf = self.provider(kind);
            match shelf.condition() {
                Condition::Filling => return None,
                Condition::Failing(failure) if shelf.view(key).is_none() => {
                    problem = Some(problem_of(field, &failure));
                }
                Condition::Failing(_) | Condition::Filled => {}
            }
        }
        let wanted = wanted.map(|(_, kind)| kind.clone());
        for kind in recorded.map(kind_of).into_iter().chain(wanted) {
            let shelf = self.provider(&kind);
            if matches!(shelf.condition(), Condition::Filling) {
                return None;
            }
            if let Some(facts) = shelf.view(key) {
                let unproven = !facts.terminating && !memory.is_proven(&facts.uid, &facts.digest);
                let slot = Slot::Ours(provider_view(kind, facts, memory));
                return Some(ProviderSlot { slot, problem, unproven });
            }
        }
        Some(ProviderSlot { slot: Slot::Absent, problem, unproven: false })
    }
}

struct ProviderSlot {
    slot: Slot<ProviderView>,
    problem: Option<ReferenceProblem>,
    unproven: bool,
}

fn secret_failure(secret: &ObjectKey, failure: &Failure) -> String {
    format!("Secret {secret} cannot be read: {}", failure.message)
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
        FailureKind::NoSuchKind => (ReferenceProblemKind::NotFound, failure.message.clone()),
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
    pods_judged: bool,
) -> NodeFact {
    let Some(machine) = machine else { return NodeFact::NotYet };
    let Some(name) = &machine.node else { return NodeFact::NotYet };
    let Some(Item { version, view: facts }) = link.nodes.get(&node_key(name)) else {
        return NodeFact::Gone;
    };
    if facts.provider_id.is_none() || facts.provider_id != machine.provider_id {
        return NodeFact::Mismatch { name: name.clone() };
    }
    let pods = link.watched_pods(name).filter(|shelf| shelf.condition() == Condition::Filled);
    let is_there = |pod: &PodFacts| !memory.left.contains(&pod.id.uid);
    let pods = pods.map(|shelf| shelf.select(|_, pod| is_there(pod).then(|| pod_view(pod, link, memory))));
    let view = node_view(name.clone(), version, facts, object);
    NodeFact::Found(NodeView { pods, pods_judged, ..view })
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
        pods_judged: false,
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
