//! The definition of `ScheduledMachine`: missing, too old, current, newer, and with another version.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::bare::{Bare, machine, shipped_definition, shipped_rules};
use super::program::Program;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_definition_that_is_missing_or_too_old_is_waited_for,
        a_definition_that_is_newer_or_of_another_version_is_named
    ]
}

const WITHIN: Duration = Duration::from_mins(1);

async fn a_definition_that_is_missing_or_too_old_is_waited_for(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("missing").await?;
    let identity = bare.account("controller", &Value::Array(shipped_rules()?)).await?;
    bare.install_cluster_api().await?;

    let missing = "the CRD scheduledmachines.5spot.finos.org is not installed";
    let program = Program::start(bare.directory(), &identity, "missing", &[]).await?;
    program.is_not_ready(&[missing, "scheduledmachines are not synced: "]).await?;
    program.logged_with(missing, &["deploy/crds"]).await?;
    announced(&bare, "NotReady", missing).await?;
    program.stop().await?;

    // A controller that sees the definition missing, then too old, then current.
    let program = Program::start(bare.directory(), &identity, "patient", &[]).await?;
    program.is_not_ready(&[missing]).await?;
    bare.define(&without_status_field("drain")).await?;
    bare.apply(&machine("desk")).await?;
    let too_old = "older than this program: it does not contain status.drain; the controller does nothing";
    program.is_not_ready(&[too_old]).await?;
    program.logged_with("the CRD scheduledmachines.5spot.finos.org is older", &["deploy/crds"]).await?;
    program.logged_with("Not ready", &["does not contain status.drain"]).await?;

    // A controller that sees only the current one.
    let late = Program::start(bare.directory(), &identity, "late", &[]).await?;
    late.is_not_ready(&[too_old, "the controller has not opened its watches"]).await?;
    ensure!(writes(&bare, &identity)?.is_empty(), "{:?}", writes(&bare, &identity)?);
    late.stop().await?;

    bare.define(&shipped_definition()).await?;
    program.is_ready().await?;
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let has_status = |object: &ScheduledMachine| object.status.is_some();
    wait::until_present(&objects, "desk", "to have a status", WITHIN, has_status).await?;
    announced(&bare, "Ready", "Ready again").await?;
    program.stop().await?;
    bare.stop().await
}

async fn a_definition_that_is_newer_or_of_another_version_is_named(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("newer").await?;
    let identity = bare.account("controller", &Value::Array(shipped_rules()?)).await?;
    bare.install_cluster_api().await?;
    bare.define(&with_more_fields()).await?;
    let program = Program::start(bare.directory(), &identity, "newer", &[]).await?;
    let remark = "is newer than this program, which ignores spec.colour, status.mood";
    program.answers("/ready", 200, &["ok\n", "remark: ", remark]).await?;
    program.logged_with("the CRD scheduledmachines.5spot.finos.org is newer", &[]).await?;
    program.stop().await?;

    // An older CRD that only lacks fields of the spec does not block the controller.
    bare.define(&without_spec_field("killSwitch")).await?;
    let program = Program::start(bare.directory(), &identity, "older", &[]).await?;
    program
        .answers("/ready", 200, &["ok\n", "is older than this program: it does not contain spec.killSwitch"])
        .await?;
    program.stop().await?;

    bare.undefine().await?;
    bare.define(&of_another_version()).await?;
    let program = Program::start(bare.directory(), &identity, "other", &[]).await?;
    let other = "the CRD scheduledmachines.5spot.finos.org serves v1alpha2 and not v1alpha1";
    program.is_not_ready(&[other]).await?;
    program.logged_with(other, &["deploy/crds"]).await?;
    let late = Program::start(bare.directory(), &identity, "late", &[]).await?;
    late.is_not_ready(&[other]).await?;
    late.stop().await?;
    bare.undefine().await?;
    bare.define(&shipped_definition()).await?;
    program.is_ready().await?;
    program.stop().await?;
    bare.stop().await
}

/// Waits for an event on the pod.
async fn announced(bare: &Bare, reason: &str, note: &str) -> anyhow::Result<()> {
    let events: Api<Event> = Api::namespaced(bare.admin(), SYSTEM_NAMESPACE);
    let is_it = |event: &Event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
        event.reason.as_deref() == Some(reason)
            && regarding == Some("Pod")
            && event.note.as_deref().is_some_and(|text| text.contains(note))
    };
    let found = async {
        while !events.list(&ListParams::default()).await?.items.iter().any(is_it) {
            // Its name is not known before it exists.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(WITHIN, found).await.with_context(|| format!("no event {reason} with {note:?}"))?
}

/// The writes to 5-Spot objects.
fn writes(bare: &Bare, by: &ServiceAccountIdentity) -> anyhow::Result<Vec<String>> {
    let records = bare.asked(by)?;
    let of_ours = records.iter().filter(|record| {
        record.object.resource == "scheduledmachines"
            && !matches!(record.verb.as_str(), "get" | "list" | "watch")
    });
    Ok(of_ours.map(ToString::to_string).collect())
}

fn fields<'a>(definition: &'a mut Value, part: &str) -> &'a mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]["properties"]
}

fn without_status_field(field: &str) -> Value {
    let mut definition = shipped_definition();
    fields(&mut definition, "status").as_object_mut().map(|fields| fields.remove(field));
    definition
}

fn without_spec_field(field: &str) -> Value {
    let mut definition = shipped_definition();
    fields(&mut definition, "spec").as_object_mut().map(|fields| fields.remove(field));
    definition
}

fn with_more_fields() -> Value {
    let mut definition = shipped_definition();
    fields(&mut definition, "spec")["colour"] = json!({"type": "string"});
    fields(&mut definition, "status")["mood"] = json!({"type": "string"});
    definition
}

fn of_another_version() -> Value {
    let mut definition = shipped_definition();
    definition["spec"]["versions"][0]["name"] = "v1alpha2".into();
    definition
}
