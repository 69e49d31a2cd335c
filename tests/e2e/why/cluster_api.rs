//! A Machine that Cluster API may not change.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::program::{apply_fix, first_cause, why};
use crate::cluster_api::machine::{MachinePlan, cluster, running};

/// The time limit: the drain and the provider take a few seconds, rechecks of Cluster API up to 30 s.
const GONE_WITHIN: Duration = Duration::from_secs(100);

pub(crate) fn tests() -> Vec<Test> {
    tests![a_paused_machine_is_released_by_the_printed_fix]
}

async fn a_paused_machine_is_released_by_the_printed_fix(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    let pause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}});
    made.machines().patch("m", &PatchParams::default(), &Patch::Merge(&pause)).await?;
    made.delete().await?;
    let answer = why(&context, Side::Management, &["machine/m", "-n", context.namespace()]).await?;
    assert_eq!((&answer["state"], first_cause(&answer)), (&json!("stuck"), "Machine m".to_owned()));
    assert!(answer["causes"][0]["cause"].as_str().is_some_and(|it| it.contains("cluster.x-k8s.io/paused")));
    assert_eq!(answer["causes"][0]["fix"][0]["safe"], true);
    apply_fix(&context, Side::Management, &answer).await?;
    made.until_gone(GONE_WITHIN).await
}
