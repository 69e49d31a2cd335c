//! One controller for two tenants, one of which is hostile: the other must not be affected.

mod attacker;
mod traces;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::cluster::{CONTROLLER_AGENT, Cluster};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use jiff::Timestamp;

use crate::bench::{Fleet, Latency, Memory};
use crate::scenarios::{another_control_plane, controller_identity};
use crate::startup::controller_program;
pub(crate) use attacker::Attacker;

/// Machines of the victim.
const MACHINES: usize = 4;
/// Changes of each of the victim's objects that are measured before and during the attack.
const CHANGES: usize = 10;
/// The guaranteed latency of the kill switch.
const KILL_SWITCH_WITHIN: Duration = Duration::from_secs(5);
/// The factor by which the attack may slow the victim down. The limit for the controller is two; the
/// attackers run on the same machine.
const SLOWER: f64 = 8.0;
/// The latency in milliseconds below which the machine matters more than the controller.
const UNMEASURABLE: f64 = 500.0;
/// The memory limit: the controller itself, and the budget of each cluster that can fill one, which are the
/// five hostile servers that send endless data.
const MEMORY: u64 = 400 << 20;
/// Open files: far below the usual limit of 1,024.
const DESCRIPTORS: usize = 300;
/// A few lines for each hostile object.
const LOG: usize = 4 << 20;
/// The time during which events of foreign Nodes must cause no reconcile.
const QUIET: Duration = Duration::from_secs(8);
/// The time after a restart in which reconciles of hostile objects are counted, and the most of each on average.
const RESTARTED: Duration = Duration::from_secs(20);
const MOST_RECONCILES: usize = 6;
/// The time limit, most of which is for starting a control plane and lending machines.
const LONG: Duration = Duration::from_mins(8);

pub(crate) fn tests() -> Vec<Test> {
    let name = concat!(module_path!(), "::own_control_plane::a_hostile_tenant_does_not_hurt_its_neighbour");
    vec![Test::new(name, |_| a_hostile_tenant_does_not_hurt_its_neighbour()).within(LONG)]
}

async fn a_hostile_tenant_does_not_hurt_its_neighbour() -> TestResult {
    let clusters = another_control_plane("hostile-tenant").await?;
    let result = beside_each_other(&clusters).await;
    clusters.stop().await?;
    result
}

async fn beside_each_other(clusters: &Arc<TestClusters>) -> TestResult {
    let context = Arc::new(clusters.test_context("victim").await?);
    let mut victim = Fleet::prepare(Arc::clone(&context), &controller_program()?).await?;
    victim.start().await?;
    let result = attack(clusters, &context, &mut victim).await;
    let log = victim.log();
    result.with_context(|| format!("the controller's log:\n{log}"))
}

async fn attack(clusters: &Arc<TestClusters>, context: &TestContext, victim: &mut Fleet) -> TestResult {
    victim.grow_to(MACHINES).await?;
    victim.until_silent().await?;
    let nodes = victim.nodes().await?;
    ensure!(nodes.len() == MACHINES, "every machine has a Node: {nodes:?}");
    let changes_before = Latency::of(changes(victim).await?);
    let kill_switches_before = victim.kill_switches(MACHINES).await?;

    let hostile = Arc::new(clusters.test_context("attacker").await?);
    controller_identity(&hostile).await?;
    let (began, places) = (Timestamp::now(), [end(context.management())?, end(context.workload())?]);
    let attacker = Attacker::start(&hostile, nodes).await?;
    let (times, liveness_failures) = victim.program()?.liveness_failures_during(changes(victim)).await;
    let changes_during = Latency::of(times?);
    let kill_switches_during = victim.kill_switches(MACHINES).await?;
    let reconciles = reconciles_of(victim, context.namespace())?;
    tokio::time::sleep(QUIET).await;
    let woken = reconciles_of(victim, context.namespace())? - reconciles;

    let (pid, log) = (victim.program()?.pid(), victim.program()?.log().len());
    let memory = Memory::of(pid)?.resident;
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    eprintln!(
        "change to write: {changes_before} before, {changes_during} during the attack; kill switch to DELETE: {kill_switches_before:?} \
         before, {kill_switches_during:?} during; {} MB, {descriptors} descriptors, {} kB of log, {woken} reconciles of the \
         victim in {QUIET:?}; the attack took {:?}",
        memory >> 20,
        log >> 10,
        Timestamp::now().duration_since(began),
    );
    ensure!(liveness_failures.is_empty(), "/health failed: {liveness_failures:?}");
    ensure!(attacker.never_reached().is_empty(), "never reached: {:?}", attacker.never_reached());
    let limit = (changes_before.p50 * SLOWER).max(UNMEASURABLE);
    ensure!(
        changes_during.p50 <= limit,
        "a change took {} ms, and {limit} ms is too long",
        changes_during.p50
    );
    for took in kill_switches_during {
        ensure!(took <= KILL_SWITCH_WITHIN, "a kill switch took {took:?}");
    }
    ensure!(memory < MEMORY, "{memory} bytes of memory");
    ensure!(descriptors < DESCRIPTORS, "{descriptors} open files");
    ensure!(log < LOG, "{log} bytes of log");
    ensure!(woken == 0, "the victim's objects were reconciled {woken} times for foreign Nodes");
    traces::check(&attacker).await?;
    after_a_restart(victim, &attacker, hostile.namespace()).await?;
    let strays: Vec<String> = attacker.requests().into_iter().filter(|line| line.contains("..")).collect();
    ensure!(strays.is_empty(), "names of the attacker's entered URLs: {strays:?}");
    victim.is_never_reclaimed().await?;
    let tenants = [context.namespace(), hostile.namespace()];
    let in_management = writes_since(context.management(), places[0])?;
    // The Leases of claims and of the instance are the controller's own, and so are the events about itself and the reviews of
    // its permissions when it starts again.
    let is_own = |write: &AuditRecord| match write.object.resource.as_str() {
        "leases" | "events" => write.object.namespace == SYSTEM_NAMESPACE,
        resource => resource == "selfsubjectaccessreviews",
    };
    let is_tenants = |write: &AuditRecord| tenants.contains(&write.object.namespace.as_str());
    ensure_only(&in_management, |write| is_own(write) || is_tenants(write))?;
    // The names of the victim's Nodes start with its namespace.
    let in_workload = writes_since(context.workload(), places[1])?;
    ensure_only(&in_workload, |write| write.object.name.contains(context.namespace()))
}

/// A restart during the attack costs a few reconciles of each hostile object.
async fn after_a_restart(victim: &mut Fleet, attacker: &Attacker, namespace: &str) -> TestResult {
    victim.stop().await?;
    victim.start().await?;
    tokio::time::sleep(RESTARTED).await;
    let (objects, reconciles) = (attacker.objects().await?.len(), reconciles_of(victim, namespace)?);
    eprintln!("{reconciles} reconciles of {objects} hostile objects in {RESTARTED:?} after a restart");
    ensure!(reconciles >= objects, "{reconciles} reconciles of {objects} objects: not all were read");
    ensure!(reconciles < objects * MOST_RECONCILES, "{reconciles} reconciles of {objects} objects");
    Ok(())
}

async fn changes(victim: &Fleet) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..CHANGES {
        times.extend(victim.changes(MACHINES).await?);
    }
    Ok(times)
}

fn end(cluster: &Cluster) -> anyhow::Result<u64> {
    Ok(cluster.audit_log().end()?)
}

/// The controller's writes after a position in an audit log.
fn writes_since(cluster: &Cluster, place: u64) -> anyhow::Result<Vec<AuditRecord>> {
    let query = AuditQuery::all().user_agent(CONTROLLER_AGENT).writes();
    Ok(cluster.audit_log().read_from(place, &query)?.0)
}

fn ensure_only(writes: &[AuditRecord], is_allowed: impl Fn(&AuditRecord) -> bool) -> TestResult {
    let describe = |write: &AuditRecord| {
        let object = &write.object;
        format!("{} {} {}/{}", write.verb, object.resource, object.namespace, object.name)
    };
    let others: BTreeSet<String> = writes.iter().filter(|write| !is_allowed(write)).map(describe).collect();
    ensure!(others.is_empty(), "writes to things of others: {others:?}");
    Ok(())
}

/// Reconciles of a namespace's objects so far.
fn reconciles_of(victim: &Fleet, namespace: &str) -> anyhow::Result<usize> {
    let lines = victim.program()?.lines()?;
    let is_one = |fields: &serde_json::Value| {
        fields["message"] == "Starting reconciliation" && fields["namespace"] == namespace
    };
    Ok(lines.iter().filter(|line| is_one(&line["fields"])).count())
}
