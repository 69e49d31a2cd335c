//! Reads a Machine with its related objects and carries out the next step.

use super::super::context::{ActorContext, Change};
use super::super::kinds::{
    BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP, INFRASTRUCTURE_GROUP, Kind, ObjectKey,
};
use super::super::settings::StandInSettings;
use super::super::work_queue::{Actor, Next};
use super::deletion::{self, DeletionStep};
use super::provisioning::{self, Control};
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

/// The label of Machines of a control plane that Cluster API manages.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// The stand-in for the core controllers of Cluster API.
#[derive(Debug)]
pub(in super::super) struct ClusterApi {
    clock: Clock,
    settings: StandInSettings,
    /// The earliest time of the next drain pass or volume check of each Machine. Cluster API does the same:
    /// changes of a Machine do not shorten the interval.
    next_pass: BTreeMap<ObjectKey, Instant>,
}

impl ClusterApi {
    pub(in super::super) fn new(clock: Clock, settings: StandInSettings) -> Self {
        Self { clock, settings, next_pass: BTreeMap::new() }
    }

    /// The custom kinds to watch.
    pub(in super::super) fn wants(group: &str, kind: &str) -> bool {
        match group {
            CORE_GROUP => matches!(kind, "Cluster" | "Machine" | "MachineDrainRule"),
            BOOTSTRAP_GROUP | INFRASTRUCTURE_GROUP | CONTROL_PLANE_GROUP => true,
            _ => false,
        }
    }
}

impl Actor for ClusterApi {
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey> {
        let (key, Some(object)) = (&change.key, change.object()) else {
            return Vec::new();
        };
        let machines = |is_meant: &dyn Fn(&DynamicObject) -> bool| {
            let Some(kind) = context.kind(CORE_GROUP, "Machine") else {
                return Vec::new();
            };
            let found = context.list(&kind, &key.namespace).filter(|(_, machine)| is_meant(machine));
            found.map(|(key, _)| key.clone()).collect::<Vec<ObjectKey>>()
        };
        if key.kind.is(CORE_GROUP, "Machine") {
            let mut concerned = vec![key.clone()];
            if change.after.is_none() {
                // The Cluster may have waited for this.
                let cluster = object.data["spec"]["clusterName"].as_str();
                let clusters = context.kind(CORE_GROUP, "Cluster");
                concerned.extend(clusters.zip(cluster).map(|(kind, name)| kind.key(&key.namespace, name)));
            }
            return concerned;
        }
        if key.kind.is(CORE_GROUP, "Cluster") {
            let mut concerned = machines(&|machine| machine.data["spec"]["clusterName"] == key.name.as_str());
            concerned.push(key.clone());
            return concerned;
        }
        if key.kind == Kind::node() {
            let id = &object.data["spec"]["providerID"];
            return machines(&|machine| id.is_string() && machine.data["spec"]["providerID"] == *id);
        }
        let is_this = |found: Option<Reference>| {
            found.is_some_and(|one| key.kind.is(&one.group, &one.kind) && one.name == key.name)
        };
        let mut concerned = machines(&|machine| {
            let spec = &machine.data["spec"];
            is_this(reference(&spec["bootstrap"]["configRef"]))
                || is_this(reference(&spec["infrastructureRef"]))
        });
        if let Some(clusters) = context.kind(CORE_GROUP, "Cluster") {
            let named = context.list(&clusters, &key.namespace).filter(|(_, cluster)| {
                let spec = &cluster.data["spec"];
                is_this(reference(&spec["controlPlaneRef"])) || is_this(reference(&spec["infrastructureRef"]))
            });
            concerned.extend(named.map(|(key, _)| key.clone()));
        }
        concerned
    }

    async fn reconcile(&mut self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
        if !self.settings.is_cluster_api_running() {
            // All objects are reconciled when it is started again.
            return Ok(None);
        }
        if key.kind.is(CORE_GROUP, "Cluster") {
            return cluster::reconcile(key, context, self.clock.now()).await;
        }
        let Some(facts) = observe(key, context).filter(|facts| facts.cluster.is_some()) else {
            // Without the Cluster, Cluster API does nothing with a Machine, not even add its finalizer.
            return Ok(None);
        };
        let contract = Contract::of(&key.kind);
        if provisioning::is_paused(&facts) {
            if let Some(status) = status::paused(&facts, contract, self.clock.now()) {
                context.merge_status(key, status).await?;
            }
            return Ok(None);
        }
        if facts.machine.metadata.deletion_timestamp.is_none() {
            self.grow(key, context, facts, contract).await
        } else if status::is_taken_on(&facts) {
            self.leave(key, context, facts, contract).await
        } else {
            Ok(None)
        }
    }
}

impl ClusterApi {
    async fn grow(
        &self,
        key: &ObjectKey,
        context: &mut ActorContext,
        facts: Facts,
        contract: Contract,
    ) -> kube::Result<Next> {
        if let Some(patch) = provisioning::taking_on(&facts) {
            context.merge(key, patch).await?;
        }
        if !self.take_parts(key, context, &facts).await? {
            return Ok(None);
        }
        if let Some(patch) = provisioning::progress(&facts) {
            context.merge(key, patch).await?;
        }
        // The status includes what was just written.
        let Some(facts) = observe(key, context) else {
            return Ok(None);
        };
        context.merge_status(key, status::status(&facts, contract, None, self.clock.now())).await?;
        Ok(None)
    }

    /// Makes the Machine the controller of its parts. Returns false if another object is.
    async fn take_parts(
        &self,
        key: &ObjectKey,
        context: &mut ActorContext,
        facts: &Facts,
    ) -> kube::Result<bool> {
        for part in [&facts.bootstrap, &facts.infrastructure].into_iter().flatten() {
            match provisioning::control(&facts.machine, part) {
                Control::Held => {}
                Control::Free(patch) => {
                    let Some(part) = key_of(part, context, &key.namespace) else {
                        continue;
                    };
                    context.merge(&part, patch).await?;
                }
                Control::Taken => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn leave(
        &mut self,
        key: &ObjectKey,
        context: &mut ActorContext,
        facts: Facts,
        contract: Contract,
    ) -> kube::Result<Next> {
        let facts = facts.with_named_node();
        if let Some(pause) = self.until_next_pass(key) {
            return Ok(Some(pause));
        }
        if !self.take_parts(key, context, &facts).await? {
            return Ok(None);
        }
        let mut deletion = deletion::next(&facts, contract, false, self.clock.now());
        let mut drain_message = None;
        if deletion == DeletionStep::Drain {
            let report = self.drain(key, context, &facts).await?;
            if report.is_drained() {
                deletion = deletion::next(&facts, contract, true, self.clock.now());
            } else {
                let began = facts.machine.data["status"]["deletion"]["nodeDrainStartTime"].as_str();
                drain_message = Some(report.message(began.unwrap_or(&self.clock.stamp())));
            }
        }
        if matches!(deletion, DeletionStep::Drain | DeletionStep::VolumeDetach) {
            self.next_pass.insert(key.clone(), Instant::now() + self.settings.timing().drain_pass);
        }
        if deletion == DeletionStep::Finalizer {
            let released = cluster::with_finalizers(&facts.machine, |all| {
                all.retain(|one| one != provisioning::FINALIZER);
            });
            context.merge(key, released).await?;
            return Ok(None);
        }
        let message = drain_message.unwrap_or_else(|| deletion.message(&facts, self.clock.now()));
        let leaving = Leaving { deletion, message };
        context.merge_status(key, status::status(&facts, contract, Some(&leaving), self.clock.now())).await?;
        self.take_leave(key, context, &facts, deletion).await
    }

    /// Carries out a step, and returns the time of the next attempt if no watch event will trigger it.
    async fn take_leave(
        &self,
        key: &ObjectKey,
        context: &mut ActorContext,
        facts: &Facts,
        deletion: DeletionStep,
    ) -> kube::Result<Next> {
        let going = match deletion {
            DeletionStep::Drain | DeletionStep::VolumeDetach => {
                return Ok(Some(self.settings.timing().drain_pass));
            }
            DeletionStep::PreDrainHook | DeletionStep::PreTerminateHook | DeletionStep::Finalizer => {
                return Ok(None);
            }
            DeletionStep::Infrastructure => &facts.infrastructure,
            DeletionStep::Bootstrap => &facts.bootstrap,
            DeletionStep::Node => &facts.node,
        };
        if let Some(object) = going.as_ref().filter(|object| object.metadata.deletion_timestamp.is_none())
            && let Some(part) = key_of(object, context, &key.namespace)
        {
            context.delete(&part, object).await?;
        }
        Ok(None)
    }

    fn until_next_pass(&mut self, key: &ObjectKey) -> Next {
        let pause = self.next_pass.get(key)?.saturating_duration_since(Instant::now());
        if pause.is_zero() {
            self.next_pass.remove(key);
            return None;
        }
        Some(pause)
    }

    /// Cordons the Node and runs one drain pass.
    async fn drain(
        &self,
        key: &ObjectKey,
        context: &mut ActorContext,
        facts: &Facts,
    ) -> kube::Result<drain::Report> {
        let Some(node) = &facts.node else {
            return Ok(drain::Report::default());
        };
        if node.data["spec"]["unschedulable"] != true {
            context.merge(&Kind::node().key_of(node), json!({"spec": {"unschedulable": true}})).await?;
        }
        let rules: Vec<DynamicObject> = context
            .kind(CORE_GROUP, "MachineDrainRule")
            .map(|kind| context.list(&kind, &key.namespace).map(|(_, rule)| (**rule).clone()).collect())
            .unwrap_or_default();
        drain::pass(context, facts, node, &rules, self.clock.now()).await
    }
}

fn observe(key: &ObjectKey, context: &ActorContext) -> Option<Facts> {
    let machine = context.get(key)?;
    let spec = &machine.data["spec"];
    let referred = |value: &serde_json::Value| -> Option<Arc<DynamicObject>> {
        let Reference { group, kind, name } = reference(value)?;
        context.get(&context.kind(&group, &kind)?.key(&key.namespace, &name))
    };
    let cluster = spec["clusterName"]
        .as_str()
        .and_then(|name| context.get(&context.kind(CORE_GROUP, "Cluster")?.key(&key.namespace, name)));
    let node = spec["providerID"].as_str().and_then(|id| node_of(id, key, &machine, context));
    Some(Facts {
        control_plane: cluster
            .as_ref()
            .and_then(|cluster| referred(&cluster.data["spec"]["controlPlaneRef"])),
        has_control_plane_machine: has_control_plane_machine(key, &machine, context),
        cluster,
        bootstrap: referred(&spec["bootstrap"]["configRef"]),
        infrastructure: referred(&spec["infrastructureRef"]),
        node,
        machine,
    })
}

/// The Node with the provider ID of a Machine: the one that it names, else one that no other Machine names. In a double loan
/// two machines have the same ID.
fn node_of(
    id: &str,
    key: &ObjectKey,
    machine: &DynamicObject,
    context: &ActorContext,
) -> Option<Arc<DynamicObject>> {
    let names = |machine: &DynamicObject, node: &DynamicObject| {
        machine.data["status"]["nodeRef"]["name"] == node.name_any()
    };
    let is_taken = |node: &DynamicObject| {
        context.list(&key.kind, &key.namespace).any(|(other, one)| other != key && names(one, node))
    };
    let nodes = context.list(&Kind::node(), "").map(|(_, node)| node);
    let with_id = nodes.filter(|node| node.data["spec"]["providerID"] == id);
    let own = with_id.filter(|node| names(machine, node) || !is_taken(node));
    own.min_by_key(|node| !names(machine, node)).cloned()
}

/// Returns true if the Cluster of a Machine has a control plane that Cluster API manages and that is not
/// being deleted.
fn has_control_plane_machine(key: &ObjectKey, machine: &DynamicObject, context: &ActorContext) -> bool {
    let mut machines = context.list(&key.kind, &key.namespace);
    machines.any(|(_, one)| {
        one.data["spec"]["clusterName"] == machine.data["spec"]["clusterName"]
            && one.labels().contains_key(CONTROL_PLANE_LABEL)
            && one.metadata.deletion_timestamp.is_none()
    })
}

/// The key of a part or a Node.
fn key_of(object: &DynamicObject, context: &ActorContext, namespace: &str) -> Option<ObjectKey> {
    let types = object.types.as_ref()?;
    let (group, _) = types.api_version.split_once('/').unwrap_or(("", ""));
    let kind = context.kind(group, &types.kind)?;
    Some(if kind == Kind::node() { kind.key_of(object) } else { kind.key(namespace, &object.name_any()) })
}
