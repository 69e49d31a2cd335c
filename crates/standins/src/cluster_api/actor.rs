//! Observes a Machine with all that belongs to it, and does the next thing about it.

use super::super::agenda::{Actor, Next};
use super::super::kinds::{
    BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP, INFRASTRUCTURE_GROUP, Kind, Place,
};
use super::super::scenario::Scenario;
use super::super::stage::{Change, Stage};
use super::departure::{self, Departure};
use super::growth::{self, Control};
use super::shape::{Contract, Reference, reference};
use super::status::{self, Leaving};
use super::{Facts, cluster, drain};
use five_spot_apiserver::clock::Clock;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// On the Machines of a control plane that Cluster API makes.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// The stand-in for Cluster API's core.
#[derive(Debug)]
pub(in super::super) struct ClusterApi {
    clock: Clock,
    scenario: Scenario,
    /// When each Machine that is drained, or waits for volumes, may be looked at again. Cluster API keeps the same note:
    /// news of a Machine do not hurry it.
    next_pass: BTreeMap<Place, Instant>,
}

impl ClusterApi {
    pub(in super::super) fn new(clock: Clock, scenario: Scenario) -> Self {
        Self { clock, scenario, next_pass: BTreeMap::new() }
    }

    /// Which custom kinds it watches.
    pub(in super::super) fn wants(group: &str, kind: &str) -> bool {
        match group {
            CORE_GROUP => matches!(kind, "Cluster" | "Machine" | "MachineDrainRule"),
            BOOTSTRAP_GROUP | INFRASTRUCTURE_GROUP | CONTROL_PLANE_GROUP => true,
            _ => false,
        }
    }
}

impl Actor for ClusterApi {
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place> {
        let (place, Some(object)) = (&change.place, change.object()) else {
            return Vec::new();
        };
        let machines = |is_meant: &dyn Fn(&DynamicObject) -> bool| {
            let Some(kind) = stage.kind(CORE_GROUP, "Machine") else {
                return Vec::new();
            };
            let found = stage.list(&kind, &place.namespace).filter(|(_, machine)| is_meant(machine));
            found.map(|(place, _)| place.clone()).collect::<Vec<Place>>()
        };
        if place.kind.is(CORE_GROUP, "Machine") {
            let mut concerned = vec![place.clone()];
            if change.after.is_none() {
                // Its Cluster may have been waiting for that.
                let cluster = object.data["spec"]["clusterName"].as_str();
                let clusters = stage.kind(CORE_GROUP, "Cluster");
                concerned
                    .extend(clusters.zip(cluster).map(|(kind, name)| kind.place(&place.namespace, name)));
            }
            return concerned;
        }
        if place.kind.is(CORE_GROUP, "Cluster") {
            let mut concerned =
                machines(&|machine| machine.data["spec"]["clusterName"] == place.name.as_str());
            concerned.push(place.clone());
            return concerned;
        }
        if place.kind == Kind::node() {
            let id = &object.data["spec"]["providerID"];
            return machines(&|machine| id.is_string() && machine.data["spec"]["providerID"] == *id);
        }
        let is_this = |found: Option<Reference>| {
            found.is_some_and(|one| place.kind.is(&one.group, &one.kind) && one.name == place.name)
        };
        let mut concerned = machines(&|machine| {
            let spec = &machine.data["spec"];
            is_this(reference(&spec["bootstrap"]["configRef"]))
                || is_this(reference(&spec["infrastructureRef"]))
        });
        if let Some(clusters) = stage.kind(CORE_GROUP, "Cluster") {
            let named = stage.list(&clusters, &place.namespace).filter(|(_, cluster)| {
                let spec = &cluster.data["spec"];
                is_this(reference(&spec["controlPlaneRef"])) || is_this(reference(&spec["infrastructureRef"]))
            });
            concerned.extend(named.map(|(place, _)| place.clone()));
        }
        concerned
    }

    async fn attend(&mut self, place: &Place, stage: &mut Stage) -> kube::Result<Next> {
        if !self.scenario.is_cluster_api_running() {
            // Everything is looked at again when it runs again.
            return Ok(None);
        }
        if place.kind.is(CORE_GROUP, "Cluster") {
            return cluster::attend(place, stage, self.clock.now()).await;
        }
        let Some(facts) = observe(place, stage).filter(|facts| facts.cluster.is_some()) else {
            // Without its Cluster, Cluster API does nothing about a Machine, not even take it on.
            return Ok(None);
        };
        let contract = Contract::of(&place.kind);
        if growth::is_paused(&facts) {
            if let Some(status) = status::paused(&facts, contract, self.clock.now()) {
                stage.merge_status(place, status).await?;
            }
            return Ok(None);
        }
        if facts.machine.metadata.deletion_timestamp.is_none() {
            self.grow(place, stage, facts, contract).await
        } else if status::is_taken_on(&facts) {
            self.leave(place, stage, facts, contract).await
        } else {
            Ok(None)
        }
    }
}

impl ClusterApi {
    async fn grow(
        &self,
        place: &Place,
        stage: &mut Stage,
        facts: Facts,
        contract: Contract,
    ) -> kube::Result<Next> {
        if let Some(patch) = growth::taking_on(&facts) {
            stage.merge(place, patch).await?;
        }
        if !self.take_parts(place, stage, &facts).await? {
            return Ok(None);
        }
        if let Some(patch) = growth::progress(&facts) {
            stage.merge(place, patch).await?;
        }
        // What was just written is part of what the status tells.
        let Some(facts) = observe(place, stage) else {
            return Ok(None);
        };
        stage.merge_status(place, status::status(&facts, contract, None, self.clock.now())).await?;
        Ok(None)
    }

    /// Makes the Machine the controller of its parts. False if somebody else is.
    async fn take_parts(&self, place: &Place, stage: &mut Stage, facts: &Facts) -> kube::Result<bool> {
        for part in [&facts.bootstrap, &facts.infrastructure].into_iter().flatten() {
            match growth::control(&facts.machine, part) {
                Control::Held => {}
                Control::Free(patch) => {
                    let Some(part) = place_of(part, stage, &place.namespace) else {
                        continue;
                    };
                    stage.merge(&part, patch).await?;
                }
                Control::Taken => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn leave(
        &mut self,
        place: &Place,
        stage: &mut Stage,
        facts: Facts,
        contract: Contract,
    ) -> kube::Result<Next> {
        if let Some(pause) = self.until_next_pass(place) {
            return Ok(Some(pause));
        }
        if !self.take_parts(place, stage, &facts).await? {
            return Ok(None);
        }
        let mut departure = departure::next(&facts, contract, false, self.clock.now());
        let mut drain_message = None;
        if departure == Departure::Drain {
            let report = self.drain(place, stage, &facts).await?;
            if report.is_drained() {
                departure = departure::next(&facts, contract, true, self.clock.now());
            } else {
                let began = facts.machine.data["status"]["deletion"]["nodeDrainStartTime"].as_str();
                drain_message = Some(report.message(began.unwrap_or(&self.clock.stamp())));
            }
        }
        if matches!(departure, Departure::Drain | Departure::VolumeDetach) {
            self.next_pass.insert(place.clone(), Instant::now() + self.scenario.timing().drain_pass);
        }
        if departure == Departure::Finalizer {
            let released =
                cluster::with_finalizers(&facts.machine, |all| all.retain(|one| one != growth::FINALIZER));
            stage.merge(place, released).await?;
            return Ok(None);
        }
        let message = drain_message.unwrap_or_else(|| departure.message(&facts, self.clock.now()));
        let leaving = Leaving { departure, message };
        stage.merge_status(place, status::status(&facts, contract, Some(&leaving), self.clock.now())).await?;
        self.take_leave(place, stage, &facts, departure).await
    }

    /// Does what a step asks for, and says when to look again if nothing tells.
    async fn take_leave(
        &self,
        place: &Place,
        stage: &mut Stage,
        facts: &Facts,
        departure: Departure,
    ) -> kube::Result<Next> {
        let going = match departure {
            Departure::Drain | Departure::VolumeDetach => return Ok(Some(self.scenario.timing().drain_pass)),
            Departure::PreDrainHook | Departure::PreTerminateHook | Departure::Finalizer => return Ok(None),
            Departure::Infrastructure => &facts.infrastructure,
            Departure::Bootstrap => &facts.bootstrap,
            Departure::Node => &facts.node,
        };
        if let Some(object) = going.as_ref().filter(|object| object.metadata.deletion_timestamp.is_none())
            && let Some(part) = place_of(object, stage, &place.namespace)
        {
            stage.delete(&part, object).await?;
        }
        Ok(None)
    }

    fn until_next_pass(&mut self, place: &Place) -> Next {
        let pause = self.next_pass.get(place)?.saturating_duration_since(Instant::now());
        if pause.is_zero() {
            self.next_pass.remove(place);
            return None;
        }
        Some(pause)
    }

    /// Cordons the Node and makes one pass over its pods.
    async fn drain(&self, place: &Place, stage: &mut Stage, facts: &Facts) -> kube::Result<drain::Report> {
        let Some(node) = &facts.node else {
            return Ok(drain::Report::default());
        };
        if node.data["spec"]["unschedulable"] != true {
            stage.merge(&Kind::node().place_of(node), json!({"spec": {"unschedulable": true}})).await?;
        }
        let rules: Vec<DynamicObject> = stage
            .kind(CORE_GROUP, "MachineDrainRule")
            .map(|kind| stage.list(&kind, &place.namespace).map(|(_, rule)| (**rule).clone()).collect())
            .unwrap_or_default();
        drain::pass(stage, facts, node, &rules, self.clock.now()).await
    }
}

fn observe(place: &Place, stage: &Stage) -> Option<Facts> {
    let machine = stage.get(place)?;
    let spec = &machine.data["spec"];
    let referred = |value: &serde_json::Value| -> Option<Arc<DynamicObject>> {
        let Reference { group, kind, name } = reference(value)?;
        stage.get(&stage.kind(&group, &kind)?.place(&place.namespace, &name))
    };
    let cluster = spec["clusterName"]
        .as_str()
        .and_then(|name| stage.get(&stage.kind(CORE_GROUP, "Cluster")?.place(&place.namespace, name)));
    let node = spec["providerID"].as_str().and_then(|id| {
        let mut nodes = stage.list(&Kind::node(), "");
        nodes.find(|(_, node)| node.data["spec"]["providerID"] == id).map(|(_, node)| node.clone())
    });
    Some(Facts {
        control_plane: cluster
            .as_ref()
            .and_then(|cluster| referred(&cluster.data["spec"]["controlPlaneRef"])),
        has_control_plane_machine: has_control_plane_machine(place, &machine, stage),
        cluster,
        bootstrap: referred(&spec["bootstrap"]["configRef"]),
        infrastructure: referred(&spec["infrastructureRef"]),
        node,
        machine,
    })
}

/// Whether the Cluster of a Machine has a control plane that Cluster API made, and that stays.
fn has_control_plane_machine(place: &Place, machine: &DynamicObject, stage: &Stage) -> bool {
    let mut machines = stage.list(&place.kind, &place.namespace);
    machines.any(|(_, one)| {
        one.data["spec"]["clusterName"] == machine.data["spec"]["clusterName"]
            && one.labels().contains_key(CONTROL_PLANE_LABEL)
            && one.metadata.deletion_timestamp.is_none()
    })
}

/// Where a part or a Node is.
fn place_of(object: &DynamicObject, stage: &Stage, namespace: &str) -> Option<Place> {
    let types = object.types.as_ref()?;
    let (group, _) = types.api_version.split_once('/').unwrap_or(("", ""));
    let kind = stage.kind(group, &types.kind)?;
    Some(if kind == Kind::node() { kind.place_of(object) } else { kind.place(namespace, &object.name_any()) })
}
