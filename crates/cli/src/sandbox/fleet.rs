//! The fleet of the sandbox: the demo's machines or the user's own, and the scripted changes to them.

mod demo;
mod files;
mod owner;
mod provider_kinds;

pub use demo::demo;
pub use files::read;

use crate::manifest::Location;
use crate::sandbox::recorder::{Recorder, resource, scheduled_machines};
use crate::sandbox::trace::{Fact, Key};
use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_apiserver::Clock;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::TypeMeta;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The initial objects, and the scripted changes to them.
#[derive(Debug, Default)]
pub struct SandboxFleet {
    pub objects: Vec<InitialObject>,
    /// Sorted by time.
    pub script: Vec<UserAction>,
}

/// An object, with its location in the input if it was read from a file.
#[derive(Clone, Debug)]
pub struct InitialObject {
    pub value: Value,
    pub location: Option<Location>,
}

/// A change that a user makes.
#[derive(Clone, Debug, PartialEq)]
pub struct UserAction {
    pub at: Timestamp,
    /// A sentence that describes the change.
    pub sentence: String,
    pub change: Change,
}

/// The effect of a user action.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A merge patch to a `ScheduledMachine`.
    ScheduledMachine(Key, Value),
    /// A merge patch to a `PodDisruptionBudget`.
    Budget(Key, Value),
    /// The owner of a machine starts this program on it.
    Program(Key, &'static str),
}

/// An object that the sandbox refused, with the error of the API server.
#[derive(Debug)]
pub struct RefusedObject {
    pub location: Option<Location>,
    pub message: String,
}

impl SandboxFleet {
    /// Creates every object in the API server, dependencies first.
    pub async fn create_objects(&self, client: &Client) -> Result<(), RefusedObject> {
        let mut namespaces: BTreeSet<String> =
            ["default", "kube-system", "kube-public", "kube-node-lease", SYSTEM_NAMESPACE]
                .map(str::to_owned)
                .into();
        let rank = |one: &&InitialObject| match one.value["kind"].as_str() {
            Some("Namespace") => 0,
            Some("CustomResourceDefinition") => 1,
            Some(five_spot_api::names::KIND) => 3,
            Some(_) | None => 2,
        };
        let mut objects: Vec<&InitialObject> = self.objects.iter().collect();
        objects.sort_by_key(rank);
        for initial in objects {
            let refused = |message: String| RefusedObject { location: initial.location.clone(), message };
            let object = &initial.value;
            if object["kind"] == "Namespace" {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if !namespaces.insert(name.to_owned()) {
                    continue;
                }
            } else if let Some(namespace) = object["metadata"]["namespace"].as_str()
                && namespaces.insert(namespace.to_owned())
            {
                let namespace =
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
                create(client, &namespace).await.map_err(refused)?;
            }
            if object["kind"] == five_spot_api::names::KIND {
                for crd in provider_kinds::missing(client, object).await {
                    create(client, &crd).await.map_err(refused)?;
                }
            }
            create(client, object).await.map_err(refused)?;
        }
        Ok(())
    }
}

async fn create(client: &Client, value: &Value) -> Result<(), String> {
    let mut object: DynamicObject =
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let types: TypeMeta = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, capabilities) = pinned_kind(client, &gvk)
        .await
        .map_err(|_| format!("the sandbox has no kind {} of {}", types.kind, types.api_version))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
            object.metadata.namespace = Some(namespace.clone());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let params = PostParams { field_manager: Some("kubectl-create".to_owned()), ..PostParams::default() };
    match api.create(&params, &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => Err(other.to_string()),
    }
}

/// Carries out the script: every action at its time.
pub async fn run(
    script: Vec<UserAction>,
    client: Client,
    clock: Clock,
    recorder: Recorder,
) -> anyhow::Result<()> {
    for action in script {
        let wait = action.at.duration_since(clock.now());
        tokio::time::sleep(wait.try_into().unwrap_or_default()).await;
        recorder.note(Fact::UserAction(action.sentence.clone()));
        perform(&client, &action.change, clock.now())
            .await
            .with_context(|| format!("failed to carry out a demo action: {}", action.sentence))?;
    }
    Ok(())
}

async fn perform(client: &Client, action: &Change, now: Timestamp) -> anyhow::Result<()> {
    let budgets = resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    match action {
        Change::ScheduledMachine(key, patch) => change(client, &scheduled_machines(), key, patch).await?,
        Change::Budget(key, patch) => change(client, &budgets, key, patch).await?,
        Change::Program(key, program) => owner::start_program(client, key, program, now).await?,
    }
    Ok(())
}

async fn change(client: &Client, kind: &ApiResource, key: &Key, patch: &Value) -> kube::Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, kind);
    match api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
        // The user of the sandbox may have deleted the object.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(drop),
    }
}
