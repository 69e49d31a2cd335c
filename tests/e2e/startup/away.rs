//! An API server that is unreachable, hangs, and returns.

use std::sync::Arc;

use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::Value;

use super::bare::{Bare, shipped_definition, shipped_rules};
use super::program::Program;

pub(crate) fn tests() -> Vec<Test> {
    tests![an_api_server_that_is_away_is_waited_for]
}

const API_SERVER: Component = Component::ApiServer(Side::Management);

async fn an_api_server_that_is_away_is_waited_for(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("away").await?;
    let identity = bare.account("controller", &Value::Array(shipped_rules()?)).await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    let control_plane = bare.control_plane();

    control_plane.kill(API_SERVER).await;
    let program = Program::start(bare.directory(), &identity, "early", &[]).await?;
    let refused = "scheduledmachines are not synced: ";
    // The first attempt to connect takes a moment; until it has failed, the lists are only incomplete.
    let reasons = [refused, "machines are not synced: ", "namespaces are not synced: ", "onnect"];
    program.is_not_ready(&reasons).await?;
    program.logged_with("Watch failed; retrying", &["scheduledmachines"]).await?;
    program.logged_with("Not ready", &[refused]).await?;
    program.stop().await?;

    let program = Program::start(bare.directory(), &identity, "patient", &[]).await?;
    program.is_not_ready(&[refused]).await?;
    control_plane.restart(API_SERVER).await?;
    program.is_ready().await?;

    // The API server stops and starts again.
    control_plane.kill(API_SERVER).await;
    program.is_not_ready(&["the watch of scheduledmachines is not connected"]).await?;
    control_plane.restart(API_SERVER).await?;
    program.is_ready().await?;

    // An API server that accepts connections and never responds, at the start and at the end.
    control_plane.freeze(API_SERVER).await;
    let late = Program::start(bare.directory(), &identity, "late", &[]).await?;
    late.is_not_ready(&["has not"]).await?;
    late.stop().await?;
    program.stop().await?;
    control_plane.thaw(API_SERVER).await;
    bare.stop().await
}
