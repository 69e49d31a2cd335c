//! The controller's own token is in a file, as in a pod, and replaced there while it runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::scenarios::{controller_identity, node_identity};
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![a_token_that_is_replaced_is_used_without_a_restart]
}

/// The time limit: the file is read again within a minute, and a request that failed twice meanwhile is
/// retried after another.
const WITHIN: Duration = Duration::from_secs(150);

/// An API server accepts a revoked token for ten more seconds.
const FORGOTTEN_WITHIN: Duration = Duration::from_mins(1);

async fn a_token_that_is_replaced_is_used_without_a_restart(context: Arc<TestContext>) -> TestResult {
    let identity = controller_identity(&context).await?;
    let old = identity.bound_to(&context.cluster_scoped("old")).await?;
    let file = context.directory().join(format!("{}.token", context.namespace()));
    std::fs::write(&file, old.token())?;
    let flag = format!("--watch-namespace={}", context.namespace());
    let program =
        Program::start_by_file(context.directory(), &identity, &file, context.namespace(), &[&flag]).await?;
    context.capi_cluster("edge", ControlPlaneOwner::External).await?;
    lend(&context, "before").await?;
    until_active(&context, "before").await?;
    program.is_ready().await?;

    let renewed = async {
        revoke(&context, &context.cluster_scoped("old"), &old).await?;
        lend(&context, "after").await?;
        program.logged_with("Reconciliation error", &["Unauthorized"]).await?;
        let objects: Api<ScheduledMachine> =
            Api::namespaced(context.management().admin(), context.namespace());
        ensure!(objects.get("after").await?.status.is_none(), "nothing can be written with the old one");
        let new = identity.bound_to(&context.cluster_scoped("new")).await?;
        std::fs::write(&file, new.token())?;
        until_active(&context, "after").await
    };
    let (renewed, liveness_failures) = program.liveness_failures_during(renewed).await;
    renewed.with_context(|| program.log())?;
    ensure!(liveness_failures.is_empty(), "a restart would not have helped: {liveness_failures:?}");
    program.is_ready().await?;
    program.stop().await
}

/// A machine that is wanted now.
async fn lend(context: &TestContext, name: &str) -> anyhow::Result<()> {
    let nodes = node_identity(context, context.namespace()).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-nodes"},
        "stringData": {"value": nodes.kubeconfig(None)},
    });
    let mut object = machine(name);
    object["metadata"]["namespace"] = context.namespace().into();
    object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
    object["spec"]["infrastructureSpec"]["spec"] = json!({"address": context.address()});
    let mut applier = manifests::Applier::new(context.management().admin());
    Ok(applier.apply_all(&[secret, object], context.namespace()).await?)
}

async fn until_active(context: &TestContext, name: &str) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(context.management().admin(), context.namespace());
    let is_active = |object: &ScheduledMachine| {
        object.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Active))
    };
    wait::until_present(&objects, name, "to be Active", WITHIN, is_active).await?;
    Ok(())
}

/// Deletes the object that a token is bound to, and waits until the API server rejects the token.
async fn revoke(context: &TestContext, secret: &str, bearer: &ServiceAccountIdentity) -> anyhow::Result<()> {
    let secrets: Api<Secret> = Api::namespaced(context.management().admin(), SYSTEM_NAMESPACE);
    secrets.delete(secret, &DeleteParams::default()).await?;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(bearer.client("5spot-e2e-bearer/1").await?);
    let question = json!({"metadata": {}, "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let question: SelfSubjectAccessReview = serde_json::from_value(question)?;
    let refused = async {
        loop {
            match reviews.create(&PostParams::default(), &question).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                Err(kube::Error::Api(status)) if status.code == 401 => return anyhow::Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    };
    tokio::time::timeout(FORGOTTEN_WITHIN, refused).await.context("the token is still good")?
}
