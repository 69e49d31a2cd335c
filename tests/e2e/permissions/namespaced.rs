//! A controller that watches selected namespaces, with Roles there and no further permissions. It runs some of the
//! scenarios (`scenarios::roles_only`); refused requests are checked after the last test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::ScheduledMachine;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use kube::Api;
use serde_json::{Value, json};

use super::audit::deploy;
use super::condition;
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![other_namespaces_stay_untouched]
}

/// The account of this test. The shipped account has more rights in these clusters.
pub(super) const ACCOUNT: &str = "5spot-roles-only";

const WITHIN: Duration = Duration::from_mins(1);

/// The 5-Spot CRD, and an identity with rights in this context's namespace.
pub(crate) async fn identity(context: &TestContext) -> anyhow::Result<ServiceAccountIdentity> {
    let admin = context.management().admin();
    manifests::apply_crds(&admin, &manifests::read(&deploy("crds"))?, WITHIN).await?;
    let shipped = manifests::read(&deploy("rbac-namespaced"))?;
    let documents: Vec<Value> = shipped.into_iter().map(renamed).collect();
    // Objects without a namespace go into the context's; the account is in its own namespace.
    let in_scene: Vec<Value> =
        documents.iter().map(|document| placed(document, context.namespace())).collect();
    let identity =
        ServiceAccountIdentity::from_manifests(context.management(), &in_scene, SYSTEM_NAMESPACE, ACCOUNT)
            .await?;
    Ok(identity)
}

/// The same for the account of this test.
fn renamed(mut document: Value) -> Value {
    if document["kind"] == "ServiceAccount" {
        document["metadata"]["name"] = ACCOUNT.into();
    }
    if document["subjects"].is_array() {
        document["subjects"][0]["name"] = ACCOUNT.into();
        // Bindings in addition to those of the shipped account.
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        document["metadata"]["name"] = format!("{name}-roles-only").into();
    }
    document
}

fn placed(document: &Value, namespace: &str) -> Value {
    let mut document = document.clone();
    if document["kind"] != "Namespace" && document["metadata"]["namespace"].is_null() {
        document["metadata"]["namespace"] = namespace.into();
    }
    document
}

async fn other_namespaces_stay_untouched(context: Arc<TestContext>) -> TestResult {
    let identity = identity(&context).await?;
    let admin = context.management().admin();
    let mut applier = manifests::Applier::new(admin.clone());
    let elsewhere = context.cluster_scoped("other");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}});
    applier.apply(&namespace, "").await?;
    for place in [elsewhere.as_str(), context.namespace()] {
        let mut object = machine("desk");
        object["metadata"]["namespace"] = place.into();
        // Its Nodes are in another cluster, whose kubeconfig does not exist yet.
        object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
        applier.apply(&object, place).await?;
    }
    let flag = format!("--watch-namespace={}", context.namespace());
    let program = Program::start(context.directory(), &identity, context.namespace(), &[&flag]).await?;
    program.is_ready().await?;
    let ours: Api<ScheduledMachine> = Api::namespaced(admin.clone(), context.namespace());
    let looked_at = |object: &ScheduledMachine| object.status.is_some();
    wait::until_present(&ours, "desk", "to be looked at", WITHIN, looked_at).await?;
    let other: Api<ScheduledMachine> = Api::namespaced(admin.clone(), &elsewhere);
    let other = other.get("desk").await?;
    ensure!(other.status.is_none() && other.metadata.finalizers.is_none(), "{other:?}");
    // No request was sent for it either.
    let query = AuditQuery::all().user(&identity.user()).namespace(&elsewhere);
    let requests = context.management().audit_log().read(&query)?;
    ensure!(requests.is_empty(), "{requests:?}");

    // The annotation of the namespace is seen, although the account may not list namespaces.
    let paused = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": context.namespace(), "annotations": {"5spot.finos.org/paused": "true"}},
    });
    applier.apply(&paused, "").await?;
    let is_paused =
        |object: &ScheduledMachine| condition(object, "Paused").is_some_and(|it| it.status == "True");
    wait::until_present(&ours, "desk", "to be paused", WITHIN, is_paused).await?;
    program.stop().await
}
