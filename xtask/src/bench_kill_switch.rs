//! `cargo xtask bench-kill-switch`: the time from `killSwitch: true` to the DELETE of the Machine on a real control plane.

use crate::optimised;

/// Flags of `bench-kill-switch`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of kill switches with a healthy workload cluster, and with one that does not answer.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    optimised::benchmark("bench-kill-switch", |_| vec![args.runs.to_string()])
}
