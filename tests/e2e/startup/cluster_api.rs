//! Cluster API is missing at first and installed later.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::ScheduledMachine;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use kube::Api;
use serde_json::Value;

use super::bare::{Bare, machine, shipped_definition, shipped_rules};
use super::program::Program;

pub(crate) fn tests() -> Vec<Test> {
    tests![cluster_api_is_missed_and_found_when_it_comes]
}

async fn cluster_api_is_missed_and_found_when_it_comes(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("no-capi").await?;
    let identity = bare.account("controller", &Value::Array(shipped_rules()?)).await?;
    bare.define(&shipped_definition()).await?;
    bare.apply(&machine("desk")).await?;

    let program = Program::start(bare.directory(), &identity, "early", &[]).await?;
    let missing = "are not synced: Cluster API is not installed: nothing is served in cluster.x-k8s.io";
    program.is_not_ready(&[&format!("machines {missing}"), &format!("clusters {missing}")]).await?;
    program.logged_with("Cluster API was not found", &["nothing is served in cluster.x-k8s.io"]).await?;
    program.logged_with("Not ready", &[missing]).await?;
    // The object reports it too, and so does an event.
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let says_why = |object: &ScheduledMachine| {
        let text = serde_json::to_string(&object.status).unwrap_or_default();
        text.contains("Cluster API is not installed")
    };
    wait::until_present(&objects, "desk", "to say why", Duration::from_mins(1), says_why).await?;
    program.stop().await?;

    let program = Program::start(bare.directory(), &identity, "patient", &[]).await?;
    program.is_not_ready(&[missing]).await?;
    program.logged_with("Not ready", &[missing]).await?;
    bare.install_cluster_api().await?;
    program.is_ready().await?;
    program.logged("Ready again").await?;
    let object = objects.get("desk").await?;
    ensure!(object.status.is_some(), "it was looked at");
    program.stop().await?;
    bare.stop().await
}
