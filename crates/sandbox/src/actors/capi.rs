//! Cluster API's Machines: up through their phases, down in its order.
//!
//! Deletion goes as the original's: pre-drain hooks, cordon and evictions in passes, pre-terminate hooks,
//! infrastructure, bootstrap, Node, finalizer. A node whose infrastructure is already going is not drained.

use super::drain::drain_pass;
use super::drive::{Actor, earlier};
use super::kinds::{bootstrap_configs, infrastructure_machines, machines, nodes};
use super::objects::{Objects, has_condition, place, time_left};
use crate::clock::{Clock, whole_seconds};
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::time::Duration;

const FINALIZER: &str = "machine.cluster.x-k8s.io";
const PAUSED: &str = "cluster.x-k8s.io/paused";
const EXCLUDE_DRAIN: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
const PRE_DRAIN_HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/";
const PRE_TERMINATE_HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/";

/// How Cluster API behaves.
#[derive(Clone, Debug)]
pub struct CapiConfig {
    /// From provisioned infrastructure until its Node joins.
    pub node_joins_after: Duration,
    /// Between two passes of a drain.
    pub drain_interval: Duration,
}

impl Default for CapiConfig {
    fn default() -> Self {
        Self { node_joins_after: Duration::from_secs(15), drain_interval: Duration::from_secs(20) }
    }
}

/// The Machine controller of Cluster API.
pub struct Capi {
    objects: Objects,
    clock: Clock,
    config: CapiConfig,
}

impl Capi {
    /// A controller that uses `client`.
    pub fn new(client: kube::Client, clock: Clock, config: CapiConfig) -> Self {
        Self { objects: Objects::new(client, "capi-stand-in"), clock, config }
    }

    async fn attend(&self, machine: &Value) -> Result<Option<Duration>, kube::Error> {
        if machine["metadata"]["annotations"][PAUSED].is_string() {
            return Ok(None);
        }
        if machine["metadata"]["deletionTimestamp"].is_string() {
            return self.take_down(machine).await;
        }
        self.bring_up(machine).await
    }

    async fn bring_up(&self, machine: &Value) -> Result<Option<Duration>, kube::Error> {
        self.set_finalizer(machine, true).await?;
        let (namespace, name) = place(machine);
        let bootstrap = self.referenced(&bootstrap_configs(), namespace, &machine["spec"]["bootstrap"]["configRef"]).await?;
        let infrastructure = self.referenced(&infrastructure_machines(), namespace, &machine["spec"]["infrastructureRef"]).await?;
        self.adopt(machine, &bootstrap_configs(), bootstrap.as_ref()).await?;
        self.adopt(machine, &infrastructure_machines(), infrastructure.as_ref()).await?;
        let has_data = is_set(bootstrap.as_ref(), "dataSecretCreated");
        let is_provisioned = is_set(infrastructure.as_ref(), "provisioned");
        let mut wake = None;
        let mut node = None;
        if is_provisioned {
            let provider_id = infrastructure.as_ref().map_or(Value::Null, |one| one["spec"]["providerID"].clone());
            if machine["spec"]["providerID"] != provider_id {
                self.objects.merge(&machines(), machine, json!({"spec": {"providerID": provider_id}})).await?;
            }
            node = self.node_with(&provider_id).await?;
            if node.is_none() {
                wake = self.join(machine, name, &provider_id).await?;
            }
        }
        let status = self.status(machine, has_data, is_provisioned, node.as_ref());
        self.write_status(machine, status).await?;
        Ok(wake)
    }

    /// The Node appears a while after its machine is there, as if its kubelet had registered it.
    async fn join(&self, machine: &Value, name: &str, provider_id: &Value) -> Result<Option<Duration>, kube::Error> {
        let provisioned = condition(machine, "InfrastructureReady").filter(|one| one["status"] == "True");
        let Some(provisioned) = provisioned else {
            // The condition is about to be written; its time is the base of the delay.
            return Ok(Some(self.config.node_joins_after));
        };
        let since = &provisioned["lastTransitionTime"];
        if let Some(left) = time_left(since, self.config.node_joins_after, self.clock.now()) {
            return Ok(Some(left));
        }
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"providerID": provider_id},
        });
        self.objects.create(&nodes(), &node).await?;
        Ok(None)
    }

    fn status(&self, machine: &Value, has_data: bool, is_provisioned: bool, node: Option<&Value>) -> Value {
        let is_ready = node.is_some_and(|node| has_condition(node, "Ready"));
        let phase = match (has_data, is_provisioned, is_ready) {
            (_, true, true) => "Running",
            (_, true, false) => "Provisioned",
            (true, false, _) => "Provisioning",
            (false, false, _) => "Pending",
        };
        let mut status = json!({
            "phase": phase,
            "initialization": {"bootstrapDataSecretCreated": has_data, "infrastructureProvisioned": is_provisioned},
            "conditions": [
                self.condition(machine, "BootstrapConfigReady", has_data, ""),
                self.condition(machine, "InfrastructureReady", is_provisioned, ""),
                self.condition(machine, "NodeReady", is_ready, ""),
                self.condition(machine, "Ready", is_ready, ""),
            ],
        });
        if let Some(node) = node {
            status["nodeRef"] = json!({"name": place(node).1});
        }
        status
    }

    /// A condition whose time changes only with its status.
    fn condition(&self, machine: &Value, kind: &str, is_true: bool, message: &str) -> Value {
        let status = if is_true { "True" } else { "False" };
        let reason = if is_true { kind.to_owned() } else { format!("Not{kind}") };
        self.condition_with(machine, kind, status, &reason, message)
    }

    fn condition_with(&self, machine: &Value, kind: &str, status: &str, reason: &str, message: &str) -> Value {
        let known = condition(machine, kind).filter(|one| one["status"] == status && one["reason"] == reason);
        let since = known.map_or_else(|| json!(whole_seconds(self.clock.now())), |one| one["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    }

    async fn take_down(&self, machine: &Value) -> Result<Option<Duration>, kube::Error> {
        let (namespace, _) = place(machine);
        if has_hook(machine, PRE_DRAIN_HOOK) {
            self.report(machine, "WaitingForPreDrainHook", "").await?;
            return Ok(None);
        }
        let bootstrap = self.referenced(&bootstrap_configs(), namespace, &machine["spec"]["bootstrap"]["configRef"]).await?;
        let infrastructure = self.referenced(&infrastructure_machines(), namespace, &machine["spec"]["infrastructureRef"]).await?;
        let node = match machine["status"]["nodeRef"]["name"].as_str() {
            Some(name) => self.objects.get(&nodes(), "", name).await?,
            None => None,
        };
        let is_going = infrastructure.as_ref().is_none_or(|one| one["metadata"]["deletionTimestamp"].is_string());
        if let Some(node) = node.as_ref().filter(|_| !is_going && machine["metadata"]["annotations"][EXCLUDE_DRAIN].is_null())
            && let Some(wait) = self.drain(machine, node).await?
        {
            return Ok(Some(wait));
        }
        if has_hook(machine, PRE_TERMINATE_HOOK) {
            self.report(machine, "WaitingForPreTerminateHook", "").await?;
            return Ok(None);
        }
        for (resource, object, reason) in [
            (infrastructure_machines(), infrastructure, "WaitingForInfrastructureDeletion"),
            (bootstrap_configs(), bootstrap, "WaitingForBootstrapDeletion"),
        ] {
            if let Some(object) = object {
                if object["metadata"]["deletionTimestamp"].is_null() {
                    self.objects.delete(&resource, &object, None).await?;
                }
                self.report(machine, reason, "").await?;
                return Ok(None);
            }
        }
        if let Some(node) = node {
            self.objects.delete(&nodes(), &node, None).await?;
        }
        self.set_finalizer(machine, false).await?;
        Ok(None)
    }

    /// One look at a draining node: nothing once it is empty or its time is over, else how long to the next pass.
    async fn drain(&self, machine: &Value, node: &Value) -> Result<Option<Duration>, kube::Error> {
        let draining = condition(machine, "Deleting").filter(|one| one["reason"] == "DrainingNode");
        let timeout = machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"].as_u64().filter(|seconds| *seconds > 0);
        if let (Some(draining), Some(seconds)) = (draining, timeout)
            && time_left(&draining["lastTransitionTime"], Duration::from_secs(seconds), self.clock.now()).is_none()
        {
            return Ok(None);
        }
        if node["spec"]["unschedulable"] != true {
            self.objects.merge(&nodes(), node, json!({"spec": {"unschedulable": true}})).await?;
        }
        let left = drain_pass(&self.objects, place(node).1).await?;
        if left.is_empty() {
            return Ok(None);
        }
        self.report(machine, "DrainingNode", &format!("Drain not completed yet: {}", left.join(", "))).await?;
        Ok(Some(self.config.drain_interval))
    }

    async fn report(&self, machine: &Value, reason: &str, message: &str) -> Result<(), kube::Error> {
        let deleting = self.condition_with(machine, "Deleting", "True", reason, message);
        let mut conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|one| one["type"] != "Deleting");
        conditions.push(deleting);
        self.write_status(machine, json!({"phase": "Deleting", "conditions": conditions})).await
    }

    async fn write_status(&self, machine: &Value, status: Value) -> Result<(), kube::Error> {
        let is_current = status.as_object().into_iter().flatten().all(|(field, value)| machine["status"][field] == *value);
        if is_current {
            return Ok(());
        }
        self.objects.merge_status(&machines(), machine, json!({"status": status})).await
    }

    async fn referenced(&self, resource: &ApiResource, namespace: &str, reference: &Value) -> Result<Option<Value>, kube::Error> {
        match reference["name"].as_str() {
            Some(name) if reference["kind"] == resource.kind.as_str() => self.objects.get(resource, namespace, name).await,
            _ => Ok(None),
        }
    }

    /// The Machine becomes the controller of what it refers to.
    async fn adopt(&self, machine: &Value, resource: &ApiResource, object: Option<&Value>) -> Result<(), kube::Error> {
        let Some(object) = object.filter(|one| one["metadata"]["deletionTimestamp"].is_null()) else { return Ok(()) };
        let uid = &machine["metadata"]["uid"];
        let mut owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        if owners.iter().any(|owner| owner["uid"] == *uid || owner["controller"] == true) {
            return Ok(());
        }
        owners.push(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": place(machine).1, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }));
        let version = &object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
        self.objects.merge(resource, object, patch).await
    }

    async fn node_with(&self, provider_id: &Value) -> Result<Option<Value>, kube::Error> {
        let all = self.objects.list(&nodes(), "").await?;
        Ok(all.into_iter().find(|node| node["spec"]["providerID"] == *provider_id))
    }

    async fn set_finalizer(&self, machine: &Value, present: bool) -> Result<(), kube::Error> {
        let mut finalizers = machine["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if finalizers.contains(&json!(FINALIZER)) == present {
            return Ok(());
        }
        finalizers.retain(|one| one != FINALIZER);
        if present {
            finalizers.push(json!(FINALIZER));
        }
        let version = &machine["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        self.objects.merge(&machines(), machine, patch).await
    }
}

fn condition<'m>(machine: &'m Value, kind: &str) -> Option<&'m Value> {
    machine["status"]["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == kind)
}

fn is_set(object: Option<&Value>, field: &str) -> bool {
    object.is_some_and(|object| object["status"]["initialization"][field] == true)
}

fn has_hook(machine: &Value, prefix: &str) -> bool {
    let annotations = machine["metadata"]["annotations"].as_object();
    annotations.is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(prefix)))
}

impl Actor for Capi {
    fn watches(&self) -> Vec<ApiResource> {
        vec![machines(), bootstrap_configs(), infrastructure_machines(), nodes()]
    }

    async fn step(&self) -> Result<Option<Duration>, kube::Error> {
        let mut wake = None;
        for machine in self.objects.list(&machines(), "").await? {
            wake = earlier(wake, self.attend(&machine).await?);
        }
        Ok(wake)
    }
}
