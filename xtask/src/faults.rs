//! `cargo xtask faults`: every scenario again and again, and each time something else goes wrong. The work is done by a
//! program of `tests/scenarios`, built with optimisations; this is its command line.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use serde::Serialize;

use crate::optimised;
use crate::output::Output;

/// The program that runs the scenarios.
const PROGRAM: &str = "five-spot-faults";

/// Flags of `faults`.
#[derive(clap::Args)]
#[command(after_help = "\
Each scenario is played once undisturbed. That numbers the controller's writes, the events of its watches and the
moments at which it is at work. Then it is played once more for each thing that can go wrong there, and has to end the
same: the same objects, as often made and removed, nothing left over, a truthful status, and silence.

All of it is about a hundred thousand runs, some hours on two cores; `--sample 5` takes a quarter of an hour and touches
every scenario.

Examples:
  cargo xtask faults --kind crashes --scenario window_opens
  cargo xtask faults --sample 5 --seed 7
  cargo xtask faults --only 'crashes:window_opens:two-clusters:12-dies-unaware'
  RUST_LOG=debug cargo xtask faults --only '...' 2> log

Exit codes: 0 everything held, 1 something did not (a failure names the command that repeats it), 2 usage.")]
pub(crate) struct Args {
    /// Only this kind of faults; may be given several times.
    #[arg(long = "kind", value_enum)]
    kinds: Vec<Kind>,
    /// Only scenarios whose name contains this; may be given several times.
    #[arg(long = "scenario", value_name = "PART")]
    scenarios: Vec<String>,
    /// Only this layout. Without it pairs, clocks and leaders are tried with two clusters, everything else in both.
    #[arg(long, value_enum)]
    layout: Option<Layout>,
    /// Seed: which reads are stale, which requests a storm hits, which cases a sample has.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// At most so many runs of each kind in each scenario and layout, spread over all there are.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Exactly one run, by the name that a failure was told under.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["kinds", "scenarios", "layout", "sample"])]
    only: Option<String>,
    /// Output format of the summary. Progress is written to standard error.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A kind of faults.
#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// The controller dies before, during or after a write, or the request or the answer is lost: each write.
    Crashes,
    /// The controller dies twice: each pair of writes.
    Pairs,
    /// Every other read is from 1 or 5 changes ago, or from before the controller's own last write.
    Stale,
    /// An event is lost or late, the watch is closed, hangs or is too old: each event of each watch.
    Watches,
    /// 1, 10, 50 or 100 % of all requests fail for ten minutes, in one of eight ways.
    Storms,
    /// The controller's clock is set by a second to a year, both ways, for a while or for good.
    Clocks,
    /// The watch event of a write is delivered before its response, after it, or after the next reconcile: each write.
    Orderings,
    /// A hostile tenant has a namespace of the same cluster.
    Neighbours,
    /// The leader of two controllers is killed, stopped or cut off, and the other one takes over: each write.
    Leaders,
}

/// Where the Nodes are.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Layout {
    OneCluster,
    TwoClusters,
    Both,
}

/// The options of the program.
#[derive(Serialize)]
struct Options<'a> {
    kinds: &'a [Kind],
    scenarios: &'a [String],
    layouts: &'a [&'static str],
    seed: u64,
    sample: Option<usize>,
    only: Option<&'a str>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let options = serde_json::to_string(&options(args))?;
    let status = Command::new(optimised::program(PROGRAM)?)
        .arg(options)
        .args((args.output == Output::Json).then_some("json"))
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {PROGRAM}"))?;
    ensure!(status.success(), "not everything held: {status}");
    Ok(())
}

fn options(args: &Args) -> Options<'_> {
    Options {
        kinds: &args.kinds,
        scenarios: &args.scenarios,
        layouts: match args.layout {
            None => &[],
            Some(Layout::OneCluster) => &["one-cluster"],
            Some(Layout::TwoClusters) => &["two-clusters"],
            Some(Layout::Both) => &["one-cluster", "two-clusters"],
        },
        seed: args.seed,
        sample: args.sample,
        only: args.only.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    fn told(flags: &[&str]) -> serde_json::Value {
        let alone = Alone::parse_from([&["faults"], flags].concat());
        serde_json::to_value(options(&alone.args)).expect("JSON")
    }

    #[test]
    fn flags_become_what_the_program_is_told() {
        let all = told(&[]);
        assert_eq!(all["kinds"], serde_json::json!([]));
        assert_eq!(all["seed"], 1);
        let some = told(&["--kind", "pairs", "--kind", "stale", "--layout", "both", "--sample", "3"]);
        assert_eq!(some["kinds"], serde_json::json!(["pairs", "stale"]));
        assert_eq!(some["layouts"], serde_json::json!(["one-cluster", "two-clusters"]));
        assert_eq!(some["sample"], 3);
        assert!(Alone::try_parse_from(["faults", "--only", "a", "--kind", "pairs"]).is_err());
    }

    #[test]
    fn the_program_has_the_same_kinds_and_each_is_explained() {
        let offered = Kind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let offered: Vec<_> =
            offered.map(|kind| (kind.get_name().to_owned(), kind.get_help().is_some())).collect();
        let known = five_spot_scenarios::faults::Kind::ALL.map(|kind| (kind.to_string(), true));
        assert_eq!(offered, known);
    }
}
