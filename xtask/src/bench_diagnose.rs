//! `cargo xtask bench-diagnose`: the time and the requests of `5spot doctor` and `5spot why` on a real API server.

use crate::{e2e, optimised};

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
    optimised::benchmark("bench-diagnose", |program| {
        vec![program(e2e::CLI_PROGRAM), args.machines.to_string(), args.objects.to_string()]
    })
}
