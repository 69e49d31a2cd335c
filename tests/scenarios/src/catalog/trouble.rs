//! A dependency of a machine is missing or fails, and recovers.

use super::closing::{hold, is_held_by_web, never_deletes_pods};
use crate::environment::Environment;
use crate::kinds::{BUDGET, CLUSTER, DEFINITION, INFRASTRUCTURE, MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject, condition};
use anyhow::ensure;
use five_spot_standins::{ProviderBehaviour, StepBehaviour};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        cluster_appears_later => 5,
        cluster_deleted_while_lent => 3,
        changed_to_what_is_not_there => 2,
        provider_kind_appears_later => 6,
        foreign_machine_has_our_name => 35,
        foreign_infrastructure_has_our_name => 35,
        provider_hangs_and_goes_on => 5,
        provider_fails_and_recovers => 305,
        provider_is_slow_to_give_back => 6,
    ]
}

/// Without its Cluster nothing is created; with it everything is.
async fn cluster_appears_later(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::make_without_cluster(env, json!({})).await?;
    subject.until_condition("ReferencesValid", "False", "NotFound").await?;
    let object = subject.until_phase("Error").await?;
    let message = object["status"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("spec.clusterName"), "{object}");
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "nothing is made");
    env.make_cluster(CLUSTER_NAME).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Cluster API releases a Cluster when the last of its Machines is gone: ours is removed gracefully, and none is
/// created before there is a Cluster again.
async fn cluster_deleted_while_lent(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.delete(CLUSTER, CLUSTER_NAME).await?;
    let object = subject.until("to name what holds it", is_held_by_web(env)).await?;
    let valid = condition(&object, "ReferencesValid");
    ensure!(valid["status"] == "False" && valid["reason"] == "NotFound", "{object}");
    ensure!(!env.get(CLUSTER, CLUSTER_NAME).await?.is_null(), "it waits for its Machine");
    env.delete(BUDGET, "web").await?;
    env.until_gone(CLUSTER, CLUSTER_NAME).await?;
    subject.until_phase("Error").await?;
    subject.until_nothing_left().await?;
    never_deletes_pods(env)?;
    env.make_cluster(CLUSTER_NAME).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// A lent machine is not replaced by one of a kind, or in a Cluster, that does not exist.
async fn changed_to_what_is_not_there(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    let spec = subject.get().await?["spec"].clone();
    for (missing, names_it) in [
        (json!({"clusterName": "nowhere"}), "nowhere"),
        (
            json!({"clusterName": spec["clusterName"], "infrastructureSpec": {"kind": "NoSuchMachine"}}),
            "NoSuchMachine",
        ),
    ] {
        subject.set(missing).await?;
        let is_named = |object: &Value| {
            object["status"]["phase"] == "Error"
                && object["status"]["message"].as_str().is_some_and(|why| why.contains(names_it))
        };
        let object = subject.until("to name what is missing", is_named).await?;
        let valid = condition(&object, "ReferencesValid");
        ensure!(valid["status"] == "False" && valid["reason"] == "NotFound", "{object}");
        ensure!(condition(&object, "MachineReady")["status"] == "True", "{object}");
    }
    subject.set(json!({"infrastructureSpec": {"kind": spec["infrastructureSpec"]["kind"]}})).await?;
    subject.until_ready().await?;
    ensure!(subject.machine_uid().await? == machine, "the machine stays");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A provider that is installed after the objects that need it.
async fn provider_kind_appears_later(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (group, version) = (INFRASTRUCTURE.group, env.cluster_api());
    let infrastructure = json!({"kind": "LabMachine", "spec": {"address": null, "port": null, "bench": "7"}});
    let subject = Subject::make(env, json!({"infrastructureSpec": infrastructure})).await?;
    let names_it =
        |object: &Value| object["status"]["message"].as_str().is_some_and(|why| why.contains("LabMachine"));
    let object = subject.until("to name the kind that is missing", names_it).await?;
    let valid = condition(&object, "ReferencesValid");
    ensure!(valid["status"] == "False" && valid["reason"] == "NotFound", "{object}");
    env.grant(group, "labmachines").await?;
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {
            "name": format!("labmachines.{group}"), "labels": {format!("cluster.x-k8s.io/{version}"): version},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "kind": "LabMachine", "listKind": "LabMachineList", "plural": "labmachines",
                "singular": "labmachine",
            },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": open, "status": open},
                }},
            }],
        },
    });
    env.create(DEFINITION, definition).await?;
    subject.until_phase("Active").await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A foreign Machine is never changed; when it is gone, ours is created.
async fn foreign_machine_has_our_name(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.make_cluster(CLUSTER_NAME).await?;
    let foreign = json!({
        "metadata": {"name": "desk-machine", "labels": {"example.org/owner": "somebody"}},
        "spec": {
            "clusterName": CLUSTER_NAME, "bootstrap": {"dataSecretName": "theirs"},
            "infrastructureRef": {
                "apiGroup": INFRASTRUCTURE.group, "kind": INFRASTRUCTURE.kind, "name": "theirs",
            },
        },
    });
    let foreign = env.create(MACHINE, foreign).await?;
    let subject = Subject::make_without_cluster(env, json!({})).await?;
    subject.until_condition("Ready", "False", "NameTaken").await?;
    subject.until_phase("Error").await?;
    let theirs = env.get(MACHINE, &subject.machine()).await?;
    ensure!(theirs["metadata"]["uid"] == foreign["metadata"]["uid"], "{theirs}");
    ensure!(theirs["metadata"]["labels"] == foreign["metadata"]["labels"], "{theirs}");
    ensure!(!env.writes()?.iter().any(|write| write.resource == "machines"), "it is never written");
    env.delete(MACHINE, &subject.machine()).await?;
    subject.until_ready().await?;
    // The first of them was theirs.
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// A foreign infrastructure object is never changed, although only the API server knows of it: no cache holds objects without
/// our label. When it is gone, ours is created.
async fn foreign_infrastructure_has_our_name(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.make_cluster(CLUSTER_NAME).await?;
    let foreign = json!({
        "metadata": {"name": "desk-infra", "labels": {"example.org/owner": "somebody"}},
        "spec": {"address": "192.0.2.99", "port": 22},
    });
    let foreign = env.create(INFRASTRUCTURE, foreign).await?;
    let subject = Subject::make_without_cluster(env, json!({})).await?;
    subject.until_condition("Ready", "False", "NameTaken").await?;
    subject.until_phase("Error").await?;
    let theirs = env.get(INFRASTRUCTURE, "desk-infra").await?;
    for part in ["/metadata/uid", "/metadata/labels", "/metadata/ownerReferences", "/spec"] {
        ensure!(theirs.pointer(part) == foreign.pointer(part), "{part} of {theirs}");
    }
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "no Machine is made for it");
    env.delete(INFRASTRUCTURE, "desk-infra").await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A slow provider is not an error.
async fn provider_hangs_and_goes_on(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.provider(ProviderBehaviour { provision: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
    let subject = Subject::make(env, json!({})).await?;
    subject.until_condition("MachineReady", "False", "NoNodeYet").await?;
    subject.until_phase("Active").await?;
    env.provider(ProviderBehaviour::default());
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A machine that does not join in time is removed, and retried after five minutes.
async fn provider_fails_and_recovers(env: &dyn Environment) -> anyhow::Result<Ending> {
    let fails = StepBehaviour::Fails("no route to host".to_owned());
    env.provider(ProviderBehaviour { provision: fails, ..ProviderBehaviour::default() });
    let subject = Subject::make(env, json!({"joinTimeout": "10s"})).await?;
    let failed = subject.until_condition("Ready", "False", "JoinFailed").await?;
    ensure!(failed["status"]["phase"] == "Error", "{failed}");
    let given_up = env.now();
    subject.until_nothing_left().await?;
    env.provider(ProviderBehaviour::default());
    if !env.pace().is_virtual {
        // Five minutes are too long to wait for here; ending the backoff is visible at once.
        subject.set(json!({"schedule": {"enabled": false}})).await?;
        subject.until_phase("Disabled").await?;
        return Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1));
    }
    let again = |object: &Value| crate::subject::is_ready(object);
    subject.until("to be lent after all", again).await?;
    let waited = env.now().duration_since(given_up);
    ensure!(waited >= SignedDuration::from_mins(4), "it was retried after {waited}");
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// A machine that is wanted again while the provider still releases it is created after that, not at the same
/// time.
async fn provider_is_slow_to_give_back(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let machine = subject.machine_uid().await?;
    env.provider(ProviderBehaviour { release: StepBehaviour::Hangs, ..ProviderBehaviour::default() });
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    let going = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    env.until(INFRASTRUCTURE, &subject.infrastructure(), "to be deleted", going).await?;
    subject.until_phase("ShuttingDown").await?;
    subject.set(json!({"schedule": {"enabled": true}})).await?;
    let waiting = subject.until_condition("Ready", "False", "WaitingForOldMachine").await?;
    ensure!(waiting["status"]["phase"] == "Pending", "{waiting}");
    env.lasts(INFRASTRUCTURE, &subject.infrastructure(), "going", Duration::from_secs(5), going).await?;
    env.provider(ProviderBehaviour::default());
    subject.until_other_machine(&machine).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}
