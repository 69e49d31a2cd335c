//! Pods on a Machine's node, and budgets that do not allow their eviction.

use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

/// The time limit: kwok runs a pod within a second.
const POD_READY_WITHIN: Duration = Duration::from_mins(1);

/// A pod that runs on a node, labelled `app: <name>` and with the given additions.
pub(crate) async fn pod_on(
    context: &TestContext,
    node: &str,
    name: &str,
    labels: &[(&str, &str)],
) -> anyhow::Result<Pod> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "registry.invalid/sleeper" }],
            "terminationGracePeriodSeconds": 1,
        },
    });
    for (label, value) in labels {
        pod["metadata"]["labels"][label] = json!(value);
    }
    let pods = pods(context);
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await.context("pod")?;
    Ok(wait::until_present(&pods, name, "to run", POD_READY_WITHIN, is_ready).await?)
}

pub(crate) fn pods(context: &TestContext) -> Api<Pod> {
    Api::namespaced(context.workload().admin(), context.namespace())
}

pub(crate) fn budgets(context: &TestContext) -> Api<PodDisruptionBudget> {
    Api::namespaced(context.workload().admin(), context.namespace())
}

/// A budget that allows no disruption of `app`, once the controller-manager has counted its pods.
pub(crate) async fn block_evictions(context: &TestContext, app: &str) -> anyhow::Result<()> {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": app },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": app } } },
    });
    let budgets = budgets(context);
    budgets.create(&PostParams::default(), &serde_json::from_value(budget)?).await.context("budget")?;
    let counted = |budget: &PodDisruptionBudget| {
        budget.status.as_ref().is_some_and(|status| {
            status.observed_generation == budget.metadata.generation && status.current_healthy == Some(1)
        })
    };
    wait::until_present(&budgets, app, "to be counted", POD_READY_WITHIN, counted).await?;
    Ok(())
}

/// All attempts to evict a pod so far.
pub(crate) fn evictions(context: &TestContext, pod: &str) -> std::io::Result<Vec<AuditRecord>> {
    let query = AuditQuery::all().resource("pods/eviction").namespace(context.namespace()).name(pod);
    context.workload().audit_log().read(&query)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .is_some_and(|conditions| conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
}
