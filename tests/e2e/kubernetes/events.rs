//! Events through `events.k8s.io/v1`: their allowed content, and the changes that are allowed afterwards.

use std::sync::Arc;

use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wire::{self, WireResponse};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        deprecated_timestamps_are_refused,
        only_the_series_may_be_patched,
        sorting_by_last_timestamp_sorts_nothing,
        same_name_again_is_a_conflict,
        terminating_namespace_refuses_events,
    ]
}

const WHEN: &str = "2026-11-15T08:00:00.000000Z";

async fn deprecated_timestamps_are_refused(context: Arc<TestContext>) -> TestResult {
    for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        let mut event = event(&context, "e");
        event[field] = json!("2026-11-15T08:00:00Z");
        let refused = post(&context, &event).await?;
        assert_eq!(refused.code, 422, "{field}: {}", refused.message());
        assert!(refused.message().contains("needs to be unset"), "{}", refused.message());
    }
    assert_eq!(post(&context, &event(&context, "e")).await?.code, 201);
    Ok(())
}

async fn only_the_series_may_be_patched(context: Arc<TestContext>) -> TestResult {
    assert_eq!(post(&context, &event(&context, "e")).await?.code, 201);
    for (field, value) in [("note", "another"), ("reason", "Another"), ("reportingInstance", "another")] {
        let refused = patch(&context, "e", &json!({ field: value })).await?;
        assert_eq!(refused.code, 422, "{field}: {}", refused.message());
        assert!(refused.message().contains("immutable"), "{field}: {}", refused.message());
    }
    let series = json!({ "series": { "count": 2, "lastObservedTime": WHEN } });
    let patched = patch(&context, "e", &series).await?;
    assert_eq!((patched.code, &patched.body["series"]["count"]), (200, &json!(2)), "{}", patched.message());
    Ok(())
}

/// Documentation should recommend `--sort-by=.metadata.creationTimestamp`: with the usual field there is
/// nothing to sort by.
async fn sorting_by_last_timestamp_sorts_nothing(context: Arc<TestContext>) -> TestResult {
    for name in ["a", "b"] {
        assert_eq!(post(&context, &event(&context, name)).await?.code, 201);
    }
    let jsonpath = "-o=jsonpath={range .items[*]}[{.lastTimestamp}]{end}";
    let output =
        context.kubectl(Side::Management, &["get", "events", "--sort-by=.lastTimestamp", jsonpath]).await?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[null][null]");
    Ok(())
}

/// An event name derived from object, reason and cause prevents a restarted controller from reporting twice.
async fn same_name_again_is_a_conflict(context: Arc<TestContext>) -> TestResult {
    assert_eq!(post(&context, &event(&context, "e")).await?.code, 201);
    let again = post(&context, &event(&context, "e")).await?;
    assert_eq!((again.code, again.body["reason"].as_str()), (409, Some("AlreadyExists")));
    Ok(())
}

/// A failed event never fails a reconcile: during the deletion of a namespace every event fails.
async fn terminating_namespace_refuses_events(context: Arc<TestContext>) -> TestResult {
    let client = context.management().admin();
    let objects: Api<ConfigMap> = Api::namespaced(client.clone(), context.namespace());
    let holder = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "holder", "finalizers": ["testenv.5spot.finos.org/holds-the-namespace"] },
    });
    objects.create(&PostParams::default(), &serde_json::from_value(holder)?).await?;
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete(context.namespace(), &DeleteParams::default()).await?;
    let refused = post(&context, &event(&context, "e")).await?;
    assert_eq!(refused.code, 403, "{}", refused.message());
    assert_eq!(refused.causes()[0].reason, "NamespaceTerminating");
    Ok(())
}

fn event(context: &TestContext, name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": name, "namespace": context.namespace() },
        "eventTime": WHEN, "reportingController": "5spot-controller", "reportingInstance": "pod-1",
        "action": "Reconcile", "reason": "ScheduleActive", "type": "Normal", "note": "the window is open",
        "regarding": { "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": context.namespace() },
    })
}

fn path(context: &TestContext) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", context.namespace())
}

async fn post(context: &TestContext, event: &Value) -> anyhow::Result<WireResponse> {
    let client = context.management().admin();
    Ok(wire::ask(&client, Method::POST, &path(context), "application/json", Some(event)).await?)
}

async fn patch(context: &TestContext, name: &str, body: &Value) -> anyhow::Result<WireResponse> {
    let client = context.management().admin();
    let path = format!("{}/{name}", path(context));
    Ok(wire::ask(&client, Method::PATCH, &path, "application/merge-patch+json", Some(body)).await?)
}
