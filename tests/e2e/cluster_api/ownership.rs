//! Owner references: which objects are adopted, and the effect of the owner's deletion on a drain.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::kinds::REMOTE_MACHINE;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::machine::{MachinePlan, MadeMachine, cluster, condition, make, running};
use super::workload::{block_evictions, budgets, evictions, pod_on};

const GONE_WITHIN: Duration = Duration::from_secs(90);

pub(crate) fn tests() -> Vec<Test> {
    tests![
        machine_with_a_controller_is_not_adopted,
        machine_without_a_controller_is_adopted_by_its_cluster,
        a_foreign_controller_reference_blocks_until_it_is_removed,
        foreground_deletion_without_cluster_ref_ignores_budgets,
        foreground_deletion_drains_with_the_cluster_reference,
        background_deletion_drains,
        orphaning_deletion_leaves_the_machine,
    ]
}

async fn machine_with_a_controller_is_not_adopted(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    let machine = made.machines().get("m").await?;
    let owners: Vec<&str> = machine.owner_references().iter().map(|owner| owner.kind.as_str()).collect();
    assert_eq!(owners, ["ConfigMap"]);
    Ok(())
}

async fn machine_without_a_controller_is_adopted_by_its_cluster(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made =
        running(&context, &cluster, MachinePlan { machine_has_controller: false, ..MachinePlan::new("m") })
            .await?;
    let adopted =
        |machine: &DynamicObject| machine.owner_references().iter().any(|owner| owner.kind == "Cluster");
    wait::until_present(&made.machines(), "m", "to be adopted", GONE_WITHIN, adopted).await?;
    Ok(())
}

/// 5-Spot's references on bootstrap and infrastructure objects are plain, because Cluster API makes the
/// Machine their controller.
async fn a_foreign_controller_reference_blocks_until_it_is_removed(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let plan = MachinePlan { infrastructure_has_controller: true, ..MachinePlan::new("m") };
    let made = make(&context, &cluster, plan).await?;
    let finalized = |machine: &DynamicObject| !machine.finalizers().is_empty();
    wait::until_present(&made.machines(), "m", "to be taken on", GONE_WITHIN, finalized).await?;
    made.delete().await?;
    let lasting = Duration::from_secs(30);
    wait::while_lasting(&made.machines(), "m", "sticking", lasting, |machine| machine.is_some()).await?;
    let cut = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    made.infrastructures().patch(&made.infrastructure(), &PatchParams::default(), &cut).await?;
    // Cluster API has backed off meanwhile; a change of the Machine triggers a reconcile.
    let touch = Patch::Merge(json!({ "metadata": { "annotations": { "touched": "true" } } }));
    made.machines().patch("m", &PatchParams::default(), &touch).await?;
    made.until_gone(GONE_WITHIN).await
}

/// The garbage collector deletes the infrastructure at once, and the drain is abandoned.
async fn foreground_deletion_without_cluster_ref_ignores_budgets(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made =
        running(&context, &cluster, MachinePlan { owned_by_cluster: false, ..MachinePlan::new("m") }).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    delete_owner(&made, DeleteParams::foreground()).await?;
    made.until_gone(GONE_WITHIN).await?;
    assert!(made.nodes().get_opt(&made.node()).await?.is_none(), "the Node is gone under a blocking budget");
    Ok(())
}

/// If another owner stays, the collector only removes the reference, and the drain continues.
async fn foreground_deletion_drains_with_the_cluster_reference(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    delete_owner(&made, DeleteParams::foreground()).await?;
    let draining = |machine: &DynamicObject| condition(machine, "Deleting").1 == "DrainingNode";
    wait::until_present(&made.machines(), "m", "to drain", GONE_WITHIN, draining).await?;
    // Longer than one pass, so that the second pass is included.
    let lasting = Duration::from_secs(25);
    wait::while_lasting(&made.nodes(), &made.node(), "existing", lasting, |node| node.is_some()).await?;
    let infrastructure = made.infrastructures().get(&made.infrastructure()).await?;
    assert!(infrastructure.metadata.deletion_timestamp.is_none(), "the infrastructure waits for the drain");
    budgets(&context).delete("web", &DeleteParams::default()).await?;
    made.until_gone(GONE_WITHIN).await?;
    assert_eq!(evictions(&context, "web")?.last().and_then(|record| record.code), Some(201));
    wait::until_gone(&owners(&made), &made.owner.name_any(), GONE_WITHIN).await?;
    wait::until_gone(
        &REMOTE_MACHINE.in_namespace(&context.management().admin(), context.namespace()),
        "m-infra",
        GONE_WITHIN,
    )
    .await?;
    Ok(())
}

async fn background_deletion_drains(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    delete_owner(&made, DeleteParams::background()).await?;
    made.until_gone(GONE_WITHIN).await?;
    assert_eq!(evictions(&context, "web")?.first().and_then(|record| record.code), Some(201));
    Ok(())
}

async fn orphaning_deletion_leaves_the_machine(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    delete_owner(&made, orphan).await?;
    wait::until_gone(&owners(&made), &made.owner.name_any(), GONE_WITHIN).await?;
    // Without a controller reference, it now belongs to its Cluster, and is kept.
    let adopted = |machine: &DynamicObject| {
        machine.metadata.deletion_timestamp.is_none()
            && machine.owner_references().iter().any(|owner| owner.kind == "Cluster")
    };
    wait::until_present(&made.machines(), "m", "to be adopted", GONE_WITHIN, adopted).await?;
    Ok(())
}

fn owners(made: &MadeMachine<'_>) -> Api<ConfigMap> {
    Api::namespaced(made.context.management().admin(), made.context.namespace())
}

async fn delete_owner(made: &MadeMachine<'_>, how: DeleteParams) -> anyhow::Result<()> {
    owners(made).delete(&made.owner.name_any(), &how).await?;
    Ok(())
}
