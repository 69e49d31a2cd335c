//! A Machine goes to Running with a Node, in both versions and with both kinds of bootstrap configuration.

use std::sync::Arc;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::kinds::MACHINE;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use kube::ResourceExt as _;
use serde_json::json;

use super::machine::{Contract, MachinePlan, cluster, condition, running};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        v1beta2_machine_of_k0smotron_runs,
        v1beta1_machine_of_k0smotron_runs,
        v1beta2_machine_of_kubeadm_runs,
        v1beta1_machine_of_kubeadm_runs,
        both_versions_show_the_same_machine,
    ]
}

async fn v1beta2_machine_of_k0smotron_runs(context: Arc<TestContext>) -> TestResult {
    runs(&context, MachinePlan::new("m")).await
}

async fn v1beta1_machine_of_k0smotron_runs(context: Arc<TestContext>) -> TestResult {
    runs(&context, MachinePlan { contract: Contract::V1Beta1, ..MachinePlan::new("m") }).await
}

async fn v1beta2_machine_of_kubeadm_runs(context: Arc<TestContext>) -> TestResult {
    runs(&context, MachinePlan::kubeadm("m")).await
}

async fn v1beta1_machine_of_kubeadm_runs(context: Arc<TestContext>) -> TestResult {
    runs(&context, MachinePlan { contract: Contract::V1Beta1, ..MachinePlan::kubeadm("m") }).await
}

/// Waits for Running, with the Node of its provider id, and as the controller of its parts.
async fn runs(context: &TestContext, plan: MachinePlan) -> TestResult {
    let cluster = cluster(context).await?;
    let made = running(context, &cluster, plan).await?;
    let machine = made.until_running().await?;
    assert_eq!(machine.data["status"]["nodeRef"]["name"], made.node());
    assert_eq!(machine.data["status"]["initialization"]["bootstrapDataSecretCreated"], true);
    assert_eq!(machine.data["status"]["initialization"]["infrastructureProvisioned"], true);
    for kind in ["BootstrapConfigReady", "InfrastructureReady", "NodeReady", "NodeHealthy"] {
        assert_eq!(condition(&machine, kind).0, "True", "{kind}");
    }
    let node = made.nodes().get(&made.node()).await?;
    let provider_id = node.spec.and_then(|spec| spec.provider_id);
    assert_eq!(machine.data["spec"]["providerID"].as_str(), provider_id.as_deref());
    for part in [
        made.bootstraps().get(&made.bootstrap()).await?,
        made.infrastructures().get(&made.infrastructure()).await?,
    ] {
        let controller = part.owner_references().iter().find(|owner| owner.controller == Some(true));
        assert_eq!(controller.map(|owner| owner.kind.as_str()), Some("Machine"), "{}", part.name_any());
        assert!(
            part.owner_references().iter().any(|owner| owner.kind == "ConfigMap"),
            "our plain reference stays"
        );
    }
    Ok(())
}

/// The field names of each version, read from one Machine.
async fn both_versions_show_the_same_machine(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let plan = MachinePlan { drain_timeout_seconds: Some(10), ..MachinePlan::new("m") };
    let made = running(&context, &cluster, plan).await?;
    let new = made.machines().get("m").await?.data;
    let old = MACHINE
        .at("v1beta1")
        .in_namespace(&context.management().admin(), context.namespace())
        .get("m")
        .await?
        .data;

    assert_eq!(new["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 10);
    assert_eq!(old["spec"]["nodeDrainTimeout"], "10s");
    let reference =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "m-infra" });
    assert_eq!(new["spec"]["infrastructureRef"], reference);
    assert_eq!(old["spec"]["infrastructureRef"]["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta2");
    assert_eq!(old["spec"]["infrastructureRef"]["namespace"], context.namespace());
    assert_eq!(new["status"]["nodeRef"], json!({ "name": made.node() }));
    assert_eq!(old["status"]["nodeRef"]["kind"], "Node");
    assert_eq!(old["status"]["bootstrapReady"], true);
    assert_eq!(old["status"]["infrastructureReady"], true);
    assert_eq!(new["status"]["initialization"]["infrastructureProvisioned"], true);
    Ok(())
}
