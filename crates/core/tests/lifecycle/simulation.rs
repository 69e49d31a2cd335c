//! A cluster in a few lines: it does what decisions ask for, and what CAPI, a kubelet and people do by
//! themselves. It knows nothing of how decisions are made.

use five_spot_api::reclaim::ReclaimRequest;
use five_spot_api::{
    MachineTemplate, NodeTaint, OnTimeout, OverrideSpec, OverrideState, Phase, ProviderObject, ScheduleSpec,
    ScheduledMachineSpec, ScheduledMachineStatus, TaintEffect, WorkloadCluster,
};
use five_spot_core::action::{Action, Event};
use five_spot_core::world::{
    AgentConfigView, ClusterView, DeletionView, EvictionAttempt, MachineView, NodeFact, NodeView, ObjectView,
    PodDrain, PodId, PodTermination, PodView, Policy, ProviderView, Readiness, Slot, TaintId, Workload,
    World,
};
use five_spot_core::{Decision, Fingerprint, InvalidSpec, ProviderKind, ValidSpec, decide, decide_invalid};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Monday 2026-11-16, 08:00 UTC: an hour before the window opens.
pub const MONDAY: &str = "2026-11-16T08:00:00Z";

pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Monday to Friday, nine to six, UTC.
pub fn office_hours() -> ScheduledMachineSpec {
    let provider = |group: &str, kind: &str| ProviderObject {
        api_version: format!("{group}.cluster.x-k8s.io/v1beta2"),
        kind: kind.to_owned(),
        spec: serde_json::Map::from_iter([("version".to_owned(), "v1".into())]),
    };
    ScheduledMachineSpec {
        schedule: ScheduleSpec {
            days_of_week: Some(vec!["mon-fri".to_owned()]),
            hours_of_day: Some(vec!["9-17".to_owned()]),
            timezone: "UTC".to_owned(),
            enabled: true,
            windows: Vec::new(),
            exceptions: Vec::new(),
            lead_time: "0s".to_owned(),
        },
        cluster_name: "prod".to_owned(),
        bootstrap_spec: provider("bootstrap", "K0sWorkerConfig"),
        infrastructure_spec: provider("infrastructure", "RemoteMachine"),
        machine_template: MachineTemplate::default(),
        priority: 50,
        graceful_shutdown_timeout: "5m".to_owned(),
        node_drain_timeout: "5m".to_owned(),
        drain: five_spot_api::DrainSpec::default(),
        kill_switch: false,
        reclaim: five_spot_api::ReclaimSpec::default(),
        kill_if_commands: Vec::new(),
        node_taints: Vec::new(),
        kubeconfig_secret_ref: None,
        join_timeout: "20m".to_owned(),
        r#override: None,
    }
}

/// The cluster, its clock, and what has been seen to happen in it.
#[derive(Clone)]
pub struct Simulation {
    pub spec: ScheduledMachineSpec,
    pub world: World,
    pub now: Timestamp,
    /// The pods of the node, whether anyone watches them or not.
    pub pods: Vec<PodView>,
    /// A disruption budget allows no eviction.
    pub budget_blocks: bool,
    /// Machines come up, and their nodes join.
    pub provider_works: bool,
    /// The object has left the API server.
    pub object_gone: bool,
    pub watching_pods: bool,
    /// Every action that was carried out.
    pub log: Vec<String>,
    /// Every event there is: a second one of the same name is refused.
    pub events: Vec<(String, String)>,
    event_names: BTreeSet<String>,
    uids: u32,
}

impl Simulation {
    /// A new object on Monday morning, an hour before its window.
    pub fn new(spec: ScheduledMachineSpec) -> Self {
        Self {
            spec,
            world: World {
                policy: Policy::default(),
                object: ObjectView {
                    namespace: "team".to_owned(),
                    name: "desk".to_owned(),
                    uid: "object".into(),
                    generation: 1,
                    deletion: None,
                    has_finalizer: false,
                    capi_paused: false,
                    paused: None,
                },
                status: ScheduledMachineStatus::default(),
                cluster: Some(ClusterView {
                    uid: "cluster".into(),
                    paused: false,
                }),
                namespace_pause: None,
                references: Vec::new(),
                bootstrap: Slot::Absent,
                infrastructure: Slot::Absent,
                machine: Slot::Absent,
                workload: Workload::Reachable(WorkloadCluster {
                    secret_name: None,
                    secret_key: None,
                }),
                node: NodeFact::NotYet,
                agent_configs: Vec::new(),
                failures: five_spot_core::world::Failures::default(),
            },
            now: time(MONDAY),
            pods: Vec::new(),
            budget_blocks: false,
            provider_works: true,
            object_gone: false,
            watching_pods: false,
            log: Vec::new(),
            events: Vec::new(),
            event_names: BTreeSet::new(),
            uids: 0,
        }
    }

    /// What would be decided now.
    pub fn decide(&self) -> Decision {
        match ValidSpec::parse(&self.spec) {
            Ok(spec) => decide(&spec, &self.world, self.now),
            Err(errors) => decide_invalid(&InvalidSpec::new(&self.spec, errors), &self.world, self.now),
        }
    }

    /// Decides, and carries out the decision up to and including its action number `crash_after`.
    /// Returns whether anything came of it.
    pub fn reconcile_until(&mut self, crash_after: usize) -> bool {
        if self.object_gone {
            return false;
        }
        let decision = self.decide();
        for event in &decision.events {
            self.publish(event);
        }
        let mut changed = self.world.status != decision.status;
        self.world.status = decision.status;
        if self.watching_pods != decision.watch_pods {
            self.watching_pods = decision.watch_pods;
            changed = true;
        }
        self.show_pods();
        for action in decision.actions.iter().take(crash_after) {
            self.log.push(action.to_string());
            self.carry_out(action);
            changed = true;
        }
        self.show_pods();
        changed
    }

    /// One whole reconcile.
    pub fn reconcile(&mut self) -> bool {
        self.reconcile_until(usize::MAX)
    }

    /// Everything that happens without the clock moving.
    pub fn settle(&mut self) {
        for _ in 0..100 {
            let reconciled = self.reconcile();
            let moved = self.machinery();
            if !reconciled && !moved {
                return;
            }
        }
        panic!("never comes to rest; the last actions:\n{}", self.tail());
    }

    /// Moves the clock to `to`, stopping at every wake-up on the way.
    pub fn advance_to(&mut self, to: &str) {
        let to = time(to);
        loop {
            self.settle();
            let next = if self.object_gone {
                None
            } else {
                self.decide().wake_at
            };
            match next
                .into_iter()
                .chain(self.pods_leave_at())
                .filter(|next| *next <= to)
                .min()
            {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = to;
        self.settle();
    }

    fn pods_leave_at(&self) -> Option<Timestamp> {
        self.pods
            .iter()
            .filter_map(|pod| pod.terminating)
            .map(|termination| termination.until)
            .filter(|t| *t > self.now)
            .min()
    }

    pub fn phase(&self) -> Phase {
        self.world.status.phase.expect("a phase")
    }

    pub fn condition(&self, kind: &str) -> (&str, &str) {
        let condition = self
            .world
            .status
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind);
        condition.map_or(("", ""), |condition| {
            (condition.status.as_str(), condition.reason.as_str())
        })
    }

    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    pub fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
            .into_iter()
            .map(|(reason, _)| reason)
            .collect()
    }

    pub fn node(&mut self) -> &mut NodeView {
        match &mut self.world.node {
            NodeFact::Found(node) => node,
            other => panic!("no node: {other:?}"),
        }
    }

    pub fn machine(&mut self) -> &mut MachineView {
        match &mut self.world.machine {
            Slot::Ours(machine) => machine,
            other => panic!("no machine: {other:?}"),
        }
    }

    /// A person edits the spec.
    pub fn edit(&mut self, change: impl FnOnce(&mut ScheduledMachineSpec)) {
        let before = self.spec.clone();
        change(&mut self.spec);
        if self.spec != before {
            self.world.object.generation += 1;
        }
    }

    pub fn force_on_timeout(&mut self) {
        self.edit(|spec| spec.drain.on_timeout = OnTimeout::Force);
    }

    pub fn overrule(&mut self, state: OverrideState, until: &str) {
        let forced = OverrideSpec {
            state,
            until: until.to_owned(),
            reason: None,
        };
        self.edit(|spec| spec.r#override = Some(forced));
    }

    /// A person deletes the object.
    pub fn delete_object(&mut self) {
        if self.world.object.has_finalizer {
            self.world.object.deletion = Some(DeletionView {
                since: self.now,
                orphan: false,
            });
        } else {
            self.object_gone = true;
        }
    }

    /// A workload lands on the node.
    pub fn start_pods(&mut self, names: &[&str]) {
        for name in names {
            let uid = self.uid();
            self.pods.push(PodView {
                id: PodId {
                    namespace: "shop".to_owned(),
                    name: (*name).to_owned(),
                    uid: uid.as_str().into(),
                },
                mirror: false,
                daemon_set: false,
                finished: false,
                terminating: None,
                drain: PodDrain::Evict { order: 0 },
                eviction: None,
            });
        }
        self.show_pods();
    }

    /// The agent on the node asks for it to be given back.
    pub fn ask_for_reclaim(&mut self) {
        let request = ReclaimRequest {
            reason: "process-match: java".to_owned(),
            requested_at: Some(self.now),
        };
        if let NodeFact::Found(node) = &mut self.world.node {
            node.reclaim = Some(request);
        }
    }

    pub fn taint_by_hand(&mut self, key: &str) {
        let taint = NodeTaint {
            key: key.to_owned(),
            value: None,
            effect: TaintEffect::NoSchedule,
        };
        self.node().taints.push(taint);
    }

    pub fn tail(&self) -> String {
        let from = self.log.len().saturating_sub(12);
        self.log[from..].join("\n")
    }

    fn uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    /// A pod watch shows the pods; without one, nobody sees them.
    fn show_pods(&mut self) {
        let pods = self.watching_pods.then(|| self.pods.clone());
        if let NodeFact::Found(node) = &mut self.world.node {
            node.pods = pods;
        }
    }

    fn publish(&mut self, event: &Event) {
        if self
            .event_names
            .insert(format!("{}.{}", event.reason.as_str(), event.cause))
        {
            self.events
                .push((event.reason.as_str().to_owned(), event.note.clone()));
        }
    }

    fn carry_out(&mut self, action: &Action) {
        let hashes = ValidSpec::parse(&self.spec)
            .ok()
            .map(|spec| (spec.machine_hash, spec.applied_hash, spec.agent_hash));
        match action {
            Action::AddFinalizer => self.world.object.has_finalizer = true,
            Action::RemoveFinalizer => {
                self.world.object.has_finalizer = false;
                self.object_gone = self.world.object.deletion.is_some();
            }
            Action::ApplyBootstrap { .. } => self.world.bootstrap = self.applied_provider(true),
            Action::ApplyInfrastructure { .. } => self.world.infrastructure = self.applied_provider(false),
            Action::ApplyMachine => {
                self.apply_machine(hashes.map(|(machine, applied, _)| (machine, applied)))
            }
            Action::ExcludeDrain { machine, volumes } => {
                if let Some(view) = self.same_machine(machine) {
                    view.drain_excluded = true;
                    view.volume_wait_excluded |= *volumes;
                }
            }
            Action::DeleteMachine { machine } => {
                if let Some(view) = self.same_machine(machine) {
                    view.terminating = true;
                }
            }
            Action::DeleteBootstrap { uid } => mark_terminating(&mut self.world.bootstrap, uid),
            Action::DeleteInfrastructure { uid } => mark_terminating(&mut self.world.infrastructure, uid),
            Action::Cordon { node } => self.set_cordon(&node.uid, true),
            Action::Uncordon { node } => self.set_cordon(&node.uid, false),
            Action::Evict { pod } => self.evict(pod),
            Action::DeletePod { pod, grace } => self.terminate(pod, *grace),
            Action::PatchTaints {
                node, taints, owned, ..
            } => self.write_taints(&node.uid, taints, owned),
            Action::LabelForAgent { wanted, .. } => {
                if let NodeFact::Found(node) = &mut self.world.node {
                    node.agent_label = *wanted;
                }
            }
            Action::ApplyAgentConfig { node } => {
                self.world.agent_configs.retain(|config| config.node != *node);
                let rendered = hashes.map(|(_, _, agent)| agent);
                self.world.agent_configs.push(AgentConfigView {
                    node: node.clone(),
                    rendered,
                });
            }
            Action::DeleteAgentConfig { node } => {
                self.world.agent_configs.retain(|config| config.node != *node)
            }
            Action::DisableSchedule => self.edit(|spec| {
                spec.schedule.enabled = false;
                if spec
                    .r#override
                    .as_ref()
                    .is_some_and(|forced| forced.state == OverrideState::Up)
                {
                    spec.r#override = None;
                }
            }),
            Action::ClearReclaimRequest { .. } => {
                if let NodeFact::Found(node) = &mut self.world.node {
                    node.reclaim = None;
                }
            }
            Action::Publish(event) => self.publish(event),
        }
    }

    fn applied_provider(&mut self, bootstrap: bool) -> Slot<ProviderView> {
        let slot = if bootstrap {
            &self.world.bootstrap
        } else {
            &self.world.infrastructure
        };
        let uid = match slot.ours() {
            Some(view) => view.uid.clone(),
            None => self.uid().as_str().into(),
        };
        let object = if bootstrap {
            &self.spec.bootstrap_spec
        } else {
            &self.spec.infrastructure_spec
        };
        let kind = ProviderKind {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
        };
        let machine_hash = ValidSpec::parse(&self.spec).ok().map(|spec| spec.machine_hash);
        Slot::Ours(ProviderView {
            kind,
            uid,
            terminating: false,
            machine_hash,
            intact: true,
        })
    }

    fn apply_machine(&mut self, hashes: Option<(Fingerprint, Fingerprint)>) {
        let (machine_hash, applied_hash) =
            hashes.map_or((None, None), |(machine, applied)| (Some(machine), Some(applied)));
        if let Slot::Ours(machine) = &mut self.world.machine {
            machine.machine_hash = machine_hash;
            machine.applied_hash = applied_hash;
            machine.intact = true;
            return;
        }
        let uid = self.uid().as_str().into();
        self.world.machine = Slot::Ours(MachineView {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            uid,
            created_at: self.now,
            terminating: false,
            machine_hash,
            applied_hash,
            intact: true,
            capi_paused: false,
            provider_id: None,
            drain_excluded: false,
            volume_wait_excluded: false,
            delete_refused: false,
        });
    }

    fn same_machine(&mut self, uid: &five_spot_core::world::Uid) -> Option<&mut MachineView> {
        match &mut self.world.machine {
            Slot::Ours(view) if view.uid == *uid => Some(view),
            Slot::Ours(_) | Slot::Absent | Slot::Foreign { .. } => None,
        }
    }

    fn set_cordon(&mut self, uid: &five_spot_core::world::Uid, cordoned: bool) {
        if let NodeFact::Found(node) = &mut self.world.node
            && node.uid == *uid
        {
            node.unschedulable = cordoned;
            node.cordoned_by_us = cordoned;
        }
    }

    fn evict(&mut self, pod: &PodId) {
        let refusal = self
            .budget_blocks
            .then(|| "disruption budget web allows none".to_owned());
        let now = self.now;
        if refusal.is_none() {
            self.terminate(pod, SignedDuration::from_secs(10));
        }
        if let Some(view) = self.pods.iter_mut().find(|view| view.id == *pod) {
            view.eviction = Some(EvictionAttempt { at: now, refusal });
        }
    }

    fn terminate(&mut self, pod: &PodId, grace: SignedDuration) {
        let until = self.now + grace;
        if let Some(view) = self.pods.iter_mut().find(|view| view.id == *pod) {
            view.terminating = Some(PodTermination { until, grace });
        }
    }

    fn write_taints(&mut self, uid: &five_spot_core::world::Uid, taints: &[NodeTaint], owned: &[TaintId]) {
        if let NodeFact::Found(node) = &mut self.world.node
            && node.uid == *uid
        {
            node.taints = taints.to_vec();
            node.owned_taints = owned.to_vec();
        }
    }

    /// What CAPI, the provider and the kubelet do by themselves. Returns whether anything moved.
    pub fn machinery(&mut self) -> bool {
        let pods = self.kubelet();
        let machine = self.capi();
        pods || machine
    }

    fn kubelet(&mut self) -> bool {
        let now = self.now;
        let before = self.pods.len();
        self.pods
            .retain(|pod| pod.terminating.is_none_or(|termination| termination.until > now));
        self.show_pods();
        self.pods.len() != before
    }

    fn capi(&mut self) -> bool {
        if !self.provider_works {
            return false;
        }
        match &mut self.world.machine {
            Slot::Ours(machine) if machine.terminating => {
                self.world.machine = Slot::Absent;
                self.world.bootstrap = Slot::Absent;
                self.world.infrastructure = Slot::Absent;
                self.world.node = NodeFact::NotYet;
                self.pods.clear();
                true
            }
            Slot::Ours(machine) if self.world.node == NodeFact::NotYet => {
                machine.provider_id = Some("remote://desk".to_owned());
                let uid = self.uid().as_str().into();
                self.world.node = NodeFact::Found(new_node(uid));
                self.show_pods();
                true
            }
            Slot::Ours(_) | Slot::Foreign { .. } => false,
            Slot::Absent => {
                let slots = [&mut self.world.bootstrap, &mut self.world.infrastructure];
                let mut moved = false;
                for slot in slots {
                    if slot.ours().is_some_and(|object| object.terminating) {
                        *slot = Slot::Absent;
                        moved = true;
                    }
                }
                moved
            }
        }
    }
}

fn new_node(uid: five_spot_core::world::Uid) -> NodeView {
    NodeView {
        name: "desk-1".into(),
        uid,
        resource_version: "1".into(),
        readiness: Readiness::Ready,
        unschedulable: false,
        cordoned_by_us: false,
        taints: Vec::new(),
        owned_taints: Vec::new(),
        agent_label: false,
        reclaim: None,
        pods: None,
    }
}

fn mark_terminating(slot: &mut Slot<ProviderView>, uid: &five_spot_core::world::Uid) {
    if let Slot::Ours(view) = slot
        && view.uid == *uid
    {
        view.terminating = true;
    }
}

/// Labels as tests write them.
pub fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
