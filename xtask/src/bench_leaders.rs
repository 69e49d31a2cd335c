//! `cargo xtask bench-leaders`: failover and the cost of a standby on a real API server.

use std::process::Command;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::PARENT_VARIABLE;

use crate::{control_plane, e2e, optimised};

/// Flags of `bench-leaders`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of objects.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    objects: u32,
    /// Time for which the standby is observed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Number of leaders that are killed, and of leaders that are asked to end.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    control_plane::build()?;
    let suite = optimised::suite()?;
    let controller = suite.with_file_name(e2e::CONTROLLER_PROGRAM);
    let status = Command::new(suite)
        .arg("bench-leaders")
        .arg(controller)
        .args([args.objects, args.seconds, args.rounds].map(|number| number.to_string()))
        .env(PARENT_VARIABLE, std::process::id().to_string())
        .status()
        .context("failed to start the benchmark")?;
    ensure!(status.success(), "the benchmark failed: {status}");
    Ok(())
}
