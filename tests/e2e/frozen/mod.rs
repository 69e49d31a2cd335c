//! An API server, or the etcd behind it, that is suspended: connections stay open, and there are no
//! responses.
//!
//! Each test has its own API server and prints the responses of `/ready` second by second.

mod seconds;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_testenv::audit::AuditRecord;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::{Value, json};

use crate::startup::{Bare, Program, shipped_definition, shipped_rules};
use seconds::until_not_ready;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_frozen_api_server_is_noticed_on_every_watch,
        a_frozen_etcd_is_noticed_behind_a_living_api_server,
        an_idle_standby_asks_for_nothing
    ]
}

const API_SERVER: Component = Component::ApiServer(Side::Management);

/// Much shorter than the three minutes after which a watch without events is restarted.
const NOTICED_WITHIN: Duration = Duration::from_secs(100);

/// The time in which requests are counted: longer than that after which the storage is checked.
const IDLE: Duration = Duration::from_secs(50);

/// The time without requests once everything has started.
const SETTLED_AFTER: Duration = Duration::from_secs(8);

/// An API server with everything that the controller needs, and an account with the shipped roles.
async fn prepare(name: &str) -> anyhow::Result<(Bare, ServiceAccountIdentity)> {
    let bare = Bare::start(name).await?;
    let identity = account(&bare, "controller").await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    Ok((bare, identity))
}

/// An account with the shipped role, and permission for Leases.
async fn account(bare: &Bare, name: &str) -> anyhow::Result<ServiceAccountIdentity> {
    let mut rules = shipped_rules()?;
    rules.push(json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    }));
    bare.account(name, &Value::Array(rules)).await
}

async fn a_frozen_api_server_is_noticed_on_every_watch(_: Arc<TestContext>) -> TestResult {
    let (bare, identity) = prepare("frozen").await?;
    let program = Program::start(bare.directory(), &identity, "frozen", &[]).await?;
    let ready = program.is_ready().await?;
    ensure!(!ready.contains("HTTP/2"), "the real API server offers HTTP/2: {ready}");
    bare.control_plane().freeze(API_SERVER).await;
    let watches = ["scheduledmachines", "machines", "clusters", "namespaces"]
        .map(|what| format!("watch of {what} is not connected"));
    let watches: Vec<&str> = watches.iter().map(String::as_str).collect();
    let seconds = until_not_ready(&program, &watches, NOTICED_WITHIN).await?;
    println!("frozen API server: every watch noticed after {seconds} s");
    program.answers("/health", 200, &["ok\n"]).await?;
    bare.control_plane().thaw(API_SERVER).await;
    program.is_ready().await?;
    program.stop().await?;
    bare.stop().await
}

async fn a_frozen_etcd_is_noticed_behind_a_living_api_server(_: Arc<TestContext>) -> TestResult {
    let (bare, identity) = prepare("frozen-etcd").await?;
    let alone = Program::start(bare.directory(), &identity, "alone", &[]).await?;
    let flags = ["--enable-leader-election"];
    let leader = Program::start(bare.directory(), &identity, "leader", &flags).await?;
    leader.logged("Became the leader").await?;
    let standby = Program::start(bare.directory(), &identity, "standby", &flags).await?;
    for program in [&alone, &leader, &standby] {
        program.is_ready().await?;
    }
    bare.control_plane().freeze(Component::Etcd).await;
    let reason = ["the API server or its storage does not answer"];
    let noticed = futures::future::try_join_all(
        [&alone, &leader, &standby].map(|program| until_not_ready(program, &reason, NOTICED_WITHIN)),
    );
    println!("frozen etcd: noticed after {:?} s (alone, leader, standby)", noticed.await?);
    bare.control_plane().thaw(Component::Etcd).await;
    for program in [alone, leader, standby] {
        program.is_ready().await?;
        program.stop().await?;
    }
    bare.stop().await
}

async fn an_idle_standby_asks_for_nothing(_: Arc<TestContext>) -> TestResult {
    let (bare, identity) = prepare("idle").await?;
    let other = account(&bare, "standby").await?;
    let flags = ["--enable-leader-election"];
    let leader = Program::start(bare.directory(), &identity, "leader", &flags).await?;
    leader.logged("Became the leader").await?;
    let standby = Program::start(bare.directory(), &other, "standby", &flags).await?;
    leader.is_ready().await?;
    standby.is_ready().await?;
    standby.logged("Standing by").await?;
    until_settled(&bare, &[&identity, &other]).await?;
    let before = (bare.asked(&identity)?.len(), bare.asked(&other)?.len());
    tokio::time::sleep(IDLE).await;
    let (by_leader, by_standby) = (bare.asked(&identity)?, bare.asked(&other)?);
    let (by_leader, by_standby) = (&by_leader[before.0..], &by_standby[before.1..]);
    let besides: Vec<String> =
        by_leader.iter().filter(|record| !is_renewal(record)).map(ToString::to_string).collect();
    println!("idle for {} s: leader {} renewals", IDLE.as_secs(), by_leader.len() - besides.len());
    ensure!(besides.is_empty(), "the leader sent requests for more than its Leases: {besides:?}");
    let by_standby: Vec<String> = by_standby.iter().map(ToString::to_string).collect();
    ensure!(by_standby.is_empty(), "the standby sent requests: {by_standby:?}");
    standby.stop().await?;
    leader.stop().await?;
    bare.stop().await
}

fn is_renewal(record: &AuditRecord) -> bool {
    let (verb, name) = (record.verb.as_str(), record.object.name.as_str());
    let is_own = matches!((verb, name), ("update", "5spot-leader") | ("patch", "5spot-leader-instance-0"));
    record.object.resource == "leases" && is_own
}

/// Waits until there have been only requests for Leases for a while: events of the start arrive late.
async fn until_settled(bare: &Bare, accounts: &[&ServiceAccountIdentity]) -> anyhow::Result<()> {
    let count = || {
        let requests =
            accounts.iter().map(|account| bare.asked(account)).collect::<anyhow::Result<Vec<_>>>()?;
        anyhow::Ok(requests.iter().flatten().filter(|record| !is_renewal(record)).count())
    };
    let mut before = count()?;
    loop {
        tokio::time::sleep(SETTLED_AFTER).await;
        let now = count()?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
}
