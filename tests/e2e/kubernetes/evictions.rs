//! The Eviction API as the controller uses it.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use five_spot_testenv::wire::{self, WireResponse};
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::kwok_node::ready_node;
use crate::cluster_api::workload::{block_evictions, pod_on, pods};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        budget_answers_429_and_the_pod_stays,
        another_uid_is_a_conflict_and_a_missing_pod_not_found,
        evicted_pod_keeps_its_uid_until_it_is_gone,
    ]
}

async fn budget_answers_429_and_the_pod_stays(context: Arc<TestContext>) -> TestResult {
    let pod = pod_on(&context, &ready_node(&context).await?.name_any(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    let refused = evict(&context, "web", &json!({})).await?;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (429, Some("TooManyRequests")));
    assert_eq!(refused.causes()[0].reason, "DisruptionBudget");
    let after = pods(&context).get("web").await?;
    assert_eq!((after.uid(), after.metadata.deletion_timestamp), (pod.uid(), None));
    Ok(())
}

async fn another_uid_is_a_conflict_and_a_missing_pod_not_found(context: Arc<TestContext>) -> TestResult {
    pod_on(&context, &ready_node(&context).await?.name_any(), "web", &[]).await?;
    let another = json!({ "preconditions": { "uid": "11111111-2222-3333-4444-555555555555" } });
    assert_eq!(evict(&context, "web", &another).await?.code, 409);
    assert_eq!(evict(&context, "nobody", &json!({})).await?.code, 404);
    Ok(())
}

/// The end of an eviction is the end of that UID, with the grace period in between.
async fn evicted_pod_keeps_its_uid_until_it_is_gone(context: Arc<TestContext>) -> TestResult {
    let node = ready_node(&context).await?.name_any();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "slow", "annotations": { "testenv.5spot.finos.org/exit-delay": "4s" } },
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "registry.invalid/sleeper" }],
        },
    });
    let created: Pod = pods(&context).create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    let within = Duration::from_secs(30);
    let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    wait::until_present(&pods(&context), "slow", "to run", within, runs).await?;
    let own = json!({ "preconditions": { "uid": created.uid() } });
    assert_eq!(evict(&context, "slow", &own).await?.code, 201);
    let going = pods(&context).get("slow").await?;
    assert_eq!((going.uid(), going.metadata.deletion_grace_period_seconds), (created.uid(), Some(30)));
    wait::until_gone(&pods(&context), "slow", within).await?;
    Ok(())
}

async fn evict(context: &TestContext, pod: &str, options: &Value) -> anyhow::Result<WireResponse> {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod }, "deleteOptions": options,
    });
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", context.namespace());
    let client = context.workload().admin();
    Ok(wire::ask(&client, Method::POST, &path, "application/json", Some(&eviction)).await?)
}
