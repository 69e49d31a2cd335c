//! Drains that real budgets, grace periods and finalizers block.

use std::sync::Arc;

use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use super::diagnosis::{end_loan, with_controller};
use super::pages::Words;

/// The annotation with the time that kwok lets a pod take to stop.
const EXIT_DELAY: &str = "testenv.5spot.finos.org/exit-delay";

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_budget_that_blocks_a_drain_is_relaxed,
        a_long_grace_period_gets_a_longer_drain,
        a_pod_with_a_finalizer_is_released
    ]
}

/// The kubeconfig of the controller does not allow to read budgets: the message of the refused eviction has
/// to be sufficient.
async fn a_budget_that_blocks_a_drain_is_relaxed(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let short = json!({"gracefulShutdownTimeout": "20s", "nodeDrainTimeout": "20s"});
        let subject = Subject::lent(env, short).await?;
        env.pod_on(&subject.node().await?, "web").await?;
        env.budget_for("web").await?;
        diagnosis.is_well().await?;
        end_loan(&subject).await?;
        let found = diagnosis.finds("pdb-blocks-drain").await?;
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        diagnosis.fix(&found, "kubectl patch poddisruptionbudget web").await?;
        subject.until_phase("Disabled").await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_long_grace_period_gets_a_longer_drain(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let short = json!({"gracefulShutdownTimeout": "10s", "nodeDrainTimeout": "10s"});
        let subject = Subject::lent(env, short).await?;
        let slow = json!({
            "metadata": {"annotations": {EXIT_DELAY: "60s"}}, "spec": {"terminationGracePeriodSeconds": 60},
        });
        env.pod_that(&subject.node().await?, "slow", slow).await?;
        end_loan(&subject).await?;
        let found = diagnosis.finds("long-grace-period").await?;
        diagnosis.evidence(&found, &Words { pod: "slow", ..diagnosis.words() }).await?;
        diagnosis.fix(&found, "kubectl patch scheduledmachine desk").await?;
        diagnosis.is_well().await?;
        subject.until_phase("Disabled").await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_pod_with_a_finalizer_is_released(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        env.pod_that(&subject.node().await?, "held", held).await?;
        end_loan(&subject).await?;
        let found = diagnosis.finds("pod-stuck-terminating").await?;
        diagnosis.evidence(&found, &Words { pod: "held", ..diagnosis.words() }).await?;
        let output = diagnosis.fix(&found, "5spot why pod/held").await?;
        anyhow::ensure!(output.contains("example.org/hold"), "{output}");
        diagnosis.fix(&found, "kubectl patch pod held").await?;
        subject.until_phase("Disabled").await?;
        diagnosis.is_well().await
    })
    .await
}
