//! The simulated cluster: the effects of actions, and the work of Cluster API, the provider and the kubelet.

use super::Simulation;
use five_spot_api::{NodeTaint, OverrideState};
use five_spot_core::action::{Action, Event};
use five_spot_core::claim::{Claim, HeldClaim};
use five_spot_core::world::{
    AgentConfigView, EvictionAttempt, MachineView, NodeFact, NodeView, PodId, PodTermination, ProviderView,
    Readiness, Slot, TaintId, Uid,
};
use five_spot_core::{Fingerprint, MachineIdentity, ProviderKind, ValidSpec};
use jiff::SignedDuration;

impl Simulation {
    pub(super) fn publish(&mut self, event: &Event) {
        if self.event_names.insert(format!("{}.{}", event.reason.as_str(), event.cause)) {
            self.events.push((event.reason.as_str().to_owned(), event.note.clone()));
        }
    }

    fn claim(&mut self, machine: MachineIdentity) {
        let claim = HeldClaim { machine, version: "1".into(), is_current: true };
        self.world.claims.current = Claim::Held(claim);
    }

    fn release(&mut self, machine: MachineIdentity) {
        self.world.claims.former.retain(|claim| claim.machine != machine);
        if matches!(&self.world.claims.current, Claim::Held(claim) if claim.machine == machine) {
            self.world.claims.current = self.free(machine);
        }
    }

    /// A machine that nobody holds and nobody waits for.
    pub fn free(&self, machine: MachineIdentity) -> Claim {
        Claim::Free { machine, waiters: Vec::new(), since: self.now }
    }

    pub(super) fn carry_out(&mut self, action: &Action) {
        let hashes = ValidSpec::parse(&self.spec)
            .ok()
            .map(|spec| (spec.machine_hash, spec.applied_hash, spec.agent_hash));
        match action {
            Action::AddFinalizer => self.world.object.has_finalizer = true,
            Action::RemoveFinalizer => {
                self.world.object.has_finalizer = false;
                self.object_gone = self.world.object.deletion.is_some();
            }
            Action::Claim { machine, .. } => self.claim(*machine),
            Action::Release { machine, .. } => self.release(*machine),
            Action::ApplyBootstrap { .. } => self.world.bootstrap = self.applied_provider(true),
            Action::ApplyInfrastructure { .. } => self.world.infrastructure = self.applied_provider(false),
            Action::ApplyMachine => {
                self.apply_machine(hashes.map(|(machine, applied, _)| (machine, applied)));
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
            Action::PatchTaints { node, taints, owned, .. } => self.write_taints(&node.uid, taints, owned),
            Action::LabelForAgent { wanted, .. } => {
                if let NodeFact::Found(node) = &mut self.world.node {
                    node.agent_label = *wanted;
                }
            }
            Action::ApplyAgentConfig { node } => {
                self.world.agent_configs.retain(|config| config.node != node.name);
                let (name, node_uid) = (node.name.clone(), Some(node.uid.clone()));
                let rendered = hashes.map(|(_, _, agent)| agent);
                self.world.agent_configs.push(AgentConfigView { node: name, rendered, node_uid });
            }
            Action::RearmAgent { node } => {
                let mut configs = self.world.agent_configs.iter_mut();
                if let Some(config) = configs.find(|config| config.node == node.name) {
                    config.node_uid = Some(node.uid.clone());
                }
            }
            Action::DeleteAgentConfig { node } => {
                self.world.agent_configs.retain(|config| config.node != *node);
            }
            Action::DisableSchedule => self.edit(|spec| {
                spec.schedule.enabled = false;
                if spec.r#override.as_ref().is_some_and(|forced| forced.state == OverrideState::Up) {
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
        let slot = if bootstrap { &self.world.bootstrap } else { &self.world.infrastructure };
        let uid = match slot.ours() {
            Some(view) => view.uid.clone(),
            None => self.uid().as_str().into(),
        };
        let object = if bootstrap { &self.spec.bootstrap_spec } else { &self.spec.infrastructure_spec };
        let kind = ProviderKind { api_version: object.api_version.clone(), kind: object.kind.clone() };
        let machine_hash = ValidSpec::parse(&self.spec).ok().map(|spec| spec.machine_hash);
        Slot::Ours(ProviderView { kind, uid, terminating: false, machine_hash, intact: true })
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

    fn same_machine(&mut self, uid: &Uid) -> Option<&mut MachineView> {
        match &mut self.world.machine {
            Slot::Ours(view) if view.uid == *uid => Some(view),
            Slot::Ours(_) | Slot::Absent | Slot::Foreign { .. } | Slot::Unknown => None,
        }
    }

    fn set_cordon(&mut self, uid: &Uid, cordoned: bool) {
        if let NodeFact::Found(node) = &mut self.world.node
            && node.uid == *uid
        {
            node.unschedulable = cordoned;
            node.cordoned_by_us = cordoned;
        }
    }

    fn evict(&mut self, pod: &PodId) {
        let refusal = self.budget_blocks.then(|| "disruption budget web allows none".to_owned());
        let now = self.now;
        if refusal.is_none() {
            self.terminate(pod, SignedDuration::from_secs(10));
        }
        if let Some(view) = self.pods.iter_mut().find(|view| view.id == *pod) {
            view.eviction = Some(EvictionAttempt { at: now, refusal, failed: false });
        }
    }

    fn terminate(&mut self, pod: &PodId, grace: SignedDuration) {
        let until = self.now + grace;
        if let Some(view) = self.pods.iter_mut().find(|view| view.id == *pod) {
            view.terminating = Some(PodTermination { until, grace });
        }
    }

    fn write_taints(&mut self, uid: &Uid, taints: &[NodeTaint], owned: &[TaintId]) {
        if let NodeFact::Found(node) = &mut self.world.node
            && node.uid == *uid
        {
            node.taints = taints.to_vec();
            node.owned_taints = owned.to_vec();
        }
    }

    /// Advances Cluster API, the provider and the kubelet. Returns true if anything changed.
    pub fn machinery(&mut self) -> bool {
        let pods = self.kubelet();
        let machine = self.capi();
        pods || machine
    }

    fn kubelet(&mut self) -> bool {
        let now = self.now;
        let before = self.pods.len();
        self.pods.retain(|pod| pod.terminating.is_none_or(|termination| termination.until > now));
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
            Slot::Ours(machine) if self.nodes_join && self.world.node == NodeFact::NotYet => {
                machine.provider_id = Some("remote://desk".to_owned());
                let uid = self.uid().as_str().into();
                self.world.node = NodeFact::Found(new_node(uid));
                self.show_pods();
                true
            }
            Slot::Ours(_) | Slot::Foreign { .. } | Slot::Unknown => false,
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

fn new_node(uid: Uid) -> NodeView {
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
        drain_rules_resolved: true,
    }
}

fn mark_terminating(slot: &mut Slot<ProviderView>, uid: &Uid) {
    if let Slot::Ours(view) = slot
        && view.uid == *uid
    {
        view.terminating = true;
    }
}
