//! `cargo xtask bench-neighbours`: the latencies of one tenant without and with a hostile tenant beside it, on a real
//! control plane.

use crate::{e2e, optimised};

/// Flags of `bench-neighbours`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of lent machines of the tenant that is measured.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    machines: u32,
    /// Number of changes of each object, without and again with the attack.
    // Each change is another priority, of which there are 101.
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=50))]
    changes: u32,
    /// Number of kill switches of each object, without and again with the attack.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    kill_switches: u32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    optimised::benchmark("bench-neighbours", |program| {
        vec![
            program(e2e::CONTROLLER_PROGRAM),
            args.machines.to_string(),
            args.changes.to_string(),
            args.kill_switches.to_string(),
        ]
    })
}
