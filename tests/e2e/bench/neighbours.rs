//! `cargo xtask bench-neighbours`: the latencies of one tenant without and with a hostile tenant beside it, and what the
//! attack costs the controller.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::test_clusters::{TestClusters, TestContext};

use super::{Fleet, Latency, Memory};
use crate::hostile::Attacker;
use crate::scenarios::controller_identity;

/// The argument that selects this benchmark.
pub(super) const WORD: &str = "bench-neighbours";

/// The factor by which a hostile tenant may increase the 99th percentile of others.
const GOAL: f64 = 2.0;

/// The parameters: `cargo xtask bench-neighbours` has checked them.
struct Wanted {
    controller: PathBuf,
    machines: usize,
    /// Changes of every object in each of the two phases.
    changes: usize,
    /// Kill switches of every object in each of the two phases.
    kill_switches: usize,
}

/// The latencies of the victim in one phase.
struct Phase {
    changes: Latency,
    kill_switches: Latency,
}

/// Measures both phases, and prints the figures.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [controller, machines, changes, kill_switches] = arguments else {
        anyhow::bail!("to be started by `cargo xtask bench-neighbours`");
    };
    let wanted = Wanted {
        controller: controller.into(),
        machines: machines.parse()?,
        changes: changes.parse()?,
        kill_switches: kill_switches.parse()?,
    };
    let clusters = TestClusters::start().await?;
    let context = Arc::new(clusters.test_context("victim").await?);
    let mut victim = Fleet::prepare(Arc::clone(&context), &wanted.controller).await?;
    let measured = measure(&clusters, &mut victim, &wanted).await;
    let measured = measured.with_context(|| format!("the end of the controller's log:\n{}", victim.log()));
    clusters.stop().await?;
    measured
}

async fn measure(clusters: &Arc<TestClusters>, victim: &mut Fleet, wanted: &Wanted) -> anyhow::Result<()> {
    victim.start().await?;
    victim.grow_to(wanted.machines).await?;
    victim.until_silent().await?;
    let nodes = victim.nodes().await?;
    ensure!(nodes.len() == wanted.machines, "every machine has a Node: {nodes:?}");
    eprintln!("{} machines are lent; measuring without an attack", wanted.machines);
    let without = phase(victim, wanted).await?;
    let hostile: Arc<TestContext> = Arc::new(clusters.test_context("attacker").await?);
    controller_identity(&hostile).await?;
    let attacker = Attacker::start(&hostile, nodes).await?;
    eprintln!("measuring with an attack");
    let with = phase(victim, wanted).await?;
    let pid = victim.program()?.pid();
    let (memory, peak) = (Memory::of(pid)?.resident, Memory::peak_of(pid)?);
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    ensure!(attacker.never_reached().is_empty(), "never reached: {:?}", attacker.never_reached());
    println!("{:<34} {:>14} {:>14} {:>8}   goal", "victim, in ms", "without attack", "with attack", "factor");
    for (what, before, during) in [
        ("change to write", &without.changes, &with.changes),
        ("kill switch to Machine DELETE", &without.kill_switches, &with.kill_switches),
    ] {
        row(&format!("{what}, p50 of {}", before.count), before.p50, during.p50, "");
        row(&format!("{what}, p99"), before.p99, during.p99, &format!("at most {GOAL}"));
    }
    println!("controller: {} MB, at most {} MB, {descriptors} descriptors", memory >> 20, peak >> 20);
    Ok(())
}

fn row(what: &str, before: f64, during: f64, goal: &str) {
    let factor = if before > 0.0 { during / before } else { f64::INFINITY };
    println!("{what:<34} {before:>14} {during:>14} {factor:>8.2}   {goal}");
}

async fn phase(victim: &Fleet, wanted: &Wanted) -> anyhow::Result<Phase> {
    let (mut changes, mut kill_switches): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..wanted.changes {
        changes.extend(victim.changes(wanted.machines).await?);
    }
    for _ in 0..wanted.kill_switches {
        kill_switches.extend(victim.kill_switches(wanted.machines).await?);
    }
    Ok(Phase { changes: Latency::of(changes), kill_switches: Latency::of(kill_switches) })
}
