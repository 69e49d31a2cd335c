//! The `ScheduledMachine` of a scenario, and operations on it.

use crate::environment::Environment;
use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, MACHINE, NODE, SCHEDULED_MACHINE};
use anyhow::Context as _;
use five_spot_api::names;
use serde_json::{Value, json};

/// The Cluster of every scenario.
pub(crate) const CLUSTER_NAME: &str = "edge";

/// A `ScheduledMachine` and its environment.
pub struct Subject<'a> {
    env: &'a dyn Environment,
    name: String,
}

impl<'a> Subject<'a> {
    /// Makes a Cluster and an object that always wants its machine unless `spec`, a merge patch, says otherwise.
    pub async fn make(env: &'a dyn Environment, spec: Value) -> anyhow::Result<Self> {
        env.make_cluster(CLUSTER_NAME).await?;
        Self::make_without_cluster(env, spec).await
    }

    /// The same without a Cluster.
    pub async fn make_without_cluster(env: &'a dyn Environment, spec: Value) -> anyhow::Result<Self> {
        Self::make_another(env, "desk", spec).await
    }

    /// An object of another name in the same Cluster.
    pub async fn make_another(env: &'a dyn Environment, name: &str, spec: Value) -> anyhow::Result<Self> {
        let mut whole = ordinary(env);
        merge(&mut whole, env.spec());
        merge(&mut whole, spec);
        env.create(SCHEDULED_MACHINE, json!({"metadata": {"name": name}, "spec": whole})).await?;
        Ok(Self { env, name: name.to_owned() })
    }

    /// The same with a machine whose node is Ready.
    pub async fn lent(env: &'a dyn Environment, spec: Value) -> anyhow::Result<Self> {
        let subject = Self::make(env, spec).await?;
        subject.until_ready().await?;
        Ok(subject)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its Machine.
    pub fn machine(&self) -> String {
        names::machine(&self.name)
    }

    /// The name of its infrastructure object.
    pub fn infrastructure(&self) -> String {
        names::infrastructure(&self.name)
    }

    /// The object as it is.
    pub async fn get(&self) -> anyhow::Result<Value> {
        self.env.get(SCHEDULED_MACHINE, &self.name).await
    }

    /// Changes its spec by merge patch.
    pub async fn set(&self, spec: Value) -> anyhow::Result<()> {
        self.env.patch(SCHEDULED_MACHINE, &self.name, json!({"spec": spec})).await.map(drop)
    }

    /// Annotates it; null removes.
    pub async fn annotate(&self, annotation: &str, value: Value) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        self.env.patch(SCHEDULED_MACHINE, &self.name, patch).await.map(drop)
    }

    /// Waits until the object is as wanted and its status covers the latest spec.
    pub async fn until(
        &self,
        what: &str,
        mut wanted: impl FnMut(&Value) -> bool + Send,
    ) -> anyhow::Result<Value> {
        let current = |object: &Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"] && wanted(object)
        };
        self.env.until(SCHEDULED_MACHINE, &self.name, what, current).await
    }

    /// Waits for a phase.
    pub async fn until_phase(&self, phase: &str) -> anyhow::Result<Value> {
        self.until(&format!("to be {phase}"), |object| object["status"]["phase"] == phase).await
    }

    /// Waits for a condition with a status and a reason.
    pub async fn until_condition(&self, kind: &str, status: &str, reason: &str) -> anyhow::Result<Value> {
        let holds = |object: &Value| {
            let found = condition(object, kind);
            found["status"] == status && found["reason"] == reason
        };
        self.until(&format!("to be {kind}={status}/{reason}"), holds).await
    }

    /// Waits until its machine is lent: wanted, existing, with a Ready node.
    pub async fn until_ready(&self) -> anyhow::Result<Value> {
        self.until("to have a Ready node", is_ready).await
    }

    /// Waits until it is gone.
    pub async fn until_gone(&self) -> anyhow::Result<()> {
        self.env.until_gone(SCHEDULED_MACHINE, &self.name).await
    }

    /// The name of its node.
    pub async fn node(&self) -> anyhow::Result<String> {
        let object = self.get().await?;
        let name = object["status"]["nodeRef"]["name"].as_str();
        name.map(str::to_owned).with_context(|| format!("no node in {object}"))
    }

    /// The UID of its Machine.
    pub async fn machine_uid(&self) -> anyhow::Result<String> {
        let machine = self.env.get(MACHINE, &self.machine()).await?;
        machine["metadata"]["uid"].as_str().map(str::to_owned).context("there is no Machine")
    }

    /// Waits for another Machine than this one, with a Ready node.
    pub async fn until_other_machine(&self, uid: &str) -> anyhow::Result<Value> {
        let other = |object: &Value| {
            let new = object["status"]["machineRef"]["uid"].as_str();
            is_ready(object) && new.is_some_and(|new| new != uid)
        };
        self.until("to have another machine", other).await
    }

    /// Waits until the node is cordoned, or is not.
    pub async fn until_cordoned(&self, node: &str, cordoned: bool) -> anyhow::Result<Value> {
        let what = if cordoned { "to be cordoned" } else { "to be uncordoned" };
        let is = |node: &Value| {
            !node.is_null() && (node["spec"]["unschedulable"] == Value::Bool(true)) == cordoned
        };
        self.env.until(NODE, node, what, is).await
    }

    /// Waits until nothing that was created for it is left.
    pub async fn until_nothing_left(&self) -> anyhow::Result<()> {
        self.env.until_gone(MACHINE, &self.machine()).await?;
        self.env.until_gone(INFRASTRUCTURE, &self.infrastructure()).await
    }
}

/// Returns true if its machine is lent, with a Ready node.
pub(crate) fn is_ready(object: &Value) -> bool {
    object["status"]["phase"] == "Active"
        && condition(object, "MachineReady")["status"] == "True"
        && condition(object, "Ready")["status"] == "True"
}

/// A condition of an object; null if there is none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// Always open, with timers that a person can wait for.
fn ordinary(env: &dyn Environment) -> Value {
    let of = |group: &str| format!("{group}/{}", env.cluster_api());
    json!({
        "schedule": {"daysOfWeek": ["mon-sun"]},
        "clusterName": CLUSTER_NAME,
        "bootstrapSpec": {
            "apiVersion": of(BOOTSTRAP.group), "kind": "K0sWorkerConfig",
            "spec": {"version": "v1.36.4+k0s.0"},
        },
        "infrastructureSpec": {
            "apiVersion": of(INFRASTRUCTURE.group), "kind": "RemoteMachine",
            "spec": {"address": env.address(), "port": 22},
        },
        "gracefulShutdownTimeout": "20s",
        "nodeDrainTimeout": "20s",
    })
}

/// A merge patch as RFC 7386 has it.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(&name);
            }
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}
