//! Several objects for one physical machine: only one is lent it at a time.

use super::nodes::reclaim;
use crate::claims::{claim_on, until_claim};
use crate::environment::{Environment, Impairment};
use crate::fixtures::{override_until, window};
use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, MACHINE, ObjectKind, SCHEDULED_MACHINE};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject, condition, is_ready};
use anyhow::ensure;
use five_spot_api::names::{self, SYSTEM_NAMESPACE};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut scenarios = scenarios![
        day_and_night_share_a_machine => 12,
        holder_is_deleted => 12,
        holder_is_reclaimed => 12,
        holder_is_killed => 12,
        claim_is_left_behind => 40,
        claim_is_edited_by_hand => 40,
        machine_changes_while_lent => 20,
        // A real cluster can have only one Node of a name: the second machine of one address never joins.
        double_loan_is_found: VirtualTime => 12,
        higher_priority_goes_first => 20,
    ];
    let races = scenarios![two_open_at_once => 5];
    scenarios.extend(races.into_iter().map(Scenario::race));
    scenarios
}

/// The spec of an object with this address.
fn at(address: &str, mut spec: Value) -> Value {
    spec["infrastructureSpec"] = json!({"spec": {"address": address}});
    spec
}

fn waits_for(object: &Value, holder: &str) -> bool {
    let message = object["status"]["message"].as_str().unwrap_or_default();
    object["status"]["phase"] == "Pending"
        && condition(object, "Ready")["reason"] == "MachineInUse"
        && message.contains(&format!("/{holder} "))
}

/// A machine that `desk` holds and `night` waits for.
async fn shared(env: &dyn Environment) -> anyhow::Result<(Subject<'_>, Subject<'_>, String)> {
    let address = env.address();
    let desk = Subject::lent(env, at(&address, json!({}))).await?;
    let night = Subject::make_another(env, "night", at(&address, json!({}))).await?;
    night.until("to wait for the machine", |object| waits_for(object, "desk")).await?;
    Ok((desk, night, address))
}

/// Of two objects that open at the same moment one gets the machine, and the other waits and names it.
async fn two_open_at_once(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (address, opens) = (env.address(), env.next_minute(env.leisurely(20)));
    let spec = at(&address, json!({"schedule": window(opens, opens + SignedDuration::from_hours(20))}));
    let desk = Subject::make(env, spec.clone()).await?;
    let night = Subject::make_another(env, "night", spec).await?;
    desk.until_phase("Inactive").await?;
    night.until_phase("Inactive").await?;
    env.step_at(opens);
    let has_machine = |object: &Value| is_ready(object) || waits_for(object, "night");
    let first = desk.until("to have the machine or wait for it", has_machine).await?;
    let (winner, other) = if is_ready(&first) { (&desk, &night) } else { (&night, &desk) };
    winner.until_ready().await?;
    other.until("to wait for the machine", |object| waits_for(object, winner.name())).await?;
    ensure!(env.get(MACHINE, &other.machine()).await?.is_null(), "both have a Machine");
    Ok(Ending::phase(winner.name(), "Active").machines(1, 0))
}

/// Two clusters share a machine by day and by night. The one that opens waits until the other has returned it.
async fn day_and_night_share_a_machine(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.make_cluster(CLUSTER_NAME).await?;
    let (address, change) = (env.address(), env.next_minute(env.leisurely(30)));
    let hours = SignedDuration::from_hours;
    let day = at(&address, json!({"schedule": window(change - hours(1), change)}));
    let desk = Subject::make_without_cluster(env, day).await?;
    let night = at(&address, json!({"schedule": window(change, change + hours(20))}));
    let night = Subject::make_another(env, "night", night).await?;
    desk.until_ready().await?;
    env.step_at(change);
    night.until_ready().await?;
    desk.until_phase("Inactive").await?;
    let holder = claim_on(env, &address).await?["spec"]["holderIdentity"].clone();
    ensure!(holder == format!("{}/night", env.namespace()), "{holder} has the machine");
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// An object that is deleted returns its machine, and the next one gets it at once.
async fn holder_is_deleted(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, _) = shared(env).await?;
    env.delete(SCHEDULED_MACHINE, desk.name()).await?;
    desk.until_gone().await?;
    night.until_ready().await?;
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// A machine that its owner reclaims is free for a waiting object when it has left the first cluster.
async fn holder_is_reclaimed(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, _) = shared(env).await?;
    reclaim(env, &desk.node().await?).await?;
    desk.until_phase("Disabled").await?;
    night.until_ready().await?;
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// The same with a kill switch.
async fn holder_is_killed(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, _) = shared(env).await?;
    desk.set(json!({"killSwitch": true})).await?;
    desk.until_phase("Terminated").await?;
    night.until_ready().await?;
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// Among the waiting objects of one namespace the higher priority goes first, regardless of age.
async fn higher_priority_goes_first(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, address) = shared(env).await?;
    let urgent = Subject::make_another(env, "urgent", at(&address, json!({"priority": 90}))).await?;
    urgent.until("to wait for the machine", |object| waits_for(object, "desk")).await?;
    desk.set(json!({"schedule": {"enabled": false}})).await?;
    urgent.until_ready().await?;
    night.until("to wait for the other", |object| waits_for(object, "urgent")).await?;
    Ok(Ending::phase(urgent.name(), "Active").machines(1, 0))
}

/// The claim of an object that vanished without cleanup, and whose Machine is gone too, is taken over.
async fn claim_is_left_behind(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, address) = shared(env).await?;
    env.stop_controller().await?;
    let finalizers = json!({"metadata": {"finalizers": null}});
    env.delete(SCHEDULED_MACHINE, desk.name()).await?;
    env.patch(SCHEDULED_MACHINE, desk.name(), finalizers).await?;
    let parts: [(ObjectKind, String); 3] = [
        (MACHINE, desk.machine()),
        (INFRASTRUCTURE, desk.infrastructure()),
        (BOOTSTRAP, names::bootstrap(desk.name())),
    ];
    for (kind, name) in &parts {
        if !env.get(*kind, name).await?.is_null() {
            // The garbage collector may be faster.
            let _ = env.delete(*kind, name).await;
        }
    }
    for (kind, name) in &parts {
        env.until_gone(*kind, name).await?;
    }
    ensure!(!claim_on(env, &address).await?.is_null(), "nobody was there to release the claim");
    env.start_controller().await?;
    night.until_ready().await?;
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// If someone changes the Lease of a lent machine, its object restores it, and no other object gets it meanwhile.
async fn claim_is_edited_by_hand(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, address) = shared(env).await?;
    let machine = desk.machine_uid().await?;
    let leases: Api<Lease> = Api::namespaced(env.management(), SYSTEM_NAMESPACE);
    let name = |lease: &Value| lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let lease = name(&claim_on(env, &address).await?);
    let is_ours = |lease: &Value| lease["spec"]["holderIdentity"] == format!("{}/desk", env.namespace());
    env.step_at(env.now());
    leases.delete(&lease, &DeleteParams::default()).await?;
    until_claim(env, &address, is_ours).await?;
    let patch = Patch::Merge(json!({"spec": {"holderIdentity": "nobody at all"}}));
    env.step_at(env.now());
    leases.patch(&lease, &PatchParams::default(), &patch).await?;
    until_claim(env, &address, is_ours).await?;
    ensure!(desk.machine_uid().await? == machine, "the machine stays");
    ensure!(env.get(MACHINE, &night.machine()).await?.is_null(), "both have a Machine");
    desk.until_ready().await?;
    Ok(Ending::phase(desk.name(), "Active").machines(1, 0))
}

/// Another address is another machine: the old one is returned when nothing is left on it, and a waiting object gets
/// it.
async fn machine_changes_while_lent(env: &dyn Environment) -> anyhow::Result<Ending> {
    let (desk, night, address) = shared(env).await?;
    let (machine, other) = (desk.machine_uid().await?, env.address());
    desk.set(at(&other, json!({}))).await?;
    desk.until_other_machine(&machine).await?;
    night.until_ready().await?;
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    ensure!(holder(&claim_on(env, &address).await?).ends_with("/night"), "the old machine is night's");
    ensure!(holder(&claim_on(env, &other).await?).ends_with("/desk"), "the new one is desk's");
    desk.set(override_until("down", env.in_seconds(36_000))).await?;
    desk.until_phase("Inactive").await?;
    until_claim(env, &other, Value::is_null).await?;
    Ok(Ending::phase(night.name(), "Active").machines(1, 0))
}

/// Two objects that were lent one machine before claims existed both keep it and both report it, until one is closed.
async fn double_loan_is_found(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.set_impaired(Impairment::Leases, true).await?;
    let address = env.address();
    let desk = Subject::make(env, at(&address, json!({}))).await?;
    let night = Subject::make_another(env, "night", at(&address, json!({}))).await?;
    desk.until_ready().await?;
    night.until_ready().await?;
    ensure!(claim_on(env, &address).await?.is_null(), "there is no claim without Leases");
    env.set_impaired(Impairment::Leases, false).await?;
    env.stop_controller().await?;
    env.start_controller().await?;
    for subject in [&desk, &night] {
        subject.until_condition("ReferencesValid", "False", "MachineInUse").await?;
        subject.until_ready().await?;
    }
    until_claim(env, &address, |lease| !lease.is_null()).await?;
    desk.set(override_until("down", env.in_seconds(36_000))).await?;
    desk.until_phase("Inactive").await?;
    night.until_condition("ReferencesValid", "True", "Resolved").await?;
    night.set(override_until("down", env.in_seconds(36_000))).await?;
    night.until_phase("Inactive").await?;
    Ok(Ending::phase(night.name(), "Inactive").machines(1, 1).doubled())
}
