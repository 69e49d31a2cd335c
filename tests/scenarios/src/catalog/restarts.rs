//! The controller is restarted.

use super::closing::Held;
use crate::environment::Environment;
use crate::fixtures::override_until;
use crate::kinds::MACHINE;
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::ensure;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        restarted_while_idle => 6,
        down_when_the_window_closes => 2,
        killed_in_mid_drain => 8,
    ]
}

/// A restart writes nothing.
async fn restarted_while_idle(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject =
        Subject::lent(env, json!({"machineTemplate": {"labels": {"example.org/row": "3"}}})).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    env.stop_controller().await?;
    let before = env.writes()?.len();
    env.start_controller().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = env.writes()?;
    let since = writes.get(before..).unwrap_or_default();
    ensure!(since.is_empty(), "it wrote after its restart:\n{}", crate::oracles::list_writes(since));
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Work that became due while no controller ran is done by the next one.
async fn down_when_the_window_closes(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({})).await?;
    env.stop_controller().await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    let stays = |object: &Value| !object.is_null() && object["metadata"]["deletionTimestamp"].is_null();
    env.lasts(MACHINE, &subject.machine(), "existing", Duration::from_secs(3), stays).await?;
    env.start_controller().await?;
    subject.until_phase("Inactive").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A drain continues with its original deadline.
async fn killed_in_mid_drain(env: &dyn Environment) -> anyhow::Result<Ending> {
    let held = Held::in_mid_drain(env).await?;
    env.crash_controller().await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    env.start_controller().await?;
    let since = |object: &Value| object["status"]["shutdownStartedAt"].clone();
    let after = held.subject.get().await?;
    ensure!(since(&after) == since(&held.object), "the clock was started again: {after}");
    held.release(env).await
}
