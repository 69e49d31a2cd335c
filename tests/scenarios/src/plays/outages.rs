//! An API server goes away in the middle of a drain, and comes back after two minutes.

use super::closing::Held;
use crate::kinds::Side;
use crate::scenario::{Ending, Scenario, scenarios};
use crate::world::{ApiServer, World};
use anyhow::ensure;
use serde_json::Value;
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        management_is_silent_in_mid_drain: WorldOfItsOwn => 13,
        workload_is_down_in_mid_drain: WorldOfItsOwn => 18,
    ]
}

/// Longer than an answer is waited for, and than the first retries.
const OUTAGE: Duration = Duration::from_mins(2);

async fn management_is_silent_in_mid_drain(world: &dyn World) -> anyhow::Result<Ending> {
    outage(world, Side::Management, ApiServer::Silent).await
}

async fn workload_is_down_in_mid_drain(world: &dyn World) -> anyhow::Result<Ending> {
    outage(world, Side::Workload, ApiServer::Down).await
}

/// It goes on where it was, by the clock that was started before, and nobody had to look at it.
async fn outage(world: &dyn World, side: Side, state: ApiServer) -> anyhow::Result<Ending> {
    let held = Held::in_mid_drain(world).await?;
    let machine = held.subject.machine_uid().await?;
    world.set_api_server(side, state).await?;
    tokio::time::sleep(OUTAGE).await;
    world.set_api_server(side, ApiServer::Up).await?;
    let since = |object: &Value| object["status"]["shutdownStartedAt"].clone();
    let drains =
        |object: &Value| object["status"]["phase"] == "ShuttingDown" && since(object) == since(&held.object);
    let name = held.subject.name();
    world.lasts(crate::kinds::SCHEDULED_MACHINE, name, "draining", Duration::from_secs(10), drains).await?;
    ensure!(held.subject.machine_uid().await? == machine, "it is another Machine");
    held.release(world).await
}
