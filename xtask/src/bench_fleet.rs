//! `cargo xtask bench-fleet`: many windows that open at once on a real API server, and how the controller's
//! costs grow with the number of objects.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::output::Output;
use crate::{e2e, optimised};

/// Flags of `bench-fleet`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this measurement; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Measurement>,
    /// Number of objects in the fleet, storm and reclaim measurements.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    objects: u32,
    /// Number of objects for which a plain client sends the same requests, for comparison; by default as many as the fleet
    /// has.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    replayed: Option<u32>,
    /// Number of machines with a Node to drain in the storm measurement.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// Number of machines whose owners return, half of them before and half of them while the windows of the fleet open.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..))]
    reclaims: u32,
    /// Length of the idle period.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    quiet: u32,
    /// Numbers of objects for the memory measurement on the in-memory API server.
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000])]
    sizes: Vec<u32>,
    /// File for the plot.
    #[arg(long, value_name = "FILE", default_value = "docs/images/growth.svg")]
    plot: PathBuf,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// 10 of 1,000 windows open, ten times.
    Few,
    /// 300 windows open at once.
    Hundreds,
    /// 1,000 windows open at once.
    Thousand,
    /// A whole fleet: start, windows that open at once compared with a plain client, idle period, restart.
    Fleet,
    /// A whole fleet opens and later closes, with drains, while leaders are killed and the API server is
    /// restarted.
    Storms,
    /// Owners want their machines back, while nothing else happens and while the windows of a whole fleet open.
    Reclaims,
    /// Memory, CPU and requests by the number of objects, on the in-memory API server.
    Growth,
}

impl Measurement {
    /// The argument for the program of the end-to-end tests.
    fn argument(self, args: &Args) -> String {
        match self {
            Self::Few => "opening:1000:10:10".into(),
            Self::Hundreds => "opening:300:300:1".into(),
            Self::Thousand => "opening:1000:1000:1".into(),
            Self::Fleet => {
                let replayed = args.replayed.unwrap_or(args.objects);
                format!("fleet:{}:{replayed}:{}", args.objects, args.quiet)
            }
            Self::Storms => format!("storms:{}:{}", args.objects, args.nodes),
            Self::Reclaims => format!("reclaims:{}:{}", args.objects, args.reclaims),
            Self::Growth => {
                let sizes: Vec<String> = args.sizes.iter().map(ToString::to_string).collect();
                format!("memory:{}:{}", args.plot.display(), sizes.join(","))
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let all = Measurement::value_variants();
    let chosen = if args.only.is_empty() { all } else { &args.only };
    optimised::benchmark("bench-fleet", |program| {
        let first = [program(e2e::CONTROLLER_PROGRAM), (args.output == Output::Json).to_string()];
        first.into_iter().chain(chosen.iter().map(|measurement| measurement.argument(args))).collect()
    })
}
