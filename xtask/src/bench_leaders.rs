//! `cargo xtask bench-leaders`: failover and the cost of a standby on a real API server.

use crate::{e2e, optimised};

/// Flags of `bench-leaders`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of objects.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    objects: u32,
    /// Time for which the standby is observed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Number of leaders that are killed, and of leaders that are shut down gracefully.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    optimised::benchmark("bench-leaders", |program| {
        let numbers = [args.objects, args.seconds, args.rounds].map(|number| number.to_string());
        [program(e2e::CONTROLLER_PROGRAM)].into_iter().chain(numbers).collect()
    })
}
