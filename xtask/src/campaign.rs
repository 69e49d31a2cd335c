//! `cargo xtask campaign`: the tests at full size. `cargo test --workspace` runs the same tests with smaller
//! samples, so that it takes a few minutes. CI runs both.

use anyhow::{Context as _, ensure};
use clap::ValueEnum;

use crate::cargo::cargo;

/// The environment variable that makes tests run at full size.
const FULL_SIZE_VARIABLE: &str = "FIVESPOT_CAMPAIGN";

/// The number of cases per property at full size.
const PROPERTY_CASES: (&str, &str) = ("PROPTEST_CASES", "2048");

/// Flags of `campaign`.
#[derive(clap::Args)]
#[command(after_help = "\
Without arguments, all campaigns run. For more, use `cargo xtask faults`, which tries every fault
of every scenario, PROPTEST_CASES and PROPTEST_RNG_SEED, which select more and different property cases, and
FIVESPOT_LEADER_SEEDS and FIVESPOT_SHARD_SEEDS, which set the number of seeds of `leaders` and `shards`.

Examples:
  cargo xtask campaign
  cargo xtask campaign oracle lifecycle")]
pub(crate) struct Args {
    /// The campaigns to run.
    #[arg(value_enum)]
    campaigns: Vec<Campaign>,
}

/// A campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Campaign {
    /// Compare the schedule engine with the oracle in every time zone.
    Oracle,
    /// Walk all states of the lifecycle with two disturbances, and check 2,048 cases of every property of
    /// decisions.
    Lifecycle,
    /// Check 2,048 cases of every other property, and rolling updates of instances with 500 seeds.
    Properties,
    /// Run every scenario in every layout, each with a sample of faults.
    Faults,
    /// Run every case of the emergency matrix.
    Matrix,
    /// Put every kind of hostile text into every field.
    Hostile,
    /// Kill, stop, pause and cut off leaders with 100 seeds.
    Leaders,
    /// Roll out one to three instances and back, with crashes, with 40 seeds.
    Shards,
}

impl Campaign {
    /// The targets to run, as arguments of `cargo test`.
    const fn targets(self) -> &'static [&'static str] {
        match self {
            Self::Oracle => &["--test", "oracle"],
            Self::Lifecycle => &["--test", "lifecycle"],
            Self::Properties => &["--lib", "--bins"],
            Self::Faults => &["--test", "faults", "--test", "scenarios"],
            Self::Matrix => &["--test", "matrix"],
            Self::Hostile => &["--test", "hostile"],
            Self::Leaders => &["--test", "leaders"],
            Self::Shards => &["--test", "fleet"],
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let chosen =
        if args.campaigns.is_empty() { Campaign::value_variants() } else { args.campaigns.as_slice() };
    for campaign in chosen {
        let targets = campaign.targets();
        println!("+ cargo test --workspace {}", targets.join(" "));
        // The whole workspace: single packages would be compiled again, with different features of their
        // dependencies.
        let status = cargo()
            .args(["test", "--workspace"])
            .args(targets)
            .env(FULL_SIZE_VARIABLE, "1")
            .env(PROPERTY_CASES.0, PROPERTY_CASES.1)
            .status()
            .context("failed to run cargo")?;
        ensure!(status.success(), "a campaign failed: {status}");
    }
    Ok(())
}
