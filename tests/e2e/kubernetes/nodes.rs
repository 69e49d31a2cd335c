//! Concurrent changes of a Node: the kinds of patches that lose changes of others.

use std::sync::Arc;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wire::{self, WireResponse};
use http::Method;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::kwok_node::{nodes, ready_node};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        applying_a_taint_conflicts_and_by_force_wipes_foreign_ones,
        stale_resource_version_in_a_patch_is_a_conflict,
        failed_test_of_a_json_patch_refuses_all_of_it,
        json_patch_can_test_the_machine_id,
    ]
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// 5-Spot does not use server-side apply for taints, because the list is atomic.
async fn applying_a_taint_conflicts_and_by_force_wipes_foreign_ones(context: Arc<TestContext>) -> TestResult {
    let name = ready_node(&context).await?.name_any();
    let taints = |key: &str| {
        let taint = json!({ "key": key, "effect": "NoSchedule" });
        json!({ "apiVersion": "v1", "kind": "Node", "spec": { "taints": [taint] } })
    };
    let foreign = patch(&context, &name, "?fieldManager=foreign", APPLY, &taints("foreign")).await?;
    assert_eq!(foreign.code, 200, "{}", foreign.message());
    let ours = patch(&context, &name, "?fieldManager=5spot", APPLY, &taints("ours")).await?;
    assert_eq!((ours.code, ours.body["reason"].as_str()), (409, Some("Conflict")), "{}", ours.message());
    let forced = patch(&context, &name, "?fieldManager=5spot&force=true", APPLY, &taints("ours")).await?;
    assert_eq!(forced.code, 200, "{}", forced.message());
    assert_eq!(taint_keys(&forced.body), ["ours"], "the foreign taint is gone");
    Ok(())
}

/// A patch that contains the resource version from which it was computed, like those of 5-Spot.
async fn stale_resource_version_in_a_patch_is_a_conflict(context: Arc<TestContext>) -> TestResult {
    let seen = ready_node(&context).await?;
    let name = seen.name_any();
    let moved = json!({ "metadata": { "annotations": { "someone": "else" } } });
    assert_eq!(patch(&context, &name, "", MERGE, &moved).await?.code, 200);
    let taint = json!({ "key": "ours", "effect": "NoSchedule" });
    let ours =
        json!({ "metadata": { "resourceVersion": seen.resource_version() }, "spec": { "taints": [taint] } });
    let refused = patch(&context, &name, "", MERGE, &ours).await?;
    assert_eq!(
        (refused.code, refused.body["reason"].as_str()),
        (409, Some("Conflict")),
        "{}",
        refused.message()
    );
    assert_eq!(taint_keys(&serde_json::to_value(nodes(&context).get(&name).await?)?), Vec::<String>::new());
    Ok(())
}

async fn failed_test_of_a_json_patch_refuses_all_of_it(context: Arc<TestContext>) -> TestResult {
    let name = ready_node(&context).await?.name_any();
    let state = json!({ "metadata": { "annotations": { "state": "one" } } });
    assert_eq!(patch(&context, &name, "", MERGE, &state).await?.code, 200);
    let change = json!([
        { "op": "add", "path": "/metadata/annotations/changed", "value": "true" },
        { "op": "test", "path": "/metadata/annotations/state", "value": "two" },
    ]);
    let refused = patch(&context, &name, "", JSON_PATCH, &change).await?;
    assert_eq!(
        (refused.code, refused.body["reason"].as_str()),
        (422, Some("Invalid")),
        "{}",
        refused.message()
    );
    let unchanged = nodes(&context).get(&name).await?;
    assert!(!unchanged.annotations().contains_key("changed"));
    Ok(())
}

/// The agent relies on this to patch only its own Node without reading it.
async fn json_patch_can_test_the_machine_id(context: Arc<TestContext>) -> TestResult {
    let name = ready_node(&context).await?.name_any();
    let info = json!({
        "machineID": "0123456789abcdef0123456789abcdef", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
        "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "", "operatingSystem": "linux",
        "architecture": "amd64",
    });
    let path = format!("/api/v1/nodes/{name}/status");
    let status = json!({ "status": { "nodeInfo": info } });
    let client = context.workload().admin();
    assert_eq!(wire::ask(&client, Method::PATCH, &path, MERGE, Some(&status)).await?.code, 200);
    let reclaim = |machine_id: &str| {
        json!([
            { "op": "test", "path": "/status/nodeInfo/machineID", "value": machine_id },
            { "op": "add", "path": "/metadata/annotations/5spot.finos.org~1reclaim-requested", "value": "true" },
        ])
    };
    let another = patch(&context, &name, "", JSON_PATCH, &reclaim("another")).await?;
    assert_eq!(another.code, 422, "{}", another.message());
    let own = patch(&context, &name, "", JSON_PATCH, &reclaim("0123456789abcdef0123456789abcdef")).await?;
    assert_eq!(own.code, 200, "{}", own.message());
    assert_eq!(own.body["metadata"]["annotations"]["5spot.finos.org/reclaim-requested"], "true");
    Ok(())
}

async fn patch(
    context: &TestContext,
    name: &str,
    query: &str,
    kind: &str,
    body: &Value,
) -> anyhow::Result<WireResponse> {
    let path = format!("/api/v1/nodes/{name}{query}");
    Ok(wire::ask(&context.workload().admin(), Method::PATCH, &path, kind, Some(body)).await?)
}

fn taint_keys(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str().map(String::from)).collect()
}
