//! The provider's steps for one object, in the order that Cluster API expects.

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{ProviderBehaviour, StepBehaviour};
use crate::kinds::{
    K0S_WORKER_CONFIG, KUBEADM_CONFIG, LAB_BENCH, LAB_SUPPLY, MACHINE, REMOTE_CLUSTER, REMOTE_MACHINE,
    STUB_CONTROL_PLANE, ThirdPartyKind,
};

/// The finalizer that keeps a `RemoteMachine` until the machine is returned.
pub const MACHINE_FINALIZER: &str = "testenv.5spot.finos.org/remote-machine";
/// On a `StubControlPlane`, `"false"` makes Cluster API treat it as its own.
pub const EXTERNALLY_MANAGED_ANNOTATION: &str = "testenv.5spot.finos.org/externally-managed";
/// The namespace of the Machine that a Node was created for, so that pods of a test stay on nodes of the
/// test.
pub const NODE_NAMESPACE_LABEL: &str = "testenv.5spot.finos.org/namespace";

const FIELD_MANAGER: &str = "5spot-testenv-provider";
const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// The clients of the provider.
#[derive(Clone)]
pub(super) struct Clients {
    pub(super) management: Client,
    pub(super) workload: Client,
}

/// The name of the Node of a `RemoteMachine`. Nodes have no namespace, so the name contains that of the
/// machine.
pub fn node_name(namespace: &str, remote_machine: &str) -> String {
    format!("{namespace}-{remote_machine}")
}

pub(super) async fn reconcile(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    behaviour: &ProviderBehaviour,
) -> kube::Result<()> {
    if [K0S_WORKER_CONFIG, KUBEADM_CONFIG, LAB_SUPPLY].contains(&kind) {
        bootstrap(clients, kind, object, &behaviour.bootstrap).await
    } else if [REMOTE_MACHINE, LAB_BENCH].contains(&kind) {
        machine(clients, kind, object, behaviour).await
    } else if kind == REMOTE_CLUSTER {
        set_status(clients, kind, object, json!({ "ready": true, "initialization": { "provisioned": true } }))
            .await
    } else if kind == STUB_CONTROL_PLANE {
        let external =
            object.annotations().get(EXTERNALLY_MANAGED_ANNOTATION).is_none_or(|value| value != "false");
        let initialization = json!({ "controlPlaneInitialized": true });
        let status = json!({ "externalManagedControlPlane": external, "initialization": initialization });
        set_status(clients, kind, object, status).await
    } else {
        Ok(())
    }
}

async fn bootstrap(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    conduct: &StepBehaviour,
) -> kube::Result<()> {
    if is_deleted(object) || owner_machine(object).is_none() {
        return Ok(());
    }
    match conduct {
        StepBehaviour::Hangs => Ok(()),
        StepBehaviour::Fails(reason) => set_status(clients, kind, object, not_ready(reason)).await,
        StepBehaviour::Works => {
            let namespace = object.namespace().unwrap_or_default();
            let name = format!("{}-data", object.name_any());
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "labels": { CLUSTER_NAME_LABEL: object.labels().get(CLUSTER_NAME_LABEL) },
                    "ownerReferences": [{
                        "apiVersion": kind.api_version(), "kind": kind.kind, "controller": true,
                        "name": object.name_any(), "uid": object.uid(),
                    }],
                },
                "type": "cluster.x-k8s.io/secret",
                "stringData": { "value": "#cloud-config\n", "format": "cloud-config" },
            });
            let secrets: Api<Secret> = Api::namespaced(clients.management.clone(), &namespace);
            secrets.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(secret)).await?;
            // Both at once: Cluster API treats one without the other as an error.
            let mut status = done(kind, "dataSecretCreated");
            status["dataSecretName"] = json!(name);
            set_status(clients, kind, object, status).await
        }
    }
}

/// The status patch that reports a step as done, in the contract of the kind.
fn done(kind: ThirdPartyKind, what: &str) -> Value {
    if [LAB_SUPPLY, LAB_BENCH].contains(&kind) {
        return json!({ "ready": true });
    }
    json!({ "ready": true, "initialization": { what: true } })
}

async fn machine(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    behaviour: &ProviderBehaviour,
) -> kube::Result<()> {
    if is_deleted(object) {
        return release(clients, kind, object, behaviour).await;
    }
    let Some(machine) = owner_machine(object) else {
        return Ok(());
    };
    let namespace = object.namespace().unwrap_or_default();
    let machines = MACHINE.in_namespace(&clients.management, &namespace);
    let Some(machine) = machines.get_opt(&machine).await? else {
        return Ok(());
    };
    if machine.data["spec"]["bootstrap"]["dataSecretName"].is_null() {
        return Ok(());
    }
    match &behaviour.provision {
        StepBehaviour::Hangs => return Ok(()),
        StepBehaviour::Fails(reason) => {
            return set_status(clients, kind, object, not_ready(reason)).await;
        }
        StepBehaviour::Works => {}
    }
    // The provider id before the status: in the reverse order, Cluster API checks again only after five seconds.
    let spec = &object.data["spec"];
    let address = spec["address"].as_str().unwrap_or("192.0.2.1");
    let provider_id = if kind == REMOTE_MACHINE {
        format!("remote-machine://{address}:{}", spec["port"].as_u64().unwrap_or(22))
    } else {
        format!("lab://{namespace}/{}", object.name_any())
    };
    if spec["providerID"] != provider_id.as_str()
        || !object.finalizers().iter().any(|name| name == MACHINE_FINALIZER)
    {
        let patch = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": { "finalizers": [MACHINE_FINALIZER] },
            "spec": { "providerID": provider_id },
        });
        let own = kind.in_namespace(&clients.management, &namespace);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        own.patch(&object.name_any(), &params, &Patch::Apply(patch)).await?;
    }
    let mut status = done(kind, "provisioned");
    status["addresses"] = json!([{ "type": "InternalIP", "address": address }]);
    set_status(clients, kind, object, status).await?;
    match behaviour.join {
        StepBehaviour::Works => join(clients, kind, object, &provider_id).await,
        StepBehaviour::Hangs | StepBehaviour::Fails(_) => Ok(()),
    }
}

/// Creates the Node, once: a deleted Node is not created again while its machine's object exists, as the kubelet of a
/// real machine would not register twice without a restart.
async fn join(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    provider_id: &str,
) -> kube::Result<()> {
    let namespace = object.namespace().unwrap_or_default();
    let name = node_name(&namespace, &object.name_any());
    if object.annotations().contains_key(JOINED_ANNOTATION) {
        return Ok(());
    }
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", NODE_NAMESPACE_LABEL: namespace,
            },
            "annotations": { "kwok.x-k8s.io/node": "fake" },
        },
        "spec": { "providerID": provider_id },
    });
    let nodes: Api<Node> = Api::all(clients.workload.clone());
    nodes.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(node)).await?;
    let joined = json!({ "metadata": { "annotations": { JOINED_ANNOTATION: "true" } } });
    let own = kind.in_namespace(&clients.management, &namespace);
    own.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(joined)).await.map(drop)
}

const JOINED_ANNOTATION: &str = "testenv.5spot.finos.org/joined";

async fn release(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    behaviour: &ProviderBehaviour,
) -> kube::Result<()> {
    if !object.finalizers().iter().any(|finalizer| finalizer == MACHINE_FINALIZER) {
        return Ok(());
    }
    match &behaviour.release {
        StepBehaviour::Hangs => return Ok(()),
        StepBehaviour::Fails(reason) => {
            return set_status(clients, kind, object, not_ready(reason)).await;
        }
        StepBehaviour::Works => {}
    }
    let namespace = object.namespace().unwrap_or_default();
    if behaviour.node_goes_with_machine {
        let nodes: Api<Node> = Api::all(clients.workload.clone());
        ignore_missing(
            nodes.delete(&node_name(&namespace, &object.name_any()), &DeleteParams::default()).await,
        )?;
    }
    let finalizers: Vec<&String> =
        object.finalizers().iter().filter(|name| *name != MACHINE_FINALIZER).collect();
    let patch = json!({
        "metadata": { "finalizers": finalizers, "resourceVersion": object.resource_version() },
    });
    let own = kind.in_namespace(&clients.management, &namespace);
    ignore_missing(own.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
}

fn not_ready(reason: &str) -> Value {
    let now = jiff::Timestamp::now().to_string();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "ProviderFailed", "message": reason, "lastTransitionTime": now,
    });
    json!({ "conditions": [condition] })
}

/// Sets the status if it differs, so that the provider's own write does not trigger it again.
async fn set_status(
    clients: &Clients,
    kind: ThirdPartyKind,
    object: &DynamicObject,
    status: Value,
) -> kube::Result<()> {
    if contains(&object.data["status"], &status) {
        return Ok(());
    }
    let api = kind.in_namespace(&clients.management, &object.namespace().unwrap_or_default());
    let patch = json!({ "status": status });
    ignore_missing(api.patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
}

/// Returns true if `all` contains everything in `some`, except times.
fn contains(all: &Value, some: &Value) -> bool {
    match (all, some) {
        (Value::Object(all), Value::Object(some)) => some.iter().all(|(key, value)| {
            key == "lastTransitionTime" || all.get(key).is_some_and(|existing| contains(existing, value))
        }),
        (Value::Array(all), Value::Array(some)) => {
            all.len() == some.len() && all.iter().zip(some).all(|(all, some)| contains(all, some))
        }
        (all, some) => all == some,
    }
}

fn owner_machine(object: &DynamicObject) -> Option<String> {
    let owner = object.owner_references().iter().find(|owner| owner.kind == MACHINE.kind)?;
    Some(owner.name.clone())
}

fn is_deleted(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

fn ignore_missing<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_status_is_not_written() {
        let now =
            json!({ "ready": true, "conditions": [{ "type": "Ready", "lastTransitionTime": "yesterday" }] });
        assert!(contains(&now, &json!({ "ready": true })));
        assert!(contains(
            &now,
            &json!({ "conditions": [{ "type": "Ready", "lastTransitionTime": "today" }] })
        ));
        assert!(!contains(&now, &json!({ "ready": false })));
        assert!(!contains(&Value::Null, &json!({ "ready": true })));
    }
}
