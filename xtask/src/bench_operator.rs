//! `cargo xtask bench-operator`: the cost of an idle fleet on a real control plane. The program of the
//! end-to-end tests does the measurement; this task builds its dependencies.

use anyhow::ensure;

use crate::output::Output;
use crate::{e2e, optimised};

/// Flags of `bench-operator`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of objects with a Ready Node.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    objects: u32,
    /// Number of objects at the first memory measurement, from which the cost per additional object is
    /// computed.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    first: u32,
    /// Length of the idle period.
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    minutes: u64,
    /// Number of changes measured before and after the idle period.
    #[arg(long, value_name = "COUNT", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.first < args.objects, "--first {} must be less than --objects {}", args.first, args.objects);
    optimised::benchmark("bench-operator", |program| {
        vec![
            program(e2e::CONTROLLER_PROGRAM),
            args.objects.to_string(),
            args.first.to_string(),
            (args.minutes * 60).to_string(),
            args.changes.to_string(),
            (args.output == Output::Json).to_string(),
        ]
    })
}
