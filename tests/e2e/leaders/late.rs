//! Requests that a former leader sends too late: the fence refuses each of them.

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::kinds::MACHINE;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// Sends a create, an update and a delete as a pod that no longer holds the Lease. `name` is an object whose machine is
/// lent.
pub(super) async fn all_are_refused(
    former: &ServiceAccountIdentity,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let client = former.client("5spot-e2e-late/1").await?;
    let machines = machines(&client, namespace);
    let machine: DynamicObject = serde_json::from_value(json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind, "metadata": {"name": "late"},
        "spec": {"clusterName": "edge", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "none",
        }},
    }))?;
    refused("create", machines.create(&PostParams::default(), &machine).await)?;
    let lent = format!("{name}-machine");
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"late": "true"}}}));
    refused("update", machines.patch(&lent, &PatchParams::default(), &patch).await)?;
    refused("delete", machines.delete(&lent, &DeleteParams::default()).await)?;
    let objects: Api<ScheduledMachine> = Api::namespaced(client, namespace);
    let status = Patch::Merge(json!({"status": {"message": "late"}}));
    refused("update of status", objects.patch_status(name, &PatchParams::default(), &status).await)
}

fn machines(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &MACHINE.resource())
}

fn refused<T>(what: &str, answer: Result<T, kube::Error>) -> anyhow::Result<()> {
    let error = answer.err().with_context(|| format!("a late {what} was accepted"))?;
    let text = error.to_string();
    ensure!(text.contains("5spot-fence") && text.contains("does not hold the Lease"), "{what}: {text}");
    println!("late {what}: {text}");
    Ok(())
}
