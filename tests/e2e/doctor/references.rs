//! A kubeconfig that the controller cannot use.

use std::sync::Arc;

use five_spot_scenarios::kinds::SECRET;
use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use anyhow::Context as _;

use super::diagnosis::with_controller;

pub(crate) fn tests() -> Vec<Test> {
    tests![a_broken_kubeconfig_is_named_and_repaired]
}

async fn a_broken_kubeconfig_is_named_and_repaired(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let _subject = Subject::lent(env, json!({})).await?;
        let secret = env.kubeconfig_secret().context("a Secret")?;
        let good = env.get(SECRET, &secret).await?["data"]["value"].clone();
        env.patch(SECRET, &secret, json!({"stringData": {"value": "clusters: ["}})).await?;
        let found = diagnosis.finds("kubeconfig-unusable").await?;
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        diagnosis.fix(&found, &format!("kubectl get secret {secret}")).await?;
        env.patch(SECRET, &secret, json!({"data": {"value": good}})).await?;
        diagnosis.is_well().await
    })
    .await
}
