//! A cluster in a few lines: it does what decisions ask for, and what CAPI, a kubelet and people do by
//! themselves. It knows nothing of how decisions are made.

mod cluster;

use five_spot_api::reclaim::ReclaimRequest;
use five_spot_api::{
    MachineTemplate, NodeTaint, OnTimeout, OverrideSpec, OverrideState, Phase, ProviderObject, ScheduleSpec,
    ScheduledMachineSpec, ScheduledMachineStatus, TaintEffect, WorkloadCluster,
};
use five_spot_core::claim::MachineClaims;
use five_spot_core::world::{
    ClusterView, DeletionView, FormerNode, MachineView, NodeFact, NodeView, ObjectView, PodDrain, PodId,
    PodView, Policy, Slot, Workload, World,
};
use five_spot_core::{Decision, InvalidSpec, ValidSpec, decide, decide_invalid};
use jiff::Timestamp;
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
        machine_identity: None,
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
    /// Nodes of new machines join.
    pub nodes_join: bool,
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
                brake: five_spot_core::world::Brake::default(),
                object: ObjectView {
                    namespace: "team".to_owned(),
                    name: "desk".to_owned(),
                    uid: "object".into(),
                    created_at: time(MONDAY),
                    generation: 1,
                    deletion: None,
                    has_finalizer: false,
                    capi_paused: false,
                    paused: None,
                    resume: None,
                },
                status: ScheduledMachineStatus::default(),
                cluster: Some(ClusterView { uid: "cluster".into(), paused: false, terminating: false }),
                namespace_pause: None,
                references: Vec::new(),
                bootstrap: Slot::Absent,
                infrastructure: Slot::Absent,
                machine: Slot::Absent,
                workload: Workload::Reachable(WorkloadCluster::MANAGEMENT),
                node: NodeFact::NotYet,
                former_node: FormerNode::Gone,
                unrecorded_since: None,
                agent_configs: Vec::new(),
                claims: MachineClaims::default(),
                failures: five_spot_core::world::Failures::default(),
            },
            now: time(MONDAY),
            pods: Vec::new(),
            budget_blocks: false,
            provider_works: true,
            nodes_join: true,
            object_gone: false,
            watching_pods: false,
            log: Vec::new(),
            events: Vec::new(),
            event_names: BTreeSet::new(),
            uids: 0,
        }
    }

    /// Returns the decision for the current state.
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
            let next = if self.object_gone { None } else { self.decide().wake_at };
            match next.into_iter().chain(self.pods_leave_at()).filter(|next| *next <= to).min() {
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
        let condition = self.world.status.conditions.iter().find(|condition| condition.type_ == kind);
        condition.map_or(("", ""), |condition| (condition.status.as_str(), condition.reason.as_str()))
    }

    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    pub fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events).into_iter().map(|(reason, _)| reason).collect()
    }

    /// The events with what they say.
    pub fn take_notes(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        events.into_iter().map(|(reason, note)| format!("{reason}: {note}")).collect()
    }

    pub fn node(&mut self) -> &mut NodeView {
        match &mut self.world.node {
            NodeFact::Found(node) => node,
            other @ (NodeFact::NotYet
            | NodeFact::Gone
            | NodeFact::Unknown
            | NodeFact::Renamed(_)
            | NodeFact::Mismatch { .. }) => {
                panic!("no node: {other:?}")
            }
        }
    }

    pub fn machine(&mut self) -> &mut MachineView {
        match &mut self.world.machine {
            Slot::Ours(machine) => machine,
            other @ (Slot::Absent | Slot::Foreign { .. } | Slot::Unknown) => panic!("no machine: {other:?}"),
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
        let forced = OverrideSpec { state, until: until.to_owned(), reason: None };
        self.edit(|spec| spec.r#override = Some(forced));
    }

    /// A person deletes the object.
    pub fn delete_object(&mut self) {
        if self.world.object.has_finalizer {
            self.world.object.deletion = Some(DeletionView { since: self.now, orphan: false });
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
                comes_back: None,
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
        let request =
            ReclaimRequest { reason: "process-match: java".to_owned(), requested_at: Some(self.now) };
        if let NodeFact::Found(node) = &mut self.world.node {
            node.reclaim = Some(request);
        }
    }

    pub fn taint_by_hand(&mut self, key: &str) {
        let taint = NodeTaint { key: key.to_owned(), value: None, effect: TaintEffect::NoSchedule };
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

    /// The pods are visible only while they are watched.
    fn show_pods(&mut self) {
        let pods = self.watching_pods.then(|| self.pods.clone());
        if let NodeFact::Found(node) = &mut self.world.node {
            node.pods = pods;
        }
    }
}

/// Labels as tests write them.
pub fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
