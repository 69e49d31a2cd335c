//! A machine that is given back while its workload cluster is silent, to the controller and to Cluster API alike.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_scenarios::kinds::{MACHINE, NODE, Side};
use five_spot_scenarios::{Environment, ServerState, Subject};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::world::Scene;
use serde_json::{Value, json};

use super::environment::{RealControlPlane, View};
use super::{LONG, another_control_plane};

/// The outage, if `FIVE_SPOT_OUTAGE_SECS` names no other: longer than the ten seconds after which Cluster API by default gives
/// up a Node that it cannot delete.
const OUTAGE: Duration = Duration::from_secs(25);

/// Twice the promise of the kill switch: other tests use the same processors.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn tests() -> Vec<Test> {
    let name = concat!(module_path!(), "::world_of_its_own::no_node_is_left_behind_after_an_outage");
    vec![Test::new(name, |_| no_node_is_left_behind_after_an_outage()).within(LONG + outage())]
}

fn outage() -> Duration {
    let chosen = std::env::var("FIVE_SPOT_OUTAGE_SECS").ok().and_then(|seconds| seconds.parse().ok());
    chosen.map_or(OUTAGE, Duration::from_secs)
}

async fn no_node_is_left_behind_after_an_outage() -> TestResult {
    let world = another_control_plane("outage").await?;
    let scene = Arc::new(world.scene("outage").await?);
    let real = RealControlPlane::start(Arc::clone(&scene), View::Whole).await?;
    let result = kill_switch_during_an_outage(&real, &scene).await;
    let result = result.with_context(|| real.told()).with_context(|| scene.timeline());
    world.stop().await?;
    result
}

async fn kill_switch_during_an_outage(real: &RealControlPlane, scene: &Scene) -> TestResult {
    let env: &dyn Environment = real;
    let subject = Subject::lent(env, json!({})).await?;
    let (node, machine) = (subject.node().await?, subject.machine());
    real.set_api_server(Side::Workload, ServerState::Silent).await?;
    subject.set(json!({"killSwitch": true})).await?;
    let is_deleted =
        |machine: &Value| machine.is_null() || !machine["metadata"]["deletionTimestamp"].is_null();
    let deleted =
        tokio::time::timeout(DELETED_WITHIN, env.until(MACHINE, &machine, "deleted", is_deleted)).await;
    deleted.context("the Machine was not deleted in time")??;
    tokio::time::sleep(outage()).await;
    // Cluster API still wants to delete the Node: the Machine says so, and the object does not claim to be done.
    let (object, left) = (subject.get().await?, env.get(MACHINE, &machine).await?);
    scene.note(format!("at the end of the outage: {}\n{}", object["status"], left["status"]["conditions"]));
    ensure!(!left.is_null(), "the Machine went without its Node");
    ensure!(object["status"]["phase"] == "ShuttingDown", "{object}");
    real.set_api_server(Side::Workload, ServerState::Up).await?;
    subject.until_phase("Terminated").await?;
    env.until_gone(NODE, &node).await?;
    subject.until_nothing_left().await?;
    eprintln!("{}", scene.timeline());
    Ok(())
}
