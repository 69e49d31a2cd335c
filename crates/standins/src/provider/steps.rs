//! The provider's steps for an object, in the order that Cluster API expects.

use super::super::context::ActorContext;
use super::super::kinds::{CORE_GROUP, Kind, ObjectKey};
use super::super::settings::StepBehaviour;
use super::super::work_queue::Next;
use super::actor::{Provider, Step};
use super::join;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The finalizer that keeps an infrastructure object until its machine is released.
const FINALIZER: &str = "sandbox.5spot.finos.org/machine";
const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// Writes the bootstrap data of a machine.
pub(super) async fn bootstrap(
    provider: &mut Provider,
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<Next> {
    // The contract versions report this in different fields.
    let status = &object.data["status"];
    let is_done = status["initialization"]["dataSecretCreated"] == true
        || (status["ready"] == true && !status["dataSecretName"].is_null());
    if is_done || object.metadata.deletion_timestamp.is_some() || owner_machine(object).is_none() {
        return Ok(None);
    }
    let conduct = provider.settings.behaviour(&key.namespace).bootstrap;
    let takes = provider.settings.timing().bootstrap;
    if let Some(wait) = goes_on(provider, key, object, context, (Step::Bootstrap, conduct, takes)).await? {
        return Ok(wait.again());
    }
    let name = format!("{}-data", key.name);
    let cluster_label: BTreeMap<&String, &String> =
        object.labels().iter().filter(|(label, _)| *label == CLUSTER_NAME_LABEL).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": cluster_label,
            "ownerReferences": [{
                "apiVersion": key.kind.api_version(), "kind": key.kind.kind(), "controller": true,
                "name": key.name, "uid": object.metadata.uid,
            }],
        },
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    });
    context.create(&Kind::secret().key(&key.namespace, &name), secret).await?;
    // Both at once: for Cluster API, one without the other is an error.
    let mut status =
        json!({"ready": true, "dataSecretName": name, "initialization": {"dataSecretCreated": true}});
    status["conditions"] = ready(provider);
    context.merge_status(key, status).await?;
    Ok(None)
}

/// Provisions a machine and lets it join, or releases it.
pub(super) async fn machine(
    provider: &mut Provider,
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<Next> {
    if object.metadata.deletion_timestamp.is_some() {
        return release(provider, key, object, context).await;
    }
    let machine = owner_machine(object)
        .and_then(|name| context.get(&context.kind(CORE_GROUP, "Machine")?.key(&key.namespace, &name)));
    let has_data =
        machine.is_some_and(|machine| !machine.data["spec"]["bootstrap"]["dataSecretName"].is_null());
    if !has_data {
        return Ok(None);
    }
    let behaviour = provider.settings.behaviour(&key.namespace);
    let timing = provider.settings.timing();
    let status = &object.data["status"];
    if status["initialization"]["provisioned"] != true && status["ready"] != true {
        let step = (Step::Provision, behaviour.provision, timing.provision);
        if let Some(wait) = goes_on(provider, key, object, context, step).await? {
            return Ok(wait.again());
        }
        provision(provider, key, object, context).await?;
    }
    if join::has_joined(object) {
        return Ok(None);
    }
    let rest = match behaviour.join {
        StepBehaviour::Works => provider.steps.rest((uid(object), Step::Join), timing.join),
        StepBehaviour::Hangs | StepBehaviour::Fails(_) => {
            provider.steps.reset(&(uid(object), Step::Join));
            return Ok(None);
        }
    };
    if rest.is_none() {
        join::join(key, object, &provider_id(key, object), context).await?;
    }
    Ok(rest)
}

async fn provision(
    provider: &Provider,
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<()> {
    // The provider ID before the status: in the other order, Cluster API would retry only after five seconds.
    let mut finalizers = object.finalizers().to_vec();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({
        "metadata": {"finalizers": finalizers, "resourceVersion": object.metadata.resource_version},
        "spec": {"providerID": provider_id(key, object)},
    });
    context.merge(key, patch).await?;
    let address = object.data["spec"]["address"].as_str().unwrap_or("192.0.2.1");
    let status = json!({
        "ready": true, "initialization": {"provisioned": true},
        "addresses": [{"type": "InternalIP", "address": address}], "conditions": ready(provider),
    });
    context.merge_status(key, status).await
}

async fn release(
    provider: &mut Provider,
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<Next> {
    if !object.finalizers().iter().any(|one| one == FINALIZER) {
        return Ok(None);
    }
    let behaviour = provider.settings.behaviour(&key.namespace);
    let step = (Step::Release, behaviour.release, provider.settings.timing().release);
    if let Some(wait) = goes_on(provider, key, object, context, step).await? {
        return Ok(wait.again());
    }
    if behaviour.node_goes_with_machine {
        join::part(key, context).await?;
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|one| one != FINALIZER);
    let patch =
        json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.metadata.resource_version}});
    context.merge(key, patch).await?;
    for step in [Step::Bootstrap, Step::Provision, Step::Join, Step::Release] {
        provider.steps.reset(&(uid(object), step));
    }
    Ok(None)
}

/// Reports the infrastructure of a Cluster as ready.
pub(super) async fn cluster(key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
    context.merge_status(key, json!({"ready": true, "initialization": {"provisioned": true}})).await?;
    Ok(None)
}

/// A running control plane, externally managed unless it says otherwise: Cluster API would not drain without
/// it.
pub(super) async fn control_plane(
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<Next> {
    let is_external = object.data["status"]["externalManagedControlPlane"].as_bool().unwrap_or(true);
    let status = json!({
        "externalManagedControlPlane": is_external, "initialization": {"controlPlaneInitialized": true},
    });
    context.merge_status(key, status).await?;
    Ok(None)
}

/// The reason why a step does not continue now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The step takes this long.
    Still(Duration),
    /// The step waits for a change of the settings.
    Stuck,
}

impl Wait {
    fn again(self) -> Next {
        match self {
            Self::Still(rest) => Some(rest),
            Self::Stuck => None,
        }
    }
}

/// Returns true if a step is done; a failure is written to the status of the object.
async fn goes_on(
    provider: &mut Provider,
    key: &ObjectKey,
    object: &DynamicObject,
    context: &mut ActorContext,
    (step, conduct, takes): (Step, StepBehaviour, Duration),
) -> kube::Result<Option<Wait>> {
    match conduct {
        StepBehaviour::Works => Ok(provider.steps.rest((uid(object), step), takes).map(Wait::Still)),
        StepBehaviour::Hangs => {
            provider.steps.reset(&(uid(object), step));
            Ok(Some(Wait::Stuck))
        }
        StepBehaviour::Fails(reason) => {
            provider.steps.reset(&(uid(object), step));
            let status = json!({"conditions": [condition(provider, "False", "ProviderFailed", &reason)]});
            context.merge_status(key, status).await?;
            Ok(Some(Wait::Stuck))
        }
    }
}

fn ready(provider: &Provider) -> Value {
    json!([condition(provider, "True", "Ready", "")])
}

fn condition(provider: &Provider, status: &str, reason: &str, message: &str) -> Value {
    let now = five_spot_apiserver::clock::whole_seconds(provider.clock.now());
    json!({"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
}

fn owner_machine(object: &DynamicObject) -> Option<String> {
    object.owner_references().iter().find(|owner| owner.kind == "Machine").map(|owner| owner.name.clone())
}

/// k0smotron's format for its machines; for others, one with their origin.
fn provider_id(key: &ObjectKey, object: &DynamicObject) -> String {
    let spec = &object.data["spec"];
    if let Some(id) = spec["providerID"].as_str() {
        return id.to_owned();
    }
    if key.kind.kind() == "RemoteMachine" {
        let address = spec["address"].as_str().unwrap_or_default();
        return format!("remote-machine://{address}:{}", spec["port"].as_u64().unwrap_or(22));
    }
    format!("sandbox://{}/{}", key.namespace, key.name)
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
