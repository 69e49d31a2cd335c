//! An API server that is restarted while replicas use it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::ScheduledMachine;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use kube::Api;
use serde_json::Value;

use super::is_leader;
use crate::permissions::deploy;
use crate::startup::{Bare, Program, machine, shipped_definition, shipped_rules};

pub(crate) fn tests() -> Vec<Test> {
    // A separate API server: a starting one refuses everything until it has loaded its roles.
    tests![one_replica_leads_when_the_api_server_is_back]
}

const WITHIN: Duration = Duration::from_mins(2);

async fn one_replica_leads_when_the_api_server_is_back(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("restart").await?;
    let identity = bare.account("5spot-controller", &Value::Array(shipped_rules()?)).await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    manifests::Applier::new(bare.admin())
        .apply_all(&manifests::read(&deploy("ha/rbac.yaml"))?, SYSTEM_NAMESPACE)
        .await?;
    let flags = ["--enable-leader-election"];
    let one = Program::start(bare.directory(), &identity, "one", &flags).await?;
    one.logged("Became the leader").await?;
    let other = Program::start(bare.directory(), &identity, "other", &flags).await?;
    other.logged("Standing by").await?;
    bare.apply(&machine("before")).await?;
    until_seen(&bare, "before").await?;

    // Killed for long enough that the Lease expires: no replica may lead meanwhile, and one must lead
    // afterwards.
    bare.control_plane().kill(Component::ApiServer(Side::Management)).await;
    one.logged("Lost the Lease").await?;
    ensure!(!is_leader(&one).await? && !is_leader(&other).await?, "a replica leads without an API server");
    bare.control_plane().restart(Component::ApiServer(Side::Management)).await?;
    bare.apply(&machine("after")).await?;
    until_seen(&bare, "after").await?;
    let leaders = [is_leader(&one).await?, is_leader(&other).await?];
    ensure!(leaders.iter().filter(|leads| **leads).count() == 1, "{leaders:?}");
    for program in [one, other] {
        program.is_ready().await?;
        program.stop().await?;
    }
    bare.stop().await
}

/// Waits until the leader has reconciled an object.
async fn until_seen(bare: &Bare, name: &str) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let is_seen = |object: &ScheduledMachine| object.status.is_some();
    wait::until_present(&objects, name, "to have a status", WITHIN, is_seen).await?;
    Ok(())
}
