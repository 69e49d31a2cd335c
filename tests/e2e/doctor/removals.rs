//! Deletions that do not end, and leftovers. Their age is written into etcd: a real one would take ten
//! minutes.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_scenarios::kinds::{MACHINE, SCHEDULED_MACHINE};
use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::control_plane::Stored;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::provider::{ProviderBehaviour, StepBehaviour};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use jiff::SignedDuration;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use super::diagnosis::{Diagnosis, end_loan, with_controller};

/// Longer than any limit.
const LONG_AGO: SignedDuration = SignedDuration::from_mins(20);

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_machine_that_is_not_released_is_traced_to_its_provider,
        a_finalizer_without_a_controller_is_removed,
        a_machine_without_its_object_is_deleted
    ]
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Moves the deletion timestamp of an object into the past.
async fn age(diagnosis: &Diagnosis, group: &str, plural: &str, name: &str) -> TestResult {
    let context = &diagnosis.context;
    let stored = Stored { group, plural, namespace: context.namespace(), name };
    let control_plane = context.clusters().control_plane();
    // A controller may write the object at the same time.
    let mut tried = control_plane.age_deletion(stored, LONG_AGO).await;
    for _ in 0..9 {
        if tried.is_ok() {
            break;
        }
        tried = control_plane.age_deletion(stored, LONG_AGO).await;
    }
    tried
}

async fn a_machine_that_is_not_released_is_traced_to_its_provider(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        env.provider(ProviderBehaviour { release: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
        end_loan(&subject).await?;
        let machine = subject.machine();
        env.until(MACHINE, &machine, "to be terminating", is_terminating).await?;
        age(diagnosis, "cluster.x-k8s.io", "machines", &machine).await?;
        let found = diagnosis.finds("machine-stuck-deleting").await?;
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        let output = diagnosis.fix(&found, "5spot why machine.cluster.x-k8s.io/").await?;
        ensure!(output.contains(&format!("RemoteMachine {}/desk-infra", env.namespace())), "{output}");
        diagnosis.fix(&found, "kubectl describe").await?;
        env.provider(ProviderBehaviour::default());
        subject.until_phase("Disabled").await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_finalizer_without_a_controller_is_removed(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        env.stop_controller().await?;
        env.delete(SCHEDULED_MACHINE, subject.name()).await?;
        age(diagnosis, "5spot.finos.org", "scheduledmachines", subject.name()).await?;
        let found = diagnosis.finds("finalizer-overdue").await?;
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        diagnosis.fix(&found, "kubectl patch scheduledmachine desk").await?;
        subject.until_gone().await?;
        // The garbage collector deletes the Machine with its owner, and Cluster API the rest.
        env.until_gone(MACHINE, &subject.machine()).await?;
        diagnosis.is_well().await
    })
    .await
}

async fn a_machine_without_its_object_is_deleted(context: Arc<TestContext>) -> TestResult {
    with_controller(context, async |env, diagnosis| {
        let env: &dyn Environment = env;
        let subject = Subject::lent(env, json!({})).await?;
        env.delete_with(SCHEDULED_MACHINE, subject.name(), PropagationPolicy::Orphan).await?;
        subject.until_gone().await?;
        let found = diagnosis.finds("orphaned-machine").await?;
        ensure!(found["object"]["name"] == subject.machine(), "{found:#}");
        diagnosis.evidence(&found, &diagnosis.words()).await?;
        diagnosis.fix(&found, "kubectl delete machines.cluster.x-k8s.io").await?;
        env.until_gone(MACHINE, &subject.machine()).await?;
        diagnosis.is_well().await
    })
    .await
}
