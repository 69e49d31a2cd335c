//! A machine becomes wanted.

use super::closing::never_deletes_pods;
use crate::environment::Environment;
use crate::fixtures::{closed, override_until, window};
use crate::kinds::{LAB_BENCH, LAB_SUPPLY, MACHINE, POD};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{CLUSTER_NAME, Subject, is_ready};
use anyhow::ensure;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        window_opens => 5,
        lead_time => 2,
        override_up => 2,
        override_down => 5,
        exceptions_close_and_open => 2,
        provider_of_another_make => 3,
    ]
}

/// Nothing before the minute at which the window opens, a machine with a Ready node soon after.
async fn window_opens(env: &dyn Environment) -> anyhow::Result<Ending> {
    // The Cluster may take a while; the window must not be open by then.
    env.make_cluster(CLUSTER_NAME).await?;
    let from = env.next_minute(8);
    let to = from + SignedDuration::from_hours(1);
    let subject = Subject::make_without_cluster(env, json!({"schedule": window(from, to)})).await?;
    let waiting = subject.until_phase("Inactive").await?;
    ensure!(waiting["status"]["nextActivation"] == from.to_string(), "{waiting}");
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "nothing is made before the window");
    env.step_at(from);
    subject.until_ready().await?;
    ensure!(made_at(env, &subject).await? >= from, "it was made before {from}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A machine is created before its window.
async fn lead_time(env: &dyn Environment) -> anyhow::Result<Ending> {
    env.make_cluster(CLUSTER_NAME).await?;
    let lead = env.leisurely(25);
    let from = env.next_minute(lead + 5);
    let mut schedule = window(from, from + SignedDuration::from_hours(1));
    schedule["leadTime"] = format!("{lead}s").into();
    let subject = Subject::make_without_cluster(env, json!({"schedule": schedule})).await?;
    let begin = from - SignedDuration::from_secs(lead);
    env.step_at(from);
    subject.until_condition("Scheduled", "True", "LeadTime").await?;
    subject.until_ready().await?;
    let made = made_at(env, &subject).await?;
    ensure!(made >= begin && made < from, "it was made at {made}");
    let open = subject.until_condition("Scheduled", "True", "InWindow").await?;
    ensure!(open["status"]["inSchedule"] == true, "{open}");
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// An override lends a machine outside the schedule, to the second.
async fn override_up(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::make(env, json!({"schedule": closed(env.now())})).await?;
    subject.until_phase("Inactive").await?;
    let until = env.in_seconds(env.leisurely(30));
    subject.set(override_until("up", until)).await?;
    env.step_at(until);
    subject.until_condition("Scheduled", "True", "Override").await?;
    subject.until_ready().await?;
    subject.until_phase("Inactive").await?;
    ensure!(env.now() >= until, "it was taken back too early");
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// An override removes a machine inside the schedule; the machine is lent again when the override is over.
async fn override_down(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    let until = env.in_seconds(env.leisurely(15));
    subject.set(override_until("down", until)).await?;
    env.step_at(until);
    subject.until_condition("Scheduled", "False", "OverrideDown").await?;
    subject.until_phase("Inactive").await?;
    let back = |object: &Value| is_ready(object);
    subject.until("to be lent again", back).await?;
    ensure!(env.now() >= until, "it was lent too early");
    Ok(Ending::phase(subject.name(), "Active").machines(2, 1))
}

/// One exception removes days from the schedule, and another restores them.
async fn exceptions_close_and_open(env: &dyn Environment) -> anyhow::Result<Ending> {
    // Around today, so that midnight may come.
    let day = |days: i64| {
        let day = env.now() + SignedDuration::from_hours(24 * days);
        day.to_zoned(TimeZone::UTC).date().to_string()
    };
    let around = |state: &str| json!({"from": day(-1), "to": day(2), "state": state, "reason": "holidays"});
    let subject = Subject::make(env, json!({"schedule": {"exceptions": [around("closed")]}})).await?;
    let waiting = subject.until_phase("Inactive").await?;
    ensure!(waiting["status"]["inSchedule"] == false, "{waiting}");
    subject.set(json!({"schedule": {"exceptions": [around("closed"), around("open")]}})).await?;
    let ready = subject.until_ready().await?;
    ensure!(ready["status"]["inSchedule"] == true, "{ready}");
    subject.set(json!({"schedule": {"exceptions": [around("closed")]}})).await?;
    subject.until_phase("Inactive").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A provider needs to support only Cluster API's contract, in either version.
async fn provider_of_another_make(env: &dyn Environment) -> anyhow::Result<Ending> {
    for kind in [LAB_SUPPLY, LAB_BENCH] {
        env.grant(kind.group, kind.plural).await?;
    }
    let bootstrap = json!({
        "apiVersion": LAB_SUPPLY.api_version(), "kind": LAB_SUPPLY.kind,
        "spec": {"version": null, "steps": ["join"]},
    });
    let infrastructure = json!({
        "apiVersion": LAB_BENCH.api_version(), "kind": LAB_BENCH.kind,
        "spec": {"address": null, "port": null, "bench": "7"},
    });
    let spec = json!({"bootstrapSpec": bootstrap, "infrastructureSpec": infrastructure});
    let subject = Subject::lent(env, spec).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    subject.set(json!({"schedule": {"enabled": false}})).await?;
    subject.until_phase("Disabled").await?;
    env.until_gone(POD, "solo").await?;
    env.until_gone(LAB_BENCH, &subject.infrastructure()).await?;
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
}

/// The time at which its Machine was made.
async fn made_at(env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<Timestamp> {
    let machine = env.get(MACHINE, &subject.machine()).await?;
    Ok(machine["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse()?)
}
