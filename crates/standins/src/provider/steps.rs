//! What the provider does with one object, in the order in which Cluster API wants to see it.

use super::super::agenda::Next;
use super::super::kinds::{CORE_GROUP, Kind, Place};
use super::super::scenario::Conduct;
use super::super::stage::Stage;
use super::actor::{Provider, Step};
use super::join;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Keeps an infrastructure object until its machine is given back.
const FINALIZER: &str = "sandbox.5spot.finos.org/machine";
const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// Writes the bootstrap data of a machine.
pub(super) async fn bootstrap(
    provider: &mut Provider,
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
) -> kube::Result<Next> {
    // In one contract the one says so, in the other the other.
    let status = &object.data["status"];
    let is_done = status["initialization"]["dataSecretCreated"] == true
        || (status["ready"] == true && !status["dataSecretName"].is_null());
    if is_done || object.metadata.deletion_timestamp.is_some() || owner_machine(object).is_none() {
        return Ok(None);
    }
    let conduct = provider.scenario.behaviour(&place.namespace).bootstrap;
    let takes = provider.scenario.timing().bootstrap;
    if let Some(wait) = goes_on(provider, place, object, stage, (Step::Bootstrap, conduct, takes)).await? {
        return Ok(wait.again());
    }
    let name = format!("{}-data", place.name);
    let cluster_label: BTreeMap<&String, &String> =
        object.labels().iter().filter(|(label, _)| *label == CLUSTER_NAME_LABEL).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": cluster_label,
            "ownerReferences": [{
                "apiVersion": place.kind.api_version(), "kind": place.kind.kind(), "controller": true,
                "name": place.name, "uid": object.metadata.uid,
            }],
        },
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    });
    stage.create(&Kind::secret().place(&place.namespace, &name), secret).await?;
    // Both at once: Cluster API takes one without the other for an error.
    let mut status =
        json!({"ready": true, "dataSecretName": name, "initialization": {"dataSecretCreated": true}});
    status["conditions"] = ready(provider);
    stage.merge_status(place, status).await?;
    Ok(None)
}

/// Prepares a machine and lets it join, or gives it back.
pub(super) async fn machine(
    provider: &mut Provider,
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
) -> kube::Result<Next> {
    if object.metadata.deletion_timestamp.is_some() {
        return release(provider, place, object, stage).await;
    }
    let machine = owner_machine(object)
        .and_then(|name| stage.get(&stage.kind(CORE_GROUP, "Machine")?.place(&place.namespace, &name)));
    let has_data =
        machine.is_some_and(|machine| !machine.data["spec"]["bootstrap"]["dataSecretName"].is_null());
    if !has_data {
        return Ok(None);
    }
    let behaviour = provider.scenario.behaviour(&place.namespace);
    let timing = provider.scenario.timing();
    let status = &object.data["status"];
    if status["initialization"]["provisioned"] != true && status["ready"] != true {
        let step = (Step::Provision, behaviour.provision, timing.provision);
        if let Some(wait) = goes_on(provider, place, object, stage, step).await? {
            return Ok(wait.again());
        }
        provision(provider, place, object, stage).await?;
    }
    if join::has_joined(object) {
        return Ok(None);
    }
    let rest = match behaviour.join {
        Conduct::Works => provider.steps.rest((uid(object), Step::Join), timing.join),
        Conduct::Hangs | Conduct::Fails(_) => {
            provider.steps.reset(&(uid(object), Step::Join));
            return Ok(None);
        }
    };
    if rest.is_none() {
        join::join(place, object, &provider_id(place, object), stage).await?;
    }
    Ok(rest)
}

async fn provision(
    provider: &Provider,
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
) -> kube::Result<()> {
    // The provider's id before the status: the other way round, Cluster API looks again only after five seconds.
    let mut finalizers = object.finalizers().to_vec();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({
        "metadata": {"finalizers": finalizers, "resourceVersion": object.metadata.resource_version},
        "spec": {"providerID": provider_id(place, object)},
    });
    stage.merge(place, patch).await?;
    let address = object.data["spec"]["address"].as_str().unwrap_or("192.0.2.1");
    let status = json!({
        "ready": true, "initialization": {"provisioned": true},
        "addresses": [{"type": "InternalIP", "address": address}], "conditions": ready(provider),
    });
    stage.merge_status(place, status).await
}

async fn release(
    provider: &mut Provider,
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
) -> kube::Result<Next> {
    if !object.finalizers().iter().any(|one| one == FINALIZER) {
        return Ok(None);
    }
    let behaviour = provider.scenario.behaviour(&place.namespace);
    let step = (Step::Release, behaviour.release, provider.scenario.timing().release);
    if let Some(wait) = goes_on(provider, place, object, stage, step).await? {
        return Ok(wait.again());
    }
    if behaviour.node_goes_with_machine {
        join::part(place, stage).await?;
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|one| one != FINALIZER);
    let patch =
        json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.metadata.resource_version}});
    stage.merge(place, patch).await?;
    for step in [Step::Bootstrap, Step::Provision, Step::Join, Step::Release] {
        provider.steps.reset(&(uid(object), step));
    }
    Ok(None)
}

/// What a cluster needs is always there.
pub(super) async fn cluster(place: &Place, stage: &mut Stage) -> kube::Result<Next> {
    stage.merge_status(place, json!({"ready": true, "initialization": {"provisioned": true}})).await?;
    Ok(None)
}

/// A control plane runs, in somebody else's care unless it says otherwise: without that Cluster API would not drain.
pub(super) async fn control_plane(
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
) -> kube::Result<Next> {
    let is_external = object.data["status"]["externalManagedControlPlane"].as_bool().unwrap_or(true);
    let status = json!({
        "externalManagedControlPlane": is_external, "initialization": {"controlPlaneInitialized": true},
    });
    stage.merge_status(place, status).await?;
    Ok(None)
}

/// Why a step does not go on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// It takes its time.
    Still(Duration),
    /// Until the scenario changes.
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

/// Whether a step is over, or has to be waited for; if it fails, the object says so.
async fn goes_on(
    provider: &mut Provider,
    place: &Place,
    object: &DynamicObject,
    stage: &mut Stage,
    (step, conduct, takes): (Step, Conduct, Duration),
) -> kube::Result<Option<Wait>> {
    match conduct {
        Conduct::Works => Ok(provider.steps.rest((uid(object), step), takes).map(Wait::Still)),
        Conduct::Hangs => {
            provider.steps.reset(&(uid(object), step));
            Ok(Some(Wait::Stuck))
        }
        Conduct::Fails(reason) => {
            provider.steps.reset(&(uid(object), step));
            let status = json!({"conditions": [condition(provider, "False", "ProviderFailed", &reason)]});
            stage.merge_status(place, status).await?;
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

/// k0smotron's own form for its machines; for others one that says where they come from.
fn provider_id(place: &Place, object: &DynamicObject) -> String {
    let spec = &object.data["spec"];
    if let Some(id) = spec["providerID"].as_str() {
        return id.to_owned();
    }
    if place.kind.kind() == "RemoteMachine" {
        let address = spec["address"].as_str().unwrap_or_default();
        return format!("remote-machine://{address}:{}", spec["port"].as_u64().unwrap_or(22));
    }
    format!("sandbox://{}/{}", place.namespace, place.name)
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
