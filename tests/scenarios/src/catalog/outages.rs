//! An API server is unreachable during a drain, and returns after two minutes.

use super::closing::Held;
use crate::environment::{Environment, ServerState};
use crate::kinds::ClusterRole;
use crate::scenario::{Ending, Scenario, scenarios};
use anyhow::ensure;
use serde_json::Value;
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        management_is_silent_in_mid_drain: ExclusiveEnvironment => 13,
        workload_is_down_in_mid_drain: ExclusiveEnvironment => 18,
    ]
}

/// Longer than an answer is waited for, and than the first retries.
const OUTAGE: Duration = Duration::from_mins(2);

async fn management_is_silent_in_mid_drain(env: &dyn Environment) -> anyhow::Result<Ending> {
    outage(env, ClusterRole::Management, ServerState::Silent).await
}

async fn workload_is_down_in_mid_drain(env: &dyn Environment) -> anyhow::Result<Ending> {
    outage(env, ClusterRole::Workload, ServerState::Down).await
}

/// The drain continues with its original deadline and without manual action.
async fn outage(env: &dyn Environment, side: ClusterRole, state: ServerState) -> anyhow::Result<Ending> {
    let held = Held::in_mid_drain(env).await?;
    let machine = held.subject.machine_uid().await?;
    env.set_api_server(side, state).await?;
    tokio::time::sleep(OUTAGE).await;
    env.set_api_server(side, ServerState::Up).await?;
    let since = |object: &Value| object["status"]["shutdownStartedAt"].clone();
    let drains =
        |object: &Value| object["status"]["phase"] == "ShuttingDown" && since(object) == since(&held.object);
    let name = held.subject.name();
    env.lasts(crate::kinds::SCHEDULED_MACHINE, name, "draining", Duration::from_secs(10), drains).await?;
    ensure!(held.subject.machine_uid().await? == machine, "it is another Machine");
    held.release(env).await
}
