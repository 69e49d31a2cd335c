//! Pauses hold the controller back until they are lifted.

use crate::environment::Environment;
use crate::kinds::{CLUSTER, MACHINE, NAMESPACE, ObjectKind, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject, condition};
use anyhow::ensure;
use five_spot_api::names::annotation::{CAPI_PAUSED, PAUSED, PAUSED_ALL};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        paused_by_our_annotation => 2,
        paused_by_namespace => 2,
        paused_by_annotation_of_cluster_api => 2,
        paused_by_machine => 2,
        paused_by_cluster => 2,
        kill_switch_in_spite_of_pause => 2,
        kill_switch_held_by_pause_of_all => 2,
    ]
}

async fn paused_by_our_annotation(env: &dyn Environment) -> anyhow::Result<Ending> {
    let lift = annotated(PAUSED, &Value::Null);
    held(env, (SCHEDULED_MACHINE, "desk"), annotated(PAUSED, &json!("true")), lift).await
}

async fn paused_by_namespace(env: &dyn Environment) -> anyhow::Result<Ending> {
    let lift = annotated(PAUSED, &Value::Null);
    held(env, (NAMESPACE, env.namespace()), annotated(PAUSED, &json!("true")), lift).await
}

async fn paused_by_annotation_of_cluster_api(env: &dyn Environment) -> anyhow::Result<Ending> {
    let lift = annotated(CAPI_PAUSED, &Value::Null);
    held(env, (SCHEDULED_MACHINE, "desk"), annotated(CAPI_PAUSED, &json!("")), lift).await
}

async fn paused_by_machine(env: &dyn Environment) -> anyhow::Result<Ending> {
    let lift = annotated(CAPI_PAUSED, &Value::Null);
    held(env, (MACHINE, "desk-machine"), annotated(CAPI_PAUSED, &json!("")), lift).await
}

async fn paused_by_cluster(env: &dyn Environment) -> anyhow::Result<Ending> {
    let paused = |paused: bool| json!({"spec": {"paused": paused}});
    held(env, (CLUSTER, CLUSTER_NAME), paused(true), paused(false)).await
}

fn annotated(annotation: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {annotation: value}}})
}

/// A machine that should be removed stays during a pause; the status shows what would happen; then it is
/// removed.
async fn held(
    env: &dyn Environment,
    (kind, name): (ObjectKind, &str),
    pause: Value,
    lift: Value,
) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    env.patch(kind, name, pause).await?;
    subject.until("to be paused", |object| condition(object, "Paused")["status"] == "True").await?;
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    let reported = |object: &Value| {
        let message = condition(object, "Paused")["message"].as_str().unwrap_or_default();
        message.contains("held back") && condition(object, "Ready")["reason"] == "Paused"
    };
    subject.until("to tell what is held back", reported).await?;
    let stays = |object: &Value| !object.is_null() && object["metadata"]["deletionTimestamp"].is_null();
    env.lasts(MACHINE, &subject.machine(), "existing", Duration::from_secs(5), stays).await?;
    env.patch(kind, name, lift).await?;
    let rested = subject.until_phase("Disabled").await?;
    ensure!(condition(&rested, "Paused")["status"] == "False", "{rested}");
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// A pause stops routine work, not emergencies.
async fn kill_switch_in_spite_of_pause(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    subject.annotate(PAUSED, json!("true")).await?;
    subject.until("to be paused", |object| condition(object, "Paused")["status"] == "True").await?;
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_phase("Terminated").await?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}

/// Unless its value is `all`.
async fn kill_switch_held_by_pause_of_all(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    subject.annotate(PAUSED, json!(PAUSED_ALL)).await?;
    subject.until("to be paused", |object| condition(object, "Paused")["status"] == "True").await?;
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_condition("Ready", "False", "Paused").await?;
    let stays = |object: &Value| !object.is_null() && object["metadata"]["deletionTimestamp"].is_null();
    env.lasts(MACHINE, &subject.machine(), "existing", Duration::from_secs(5), stays).await?;
    subject.annotate(PAUSED, Value::Null).await?;
    subject.until_phase("Terminated").await?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}
