//! The limits of CEL in CRDs, within which the rules of 5-Spot are written.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wire::{self, WireResponse};
use five_spot_testenv::{manifests, tests};
use http::Method;
use serde_json::{Value, json};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        time_zones_are_known_but_not_only_iana_names_pass,
        the_name_is_seen_and_the_namespace_is_not,
        unbounded_lists_exceed_the_cost_budget,
    ]
}

async fn time_zones_are_known_but_not_only_iana_names_pass(context: Arc<TestContext>) -> TestResult {
    let rule = json!({
        "rule": "timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0", "message": "must be a time zone",
    });
    let zone = json!({ "type": "string", "maxLength": 64, "x-kubernetes-validations": [rule] });
    let crd = crd("zones", "Zone", &json!({ "type": "object", "properties": { "zone": zone } }));
    manifests::apply_crds(&context.management().admin(), &[crd], Duration::from_secs(30)).await?;
    for (number, zone) in
        ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "+02:00", "Local", ""].iter().enumerate()
    {
        let answer = post_zone(&context, &format!("good-{number}"), zone).await?;
        assert_eq!(answer.code, 201, "{zone:?}: {}", answer.message());
    }
    for zone in ["Mars/Base", "europe/berlin"] {
        let answer = post_zone(&context, "bad", zone).await?;
        assert_eq!(answer.code, 422, "{zone:?}");
        assert!(answer.message().contains("unknown time zone"), "{}", answer.message());
        assert!(
            answer.message().contains("must be a time zone"),
            "our message is there too: {}",
            answer.message()
        );
    }
    Ok(())
}

async fn the_name_is_seen_and_the_namespace_is_not(context: Arc<TestContext>) -> TestResult {
    let with_rule = |plural: &str, kind: &str, rule: &str| {
        let rules = json!([{ "rule": rule, "message": "no" }]);
        crd(plural, kind, &json!({ "type": "object", "x-kubernetes-validations": rules }))
    };
    let name = with_rule("namewatchers", "NameWatcher", "self.metadata.name.size() <= 53");
    assert_eq!(post_crd(&context, &name).await?.code, 201);
    let namespace = with_rule("spacewatchers", "SpaceWatcher", "self.metadata.namespace != 'kube-system'");
    let refused = post_crd(&context, &namespace).await?;
    assert_eq!(refused.code, 422);
    assert!(refused.message().contains("undefined field 'namespace'"), "{}", refused.message());
    Ok(())
}

async fn unbounded_lists_exceed_the_cost_budget(context: Arc<TestContext>) -> TestResult {
    let rules = json!([{ "rule": "self.all(a, self.exists(b, a != b))", "message": "no" }]);
    let list = |bounds: &Value| {
        let mut list =
            json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": rules });
        if let Some(bounds) = bounds.as_object() {
            list["maxItems"] = bounds["maxItems"].clone();
            list["items"]["maxLength"] = bounds["maxLength"].clone();
        }
        json!({ "type": "object", "properties": { "list": list } })
    };
    let refused = post_crd(&context, &crd("unboundeds", "Unbounded", &list(&Value::Null))).await?;
    assert_eq!(refused.code, 422);
    assert!(refused.message().contains("estimated rule cost exceeds budget"), "{}", refused.message());
    let bounded = list(&json!({ "maxItems": 16, "maxLength": 64 }));
    let accepted = post_crd(&context, &crd("boundeds", "Bounded", &bounded)).await?;
    assert_eq!(accepted.code, 201, "{}", accepted.message());
    Ok(())
}

const GROUP: &str = "cel.testenv.5spot.finos.org";

fn crd(plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

async fn post_crd(context: &TestContext, crd: &Value) -> anyhow::Result<WireResponse> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    Ok(wire::ask(&context.management().admin(), Method::POST, path, "application/json", Some(crd)).await?)
}

async fn post_zone(context: &TestContext, name: &str, zone: &str) -> anyhow::Result<WireResponse> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{}/zones", context.namespace());
    let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Zone", "metadata": { "name": name }, "zone": zone });
    Ok(wire::ask(&context.management().admin(), Method::POST, &path, "application/json", Some(&object))
        .await?)
}
