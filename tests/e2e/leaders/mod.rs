//! Several controllers with one Lease, as processes with the tokens of pods, on a real control plane: killed,
//! suspended, disconnected and terminated while machines are lent. Their writes are read from the audit log,
//! by pod.

mod bad_lease;
mod drains;
mod late;
mod oracle;
mod replicas;
mod restart;
mod takeover;

use anyhow::Context as _;
use five_spot_testenv::harness::Test;

use crate::startup::Program;

pub(crate) fn tests() -> Vec<Test> {
    [takeover::tests(), restart::tests(), bad_lease::tests(), drains::tests()].into_iter().flatten().collect()
}

/// The name of the Lease in the shipped manifests.
const LEASE: &str = "5spot-leader";

/// Returns true if a replica reports that it is the leader.
pub(crate) async fn is_leader(program: &Program) -> anyhow::Result<bool> {
    let metrics = program.metrics().await?;
    let value = metrics.lines().find_map(|line| line.strip_prefix("fivespot_is_leader "));
    Ok(value.context("fivespot_is_leader is always exported")?.trim() == "1")
}
