//! Machines that someone else stands in the way of: a Machine of the same name, a taint of the same key, another
//! loan of the same physical machine, and a Node that is deleted.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_scenarios::kinds::{MACHINE, NODE};
use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use super::diagnosis::{end_loan, with_controller};
use super::pages::Words;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_taint_of_another_client_is_removed,
        a_name_that_is_taken_is_given_back,
        a_machine_is_lent_to_one_object_at_a_time,
        a_lost_node_is_found
    ]
}

async fn a_taint_of_another_client_is_removed(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        let node = subject.node().await?;
        let taints = json!([{"key": "example.org/lent", "effect": "NoSchedule"}]);
        env.patch(NODE, &node, json!({"spec": {"taints": taints}})).await?;
        subject.set(json!({"nodeTaints": taints})).await?;
        let found = diagnosis.finds("taint-conflict").await?;
        diagnosis.evidence(&found, &Words { node: &node, ..diagnosis.words() }).await?;
        diagnosis.fix(&found, "kubectl taint nodes").await?;
        diagnosis.is_well().await?;
        subject.until_condition("NodeTainted", "True", "Applied").await.map(drop)
    })
    .await
}

async fn a_name_that_is_taken_is_given_back(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        env.make_cluster("edge").await?;
        let foreign = json!({
            "metadata": {"name": "desk-machine", "labels": {"cluster.x-k8s.io/cluster-name": "edge"}},
            "spec": {
                "clusterName": "edge", "bootstrap": {"dataSecretName": "nothing"},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "nothing",
                },
            },
        });
        env.create(MACHINE, foreign).await?;
        let subject = Subject::make_without_cluster(env, json!({})).await?;
        let found = diagnosis.finds("name-taken").await?;
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        let printed = diagnosis.fix(&found, "kubectl get machines.cluster.x-k8s.io desk-machine").await?;
        ensure!(printed.contains("dataSecretName: nothing"), "{printed}");
        // What the note of the fix says: nobody needs it.
        env.delete(MACHINE, "desk-machine").await?;
        subject.until_ready().await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_machine_is_lent_to_one_object_at_a_time(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let shared = json!({"infrastructureSpec": {"spec": {"address": env.address()}}});
        let desk = Subject::lent(env, shared.clone()).await?;
        let night = Subject::make_another(env, "night", shared).await?;
        let found = diagnosis.finds("machine-in-use").await?;
        ensure!(found["object"]["name"] == "night", "{found:#}");
        ensure!(found["evidence"].to_string().contains("/desk"), "{found:#}");
        // What the note of the fix says: the loan of the other object ends.
        end_loan(&desk).await?;
        night.until_ready().await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_lost_node_is_found(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        env.delete(NODE, &subject.node().await?).await?;
        let found = diagnosis.finds("node-lost").await?;
        diagnosis.fix(&found, "kubectl describe machines.cluster.x-k8s.io").await?;
        end_loan(&subject).await?;
        subject.until_phase("Disabled").await?;
        diagnosis.is_well().await
    })
    .await
}
