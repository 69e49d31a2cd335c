//! The provider fails and hangs where it is configured to, and Cluster API reports it.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::provider::StepBehaviour;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::cluster_api::machine::{
    MachinePlan, RUNNING_WITHIN, cluster, condition, condition_message, make, running,
};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        hanging_bootstrap_keeps_the_machine_pending,
        a_failing_machine_is_reported_and_recovers,
        node_that_never_joins_leaves_the_machine_provisioned,
        hanging_release_holds_the_deletion,
        node_can_be_made_not_ready,
    ]
}

const WITHIN: Duration = Duration::from_secs(90);

async fn hanging_bootstrap_keeps_the_machine_pending(context: Arc<TestContext>) -> TestResult {
    context.provider(|behaviour| behaviour.bootstrap = StepBehaviour::Hangs);
    let cluster = cluster(&context).await?;
    let made = make(&context, &cluster, MachinePlan::new("m")).await?;
    let pending = |machine: &DynamicObject| {
        machine.data["status"]["phase"] == "Pending"
            && condition(machine, "BootstrapConfigReady").0 == "False"
    };
    wait::until_present(&made.machines(), "m", "to be Pending", WITHIN, pending).await?;
    context.provider(|behaviour| behaviour.bootstrap = StepBehaviour::Works);
    made.until_running().await?;
    Ok(())
}

async fn a_failing_machine_is_reported_and_recovers(context: Arc<TestContext>) -> TestResult {
    context.provider(|behaviour| behaviour.provision = StepBehaviour::Fails("no route to host".into()));
    let cluster = cluster(&context).await?;
    let made = make(&context, &cluster, MachinePlan::new("m")).await?;
    let is_reported = |machine: &DynamicObject| {
        condition_message(machine, "InfrastructureReady").contains("no route to host")
    };
    wait::until_present(&made.machines(), "m", "to report the provider's reason", WITHIN, is_reported)
        .await?;
    context.provider(|behaviour| behaviour.provision = StepBehaviour::Works);
    made.until_running().await?;
    Ok(())
}

async fn node_that_never_joins_leaves_the_machine_provisioned(context: Arc<TestContext>) -> TestResult {
    context.provider(|behaviour| behaviour.join = StepBehaviour::Hangs);
    let cluster = cluster(&context).await?;
    let made = make(&context, &cluster, MachinePlan::new("m")).await?;
    let provisioned = |machine: &DynamicObject| machine.data["status"]["phase"] == "Provisioned";
    wait::until_present(&made.machines(), "m", "to be Provisioned", WITHIN, provisioned).await?;
    assert!(made.nodes().get_opt(&made.node()).await?.is_none());
    context.provider(|behaviour| behaviour.join = StepBehaviour::Works);
    made.until_running().await?;
    Ok(())
}

async fn hanging_release_holds_the_deletion(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    context.provider(|behaviour| behaviour.release = StepBehaviour::Hangs);
    made.delete().await?;
    let waiting =
        |machine: &DynamicObject| condition(machine, "Deleting").1 == "WaitingForInfrastructureDeletion";
    wait::until_present(&made.machines(), "m", "to wait for the infrastructure", WITHIN, waiting).await?;
    let infrastructure = made.infrastructures().get(&made.infrastructure()).await?;
    assert!(infrastructure.metadata.deletion_timestamp.is_some() && !infrastructure.finalizers().is_empty());
    context.provider(|behaviour| behaviour.release = StepBehaviour::Works);
    made.until_gone(WITHIN).await
}

async fn node_can_be_made_not_ready(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    let label = "node-not-ready.stage.kwok.x-k8s.io";
    let set = |value: serde_json::Value| Patch::Merge(json!({ "metadata": { "labels": { label: value } } }));
    made.nodes().patch(&made.node(), &PatchParams::default(), &set(json!("true"))).await?;
    wait::until_present(&made.nodes(), &made.node(), "to be NotReady", RUNNING_WITHIN, |node| {
        !is_ready(node)
    })
    .await?;
    let not_ready = |machine: &DynamicObject| condition(machine, "NodeReady").0 == "False";
    wait::until_present(&made.machines(), "m", "to notice", WITHIN, not_ready).await?;
    made.nodes().patch(&made.node(), &PatchParams::default(), &set(json!(null))).await?;
    wait::until_present(&made.nodes(), &made.node(), "to be Ready again", RUNNING_WITHIN, is_ready).await?;
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .is_some_and(|conditions| conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
}
