//! `cargo xtask bench-kill-switch`: the time from `killSwitch: true` to the DELETE of the Machine, with a healthy workload cluster
//! and with one whose API server accepts connections and does not answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_scenarios::kinds::ClusterRole;
use five_spot_scenarios::{Environment, ServerState, Subject};
use five_spot_testenv::audit::AuditLog;
use five_spot_testenv::test_clusters::TestClusters;
use serde_json::json;

use super::measure::kill_switch_to_delete;
use super::report::Latency;
use crate::scenarios::{RealControlPlane, View};

/// The argument that selects this benchmark.
pub(super) const WORD: &str = "bench-kill-switch";

/// Measures this many kill switches in each state of the workload cluster, and prints the figures.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [runs] = arguments else { anyhow::bail!("to be started by `cargo xtask bench-kill-switch`") };
    let clusters = TestClusters::start().await?;
    let context = Arc::new(clusters.test_context("bench").await?);
    let real = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
    let log = context.management().audit_log();
    let measured = measure(&real, &log, runs.parse()?).await.with_context(|| real.failure_report());
    drop(real);
    clusters.stop().await?;
    for (state, times) in measured? {
        println!("kill switch to Machine DELETE, workload cluster {state}: {}", Latency::of(times));
    }
    Ok(())
}

async fn measure(
    real: &RealControlPlane,
    log: &AuditLog,
    runs: usize,
) -> anyhow::Result<[(&'static str, Vec<Duration>); 2]> {
    let environment: &dyn Environment = real;
    let subject = Subject::lent(environment, json!({})).await?;
    let (mut healthy, mut silent) = (Vec::new(), Vec::new());
    for run in 1..=runs {
        for (state, times) in [(ServerState::Up, &mut healthy), (ServerState::Silent, &mut silent)] {
            let took = kill(real, &subject, log, state).await.with_context(|| format!("run {run}"))?;
            eprintln!("run {run}, {state:?}: {took:?}");
            times.push(took);
        }
    }
    Ok([("healthy", healthy), ("silent", silent)])
}

/// Sets the kill switch while the API server of the workload cluster is in this state, and brings the machine back.
async fn kill(
    real: &RealControlPlane,
    subject: &Subject<'_>,
    log: &AuditLog,
    state: ServerState,
) -> anyhow::Result<Duration> {
    let machine = subject.machine_uid().await?;
    real.set_api_server(ClusterRole::Workload, state).await?;
    let place = log.end()?;
    subject.set(json!({"killSwitch": true})).await?;
    let took = kill_switch_to_delete(log, place, subject.name()).await?;
    real.set_api_server(ClusterRole::Workload, ServerState::Up).await?;
    subject.until_phase("Terminated").await?;
    subject.set(json!({"killSwitch": false})).await?;
    subject.until_other_machine(&machine).await?;
    subject.until_ready().await?;
    Ok(took)
}
