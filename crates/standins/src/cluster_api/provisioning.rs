//! The provisioning of a Machine: Cluster API's writes to it and its parts when each part is ready.

use super::Facts;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The finalizer that keeps a Machine until its parts are gone.
pub(super) const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// The annotation that pauses reconciliation of an object, with any value.
const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";

/// Returns true if the Cluster or the Machine is paused.
pub(super) fn is_paused(facts: &Facts) -> bool {
    let cluster_is = facts.cluster.as_ref().is_some_and(|cluster| cluster.data["spec"]["paused"] == true);
    cluster_is || facts.machine.annotations().contains_key(PAUSED_ANNOTATION)
}

/// The merge patch that adds the finalizer and the owner to a new Machine; `None` if it has them.
pub(super) fn taking_on(facts: &Facts) -> Option<Value> {
    let (machine, cluster) = (&facts.machine, facts.cluster.as_ref()?);
    let mut metadata = json!({});
    if !machine.finalizers().iter().any(|one| one == FINALIZER) {
        let mut finalizers = machine.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        metadata["finalizers"] = json!(finalizers);
    }
    let is_owned = machine
        .owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true) || Some(&owner.uid) == cluster.metadata.uid.as_ref());
    if !is_owned {
        let mut owners = json!(machine.owner_references());
        let owner = reference_to(cluster, "Cluster");
        owners.as_array_mut().expect("a list of references").push(owner);
        metadata["ownerReferences"] = owners;
    }
    if metadata == json!({}) {
        return None;
    }
    metadata["resourceVersion"] = json!(machine.metadata.resource_version);
    Some(json!({"metadata": metadata}))
}

/// The controller of a part of a Machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Control {
    /// The Machine is the controller of the part.
    Held,
    /// The Machine becomes the controller by this merge patch.
    Free(Value),
    /// Another object is the controller. Cluster API does nothing until that changes.
    Taken,
}

/// Returns the controller of a part of a Machine.
pub(super) fn control(machine: &DynamicObject, part: &DynamicObject) -> Control {
    let mut owners = part.owner_references().to_vec();
    match owners.iter().find(|owner| owner.controller == Some(true)) {
        Some(owner) if Some(&owner.uid) == machine.metadata.uid.as_ref() => return Control::Held,
        Some(_) => return Control::Taken,
        None => {}
    }
    owners.retain(|owner| Some(&owner.uid) != machine.metadata.uid.as_ref());
    let mut owners = json!(owners);
    let mut owner = reference_to(machine, "Machine");
    owner["controller"] = true.into();
    owner["blockOwnerDeletion"] = true.into();
    owners.as_array_mut().expect("a list of references").push(owner);
    Control::Free(json!({"metadata": {
        "ownerReferences": owners, "resourceVersion": part.metadata.resource_version,
    }}))
}

fn reference_to(owner: &DynamicObject, kind: &str) -> Value {
    let api_version = owner.types.as_ref().map(|types| types.api_version.clone());
    json!({"apiVersion": api_version, "kind": kind, "name": owner.name_any(), "uid": owner.metadata.uid})
}

/// The name of the Secret with the bootstrap data, if the provider reports that it is ready.
pub(super) fn data_secret(facts: &Facts) -> Option<String> {
    let status = &facts.bootstrap.as_ref()?.data["status"];
    let is_ready = status["initialization"]["dataSecretCreated"] == true || status["ready"] == true;
    status["dataSecretName"].as_str().filter(|_| is_ready).map(str::to_owned)
}

/// The provider ID of the machine, if the provider reports that it is ready.
pub(super) fn provider_id(facts: &Facts) -> Option<String> {
    let infrastructure = facts.infrastructure.as_ref()?;
    let status = &infrastructure.data["status"];
    let is_ready = status["initialization"]["provisioned"] == true || status["ready"] == true;
    infrastructure.data["spec"]["providerID"].as_str().filter(|_| is_ready).map(str::to_owned)
}

/// The merge patch that copies the results of its parts to the Machine's spec; `None` if they are there.
pub(super) fn progress(facts: &Facts) -> Option<Value> {
    let spec = &facts.machine.data["spec"];
    let mut patch = json!({});
    if let Some(name) = data_secret(facts).filter(|name| spec["bootstrap"]["dataSecretName"] != name.as_str())
    {
        patch["bootstrap"]["dataSecretName"] = name.into();
    }
    // The infrastructure counts only after the bootstrap data are ready.
    let has_data = !spec["bootstrap"]["dataSecretName"].is_null();
    if let Some(id) = provider_id(facts).filter(|id| has_data && spec["providerID"] != id.as_str()) {
        patch["providerID"] = id.into();
    }
    (patch != json!({})).then(|| json!({"spec": patch}))
}
