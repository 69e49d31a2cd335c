//! The shipped roles: what they permit an agent to do, and that the DaemonSet is a valid object.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wire::ask;
use http::Method;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::bound;
use crate::permissions::deploy;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        shipped_roles_grant_config_maps_and_the_patch_of_nodes,
        the_daemon_set_is_accepted,
        json_patch_can_test_that_there_are_no_annotations,
    ]
}

/// On the management cluster, where no test grants the account anything else.
async fn shipped_roles_grant_config_maps_and_the_patch_of_nodes(context: Arc<TestContext>) -> TestResult {
    let cluster = context.management();
    bound::install(cluster).await?;
    let agent = bound::client(cluster, &bound::token(cluster, None).await?).await?;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(agent);
    for (verb, resource, namespace, allowed) in [
        ("get", "configmaps", "5spot-system", true),
        ("list", "configmaps", "5spot-system", true),
        ("watch", "configmaps", "5spot-system", true),
        ("patch", "nodes", "", true),
        ("create", "configmaps", "5spot-system", false),
        ("patch", "configmaps", "5spot-system", false),
        ("delete", "configmaps", "5spot-system", false),
        ("get", "configmaps", "kube-system", false),
        ("get", "secrets", "5spot-system", false),
        ("list", "secrets", "", false),
        ("get", "nodes", "", false),
        ("list", "nodes", "", false),
        ("update", "nodes", "", false),
        ("delete", "nodes", "", false),
        ("get", "pods", "5spot-system", false),
        ("create", "pods", "5spot-system", false),
        ("impersonate", "users", "", false),
    ] {
        let attributes = ResourceAttributes {
            verb: Some(verb.into()),
            resource: Some(resource.into()),
            namespace: Some(namespace.into()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let granted = answer.status.is_some_and(|status| status.allowed);
        ensure!(granted == allowed, "{verb} {resource} in {namespace:?}: {granted}");
    }
    Ok(())
}

async fn the_daemon_set_is_accepted(context: Arc<TestContext>) -> TestResult {
    let cluster = context.management();
    bound::install(cluster).await?;
    let document = five_spot_testenv::manifests::read(&deploy("node-agent/daemonset.yaml"))?.remove(0);
    let path = "/apis/apps/v1/namespaces/5spot-system/daemonsets?dryRun=All&fieldValidation=Strict";
    let answer = ask(&cluster.admin(), Method::POST, path, "application/json", Some(&document)).await?;
    ensure!(answer.code == 201, "{answer:?}");
    // The namespace warns of everything beyond the level `restricted`.
    let expected = |warning: &String| warning.contains("would violate PodSecurity \"restricted");
    ensure!(answer.warnings.len() == 1 && answer.warnings.iter().all(expected), "{answer:?}");
    Ok(())
}

/// The agent's second form of its patch, for a Node that has no annotations yet. A ConfigMap stands in for the Node, which
/// the control plane annotates within moments.
async fn json_patch_can_test_that_there_are_no_annotations(context: Arc<TestContext>) -> TestResult {
    let admin = context.management().admin();
    let folder = format!("/api/v1/namespaces/{}/configmaps", context.namespace());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}});
    let made = ask(&admin, Method::POST, &folder, "application/json", Some(&object)).await?;
    ensure!(made.code == 201, "{made:?}");
    let patch = json!([
        {"op": "test", "path": "/metadata/annotations", "value": null},
        {"op": "add", "path": "/metadata/annotations", "value": {"first": "true"}},
    ]);
    let (target, kind) = (format!("{folder}/bare"), "application/json-patch+json");
    let add = json!([{"op": "add", "path": "/metadata/annotations/first", "value": "true"}]);
    let refused = ask(&admin, Method::PATCH, &target, kind, Some(&add)).await?;
    ensure!(refused.code == 422, "nothing can be added to what is absent: {refused:?}");
    let accepted = ask(&admin, Method::PATCH, &target, kind, Some(&patch)).await?;
    ensure!(accepted.code == 200, "{accepted:?}");
    ensure!(accepted.body["metadata"]["annotations"]["first"] == "true", "{accepted:?}");
    let again = ask(&admin, Method::PATCH, &target, kind, Some(&patch)).await?;
    ensure!(again.code == 422, "annotations that are there are not replaced: {again:?}");
    Ok(())
}
