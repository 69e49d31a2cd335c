//! Several controllers: replicas of which one leads, and instances that share the objects.

use super::closing::slowly;
use crate::environment::{Environment, LeaderFault};
use crate::fixtures::override_until;
use crate::kinds::MACHINE;
use crate::scenario::{Controllers, Ending, Scenario, scenarios};
use crate::subject::Subject;
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    let with = |scenarios: Vec<Scenario>, controllers| {
        scenarios.into_iter().map(move |scenario| scenario.with(controllers))
    };
    let leaders = scenarios![leader_killed => 20, leader_stopped => 20, leader_cut_off => 20];
    let two = with(scenarios![two_shards => 20], Controllers::Shards(2));
    let three = with(scenarios![three_shards => 20], Controllers::Shards(3));
    with(leaders, Controllers::Replicas(3)).chain(two).chain(three).collect()
}

/// A leader is killed while a machine is created, and the next one while it is removed.
async fn leader_killed(env: &dyn Environment) -> anyhow::Result<Ending> {
    disturbed(env, LeaderFault::Killed).await
}

/// The same with leaders that are stopped for longer than their Lease, and continue.
async fn leader_stopped(env: &dyn Environment) -> anyhow::Result<Ending> {
    disturbed(env, LeaderFault::Stopped).await
}

/// The same with leaders that cannot reach the API server for longer than their Lease.
async fn leader_cut_off(env: &dyn Environment) -> anyhow::Result<Ending> {
    disturbed(env, LeaderFault::CutOff).await
}

async fn disturbed(env: &dyn Environment, fault: LeaderFault) -> anyhow::Result<Ending> {
    let subject = Subject::make(env, slowly()).await?;
    env.until(MACHINE, &subject.machine(), "to exist", |machine| !machine.is_null()).await?;
    env.disturb_controller(fault).await?;
    subject.until_ready().await?;
    let node = subject.node().await?;
    env.pods_on(&node, 3, 5).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    subject.until_cordoned(&node, true).await?;
    env.disturb_controller(fault).await?;
    subject.until_phase("Inactive").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// The objects of one of two instances wait while it is gone, and the other does not change them.
async fn two_shards(env: &dyn Environment) -> anyhow::Result<Ending> {
    shared(env).await
}

/// The same with three instances.
async fn three_shards(env: &dyn Environment) -> anyhow::Result<Ending> {
    shared(env).await
}

async fn shared(env: &dyn Environment) -> anyhow::Result<Ending> {
    let mut subjects = vec![Subject::make(env, json!({})).await?];
    for name in ["desk-1", "desk-2", "desk-3", "desk-4", "desk-5", "desk-6", "desk-7"] {
        subjects.push(Subject::make_another(env, name, json!({})).await?);
    }
    env.disturb_controller(LeaderFault::Killed).await?;
    for subject in &subjects {
        subject.until_ready().await?;
    }
    let down: Value = override_until("down", env.in_seconds(36_000));
    for subject in &subjects {
        subject.set(down.clone()).await?;
    }
    env.disturb_controller(LeaderFault::Stopped).await?;
    for subject in &subjects {
        subject.until_phase("Inactive").await?;
    }
    Ok(Ending::phase(subjects[0].name(), "Inactive").machines(1, 1))
}
