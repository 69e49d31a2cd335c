//! The kinds of another provider: refused by name until a `ClusterRole` with 5-Spot's label grants them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::ScheduledMachine;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use kube::Api;
use serde_json::json;

use super::condition;
use crate::scenarios::controller_identity;
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![a_further_provider_needs_a_labelled_role]
}

const WITHIN: Duration = Duration::from_secs(90);

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

async fn a_further_provider_needs_a_labelled_role(context: Arc<TestContext>) -> TestResult {
    let identity = controller_identity(&context).await?;
    let admin = context.management().admin();
    let mut applier = manifests::Applier::new(admin.clone());
    manifests::apply_crds(&admin, &[definition()], WITHIN).await?;
    let mut object = machine("desk");
    object["metadata"]["namespace"] = context.namespace().into();
    object["spec"]["infrastructureSpec"] =
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "Shed", "spec": {}});
    applier.apply(&object, context.namespace()).await?;

    let flag = format!("--watch-namespace={}", context.namespace());
    let program = Program::start(context.directory(), &identity, context.namespace(), &[&flag]).await?;
    // Permissions that only one object needs do not affect readiness.
    program.is_ready().await?;
    let objects: Api<ScheduledMachine> = Api::namespaced(admin.clone(), context.namespace());
    let references = |object: &ScheduledMachine| {
        let found = condition(object, "ReferencesValid");
        found.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default()
    };
    let forbidden = |object: &ScheduledMachine| references(object).0 == "Forbidden";
    let object = wait::until_present(&objects, "desk", "to be refused", WITHIN, forbidden).await?;
    let (_, message) = references(&object);
    for part in
        ["spec.infrastructureSpec", "sheds", GROUP, "grant get, list, watch, create, patch and delete"]
    {
        ensure!(message.contains(part), "{part} in {message}");
    }

    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "5spot-provider-shed", "labels": {"5spot.finos.org/aggregate-to-controller": "true"},
        },
        "rules": [{
            "apiGroups": [GROUP], "resources": ["sheds"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }],
    });
    applier.apply(&role, "").await?;
    let allowed = |object: &ScheduledMachine| object.status.is_some() && references(object).0 != "Forbidden";
    wait::until_present(&objects, "desk", "to be allowed", WITHIN, allowed).await?;
    program.stop().await
}

fn definition() -> serde_json::Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("sheds.{GROUP}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Shed", "listKind": "ShedList", "plural": "sheds", "singular": "shed"},
            "versions": [{
                "name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    })
}
