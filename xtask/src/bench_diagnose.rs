//! `cargo xtask bench-diagnose`: the time and the requests of `5spot doctor` and `5spot why` on a real API server.

use std::process::Command;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::PARENT_VARIABLE;

use crate::{control_plane, e2e, optimised};

/// Flags of `bench-diagnose`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of `ScheduledMachine`s that `5spot doctor` checks.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    machines: u32,
    /// Number of objects in the namespace that `5spot why` explains.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    objects: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    control_plane::build()?;
    let suite = optimised::suite()?;
    let program = suite.with_file_name(e2e::CLI_PROGRAM);
    let status = Command::new(suite)
        .arg("bench-diagnose")
        .arg(program)
        .args([args.machines, args.objects].map(|number| number.to_string()))
        .env(PARENT_VARIABLE, std::process::id().to_string())
        .status()
        .context("failed to start the benchmark")?;
    ensure!(status.success(), "the benchmark failed: {status}");
    Ok(())
}
