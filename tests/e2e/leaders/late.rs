//! Requests that a former leader sends too late: the fence refuses each of them.

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use five_spot_api::names::{FIELD_MANAGER, SYSTEM_NAMESPACE};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::kinds::{MACHINE, REMOTE_MACHINE};
use five_spot_testenv::test_clusters::TestContext;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::LEASE;

/// Sends a create, an update and a delete as a pod that no longer holds the Lease. `name` is an object on which the
/// new leader has already worked: its machine is lent, and the create is that of the same Machine. The policy refuses
/// it before the API server notices that the Machine exists.
pub(super) async fn all_are_refused(
    former: &ServiceAccountIdentity,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let client = former.client("5spot-e2e-late/1").await?;
    let machines = machines(&client, namespace);
    let lent = format!("{name}-machine");
    let machine: DynamicObject = serde_json::from_value(json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind, "metadata": {"name": &lent},
        "spec": {"clusterName": "edge", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "none",
        }},
    }))?;
    refused("create", machines.create(&PostParams::default(), &machine).await)?;
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    refused("apply", machines.patch(&lent, &apply, &Patch::Apply(&machine)).await)?;
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"late": "true"}}}));
    refused("update", machines.patch(&lent, &PatchParams::default(), &patch).await)?;
    refused("delete", machines.delete(&lent, &DeleteParams::default()).await)?;
    let objects: Api<ScheduledMachine> = Api::namespaced(client.clone(), namespace);
    let status = Patch::Merge(json!({"status": {"message": "late"}}));
    refused("update of status", objects.patch_status(name, &PatchParams::default(), &status).await)?;
    provider_objects_are_refused(&client, namespace, name).await?;
    claims_are_refused(&client).await
}

async fn provider_objects_are_refused(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &REMOTE_MACHINE.resource());
    let lent = format!("{name}-infra");
    let object = provider_object(&lent);
    let created: DynamicObject = serde_json::from_value(object.clone())?;
    refused("create of a provider object", api.create(&PostParams::default(), &created).await)?;
    let apply = PatchParams::apply(FIELD_MANAGER).force();
    refused("apply of a provider object", api.patch(&lent, &apply, &Patch::Apply(object)).await)?;
    refused("delete of a provider object", api.delete(&lent, &DeleteParams::default()).await)
}

fn provider_object(name: &str) -> Value {
    json!({
        "apiVersion": REMOTE_MACHINE.api_version(), "kind": REMOTE_MACHINE.kind, "metadata": {"name": name},
        "spec": {"address": "192.0.2.1", "port": 22},
    })
}

/// Deletes the Lease: the fence must not block the writes of others afterwards.
pub(super) async fn others_write_without_a_lease(context: &TestContext) -> anyhow::Result<()> {
    let admin = context.management().admin();
    let leases: Api<Lease> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
    leases.delete(LEASE, &DeleteParams::default()).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(admin, context.namespace(), &REMOTE_MACHINE.resource());
    let rehearsal = PatchParams::apply("5spot-e2e").dry_run();
    // Repeated, because the policy sees the deletion slightly later than the client.
    for _ in 0..50 {
        api.patch("late", &rehearsal, &Patch::Apply(provider_object("late")))
            .await
            .context("the fence refuses another client")?;
    }
    Ok(())
}

/// Claims are fenced. Leases of the election are not, because otherwise no standby could take over.
async fn claims_are_refused(client: &Client) -> anyhow::Result<()> {
    let api: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let lease = |name: &str| serde_json::from_value::<Lease>(json!({"metadata": {"name": name}}));
    let parameters = PostParams::default();
    refused("create of a claim", api.create(&parameters, &lease("5spot-machine-0123456789abcdef")?).await)?;
    let rehearsal = PostParams { dry_run: true, ..parameters };
    api.create(&rehearsal, &lease("5spot-leader-instance-9")?).await.context("a Lease of an instance")?;
    Ok(())
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
