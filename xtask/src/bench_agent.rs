//! `cargo xtask bench-agent`: the figures in docs/reclaim-agent.md. The benchmark of the agent alone needs
//! Linux and root; the time from the start of a program to the deletion of the Machine is measured on a real
//! control plane.

use anyhow::{Context as _, ensure};

use crate::{cargo, image, optimised};

/// Flags of `bench-agent`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of reclaims on the real control plane.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    reclaims: u32,
    /// Measure only the agent: matching, CPU and memory.
    #[arg(long, conflicts_with = "reclaims")]
    alone: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average at the start: {}", load.trim());
    if args.alone {
        let [_, shipped] = image::SHIPPED;
        let agent = image::shipped_program(&shipped)?;
        let arguments =
            ["bench", "--profile", "dev", "--package", "five-spot-agent", "--bench", "node", "--", "--agent"];
        let status = cargo::cargo().args(arguments).arg(agent).status().context("failed to run cargo")?;
        ensure!(status.success(), "the benchmark failed: {status}");
        return Ok(());
    }
    optimised::benchmark("bench-agent", |_| vec![args.reclaims.to_string()])
}
