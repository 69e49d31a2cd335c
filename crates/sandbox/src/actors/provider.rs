//! An infrastructure and bootstrap provider: what it is asked for exists a while later.

use super::drive::{Actor, earlier};
use super::kinds::{bootstrap_configs, infrastructure_machines};
use super::objects::{Objects, place, time_left};
use crate::clock::Clock;
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::time::Duration;

/// Keeps an object until the provider has cleaned up after it.
const FINALIZER: &str = "sandbox.5spot.finos.org/provider";

/// The annotation of an object that the provider cannot provide for.
const FAILS: &str = "sandbox.5spot.finos.org/fails";

/// How the provider behaves.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// From the creation of a bootstrap object until its data is there.
    pub bootstrap_after: Duration,
    /// From the creation of a machine until it is provisioned.
    pub provision_after: Duration,
    /// From the deletion of a machine until it is gone.
    pub release_after: Duration,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            bootstrap_after: Duration::from_secs(2),
            provision_after: Duration::from_secs(30),
            release_after: Duration::from_secs(10),
        }
    }
}

/// The provider.
pub struct Provider {
    objects: Objects,
    clock: Clock,
    config: ProviderConfig,
}

impl Provider {
    /// A provider that uses `client`.
    pub fn new(client: kube::Client, clock: Clock, config: ProviderConfig) -> Self {
        Self { objects: Objects::new(client, "sandbox-provider"), clock, config }
    }

    async fn attend_bootstrap(&self, config: &Value) -> Result<Option<Duration>, kube::Error> {
        let is_done = config["status"]["initialization"]["dataSecretCreated"] == true;
        if is_done || config["metadata"]["deletionTimestamp"].is_string() || fails(config) {
            return Ok(None);
        }
        let created = &config["metadata"]["creationTimestamp"];
        if let Some(left) = time_left(created, self.config.bootstrap_after, self.clock.now()) {
            return Ok(Some(left));
        }
        let status = json!({"status": {
            "ready": true, "dataSecretName": place(config).1, "initialization": {"dataSecretCreated": true},
        }});
        self.objects.merge_status(&bootstrap_configs(), config, status).await?;
        Ok(None)
    }

    async fn attend_machine(&self, machine: &Value) -> Result<Option<Duration>, kube::Error> {
        let resource = infrastructure_machines();
        let now = self.clock.now();
        if machine["metadata"]["deletionTimestamp"].is_string() {
            if let Some(left) = time_left(&machine["metadata"]["deletionTimestamp"], self.config.release_after, now) {
                return Ok(Some(left));
            }
            self.objects.merge(&resource, machine, with_finalizer(machine, false)).await?;
            return Ok(None);
        }
        if !finalizers(machine).contains(&json!(FINALIZER)) {
            self.objects.merge(&resource, machine, with_finalizer(machine, true)).await?;
        }
        if machine["status"]["initialization"]["provisioned"] == true || fails(machine) {
            return Ok(None);
        }
        if let Some(left) = time_left(&machine["metadata"]["creationTimestamp"], self.config.provision_after, now) {
            return Ok(Some(left));
        }
        let address = machine["spec"]["address"].as_str().unwrap_or_else(|| place(machine).1);
        let provider_id = format!("remote-machine://{address}:{}", machine["spec"]["port"].as_u64().unwrap_or(22));
        self.objects.merge(&resource, machine, json!({"spec": {"providerID": provider_id}})).await?;
        let status = json!({"status": {"ready": true, "initialization": {"provisioned": true}}});
        self.objects.merge_status(&resource, machine, status).await?;
        Ok(None)
    }
}

fn fails(object: &Value) -> bool {
    object["metadata"]["annotations"][FAILS] == "true"
}

fn finalizers(object: &Value) -> Vec<Value> {
    object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
}

/// A patch that adds or removes our finalizer and no other, and fails if somebody else changed the list meanwhile.
fn with_finalizer(object: &Value, present: bool) -> Value {
    let mut list = finalizers(object);
    list.retain(|one| one != FINALIZER);
    if present {
        list.push(json!(FINALIZER));
    }
    json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"], "finalizers": list}})
}

impl Actor for Provider {
    fn watches(&self) -> Vec<ApiResource> {
        vec![bootstrap_configs(), infrastructure_machines()]
    }

    async fn step(&self) -> Result<Option<Duration>, kube::Error> {
        let mut wake = None;
        for config in self.objects.list(&bootstrap_configs(), "").await? {
            wake = earlier(wake, self.attend_bootstrap(&config).await?);
        }
        for machine in self.objects.list(&infrastructure_machines(), "").await? {
            wake = earlier(wake, self.attend_machine(&machine).await?);
        }
        Ok(wake)
    }
}
