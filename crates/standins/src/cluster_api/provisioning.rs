//! The provisioning of a Machine: the writes of Cluster API to it and its parts, once each is ready.

use super::Facts;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// Keeps a Machine until its parts are gone.
pub(super) const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// Stops Cluster API from touching an object; whatever its value.
const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";

/// True while nothing may be done: the Cluster or the Machine is paused.
pub(super) fn is_paused(facts: &Facts) -> bool {
    let cluster_is = facts.cluster.as_ref().is_some_and(|cluster| cluster.data["spec"]["paused"] == true);
    cluster_is || facts.machine.annotations().contains_key(PAUSED_ANNOTATION)
}

/// The merge patch that takes a Machine on; nothing if it has been.
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

/// The control of a Machine over a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Control {
    /// The Machine is the part's controller.
    Held,
    /// It is to become so by this merge patch.
    Free(Value),
    /// Somebody else is. Cluster API gives up until that changes.
    Taken,
}

/// Returns who controls a part of a Machine.
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

/// The name of the Secret with the bootstrap data, once the provider says that it is there.
pub(super) fn data_secret(facts: &Facts) -> Option<String> {
    let status = &facts.bootstrap.as_ref()?.data["status"];
    let is_ready = status["initialization"]["dataSecretCreated"] == true || status["ready"] == true;
    status["dataSecretName"].as_str().filter(|_| is_ready).map(str::to_owned)
}

/// The provider's id of the machine, once the provider says that it is prepared.
pub(super) fn provider_id(facts: &Facts) -> Option<String> {
    let infrastructure = facts.infrastructure.as_ref()?;
    let status = &infrastructure.data["status"];
    let is_ready = status["initialization"]["provisioned"] == true || status["ready"] == true;
    infrastructure.data["spec"]["providerID"].as_str().filter(|_| is_ready).map(str::to_owned)
}

/// The merge patch that tells in the Machine's spec what its parts have become; nothing if it says so.
pub(super) fn progress(facts: &Facts) -> Option<Value> {
    let spec = &facts.machine.data["spec"];
    let mut patch = json!({});
    if let Some(name) = data_secret(facts).filter(|name| spec["bootstrap"]["dataSecretName"] != name.as_str())
    {
        patch["bootstrap"]["dataSecretName"] = name.into();
    }
    // Infrastructure counts only once the machine has something to start with.
    let has_data = !spec["bootstrap"]["dataSecretName"].is_null();
    if let Some(id) = provider_id(facts).filter(|id| has_data && spec["providerID"] != id.as_str()) {
        patch["providerID"] = id.into();
    }
    (patch != json!({})).then(|| json!({"spec": patch}))
}
