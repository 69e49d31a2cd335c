//! `cargo xtask campaign`: the tests at full size. `cargo test --workspace` runs the same tests with smaller samples, so
//! that it takes a few minutes; CI runs both.

use anyhow::{Context as _, ensure};
use clap::ValueEnum;

use crate::cargo::cargo;

/// Makes tests run at full size.
const FULL_SIZE_VARIABLE: &str = "FIVESPOT_CAMPAIGN";

/// The cases of each property at full size.
const PROPERTY_CASES: (&str, &str) = ("PROPTEST_CASES", "2048");

/// Flags of `campaign`.
#[derive(clap::Args)]
#[command(after_help = "\
Without arguments all campaigns run. Still larger ones have commands of their own: `cargo xtask faults` tries every fault
of every scenario, and PROPTEST_CASES and PROPTEST_RNG_SEED choose more and other cases of the properties.

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
    /// The schedule engine against the oracle in every time zone.
    Oracle,
    /// The exhaustive walk of the lifecycle with two disturbances, and 2,048 cases of every property of decisions.
    Lifecycle,
    /// 2,048 cases of every other property.
    Properties,
    /// Every scenario in every layout, and a sample of faults for each.
    Faults,
    /// Every cell of the emergency matrix.
    Matrix,
    /// Every kind of hostile text in every field.
    Hostile,
}

impl Campaign {
    /// The arguments of `cargo test`.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Oracle => &["--package", "five-spot-core", "--test", "oracle"],
            Self::Lifecycle => &["--package", "five-spot-core", "--test", "lifecycle"],
            Self::Properties => &[
                "--package",
                "five-spot-api",
                "--package",
                "five-spot-cli",
                "--package",
                "five-spot-cluster",
                "--package",
                "five-spot-controller",
                "--package",
                "five-spot-core",
                "--lib",
                "--bins",
            ],
            Self::Faults => &["--package", "five-spot-scenarios", "--test", "faults", "--test", "scenarios"],
            Self::Matrix => &["--package", "five-spot-scenarios", "--test", "matrix"],
            Self::Hostile => &["--package", "five-spot-scenarios", "--test", "hostile"],
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let all = Campaign::value_variants();
    for campaign in if args.campaigns.is_empty() { all } else { &args.campaigns } {
        let arguments = campaign.arguments();
        println!("+ cargo test {}", arguments.join(" "));
        let status = cargo()
            .arg("test")
            .args(arguments)
            .env(FULL_SIZE_VARIABLE, "1")
            .env(PROPERTY_CASES.0, PROPERTY_CASES.1)
            .status()
            .context("failed to run cargo")?;
        ensure!(status.success(), "a campaign failed: {status}");
    }
    Ok(())
}
