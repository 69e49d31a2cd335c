//! `cargo xtask faults`: runs every scenario many times, each time with a different fault. A program of
//! `tests/scenarios`, built with optimisations, does the work; this is its command line.

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
Each scenario runs once without a fault. That run numbers the controller's writes, the events of its watches and the
moments at which it is busy. Then the scenario runs once for each fault at each of these points, and has to end the
same way: the same objects, created and deleted equally often, no leftovers, a correct status, and no further writes.

All cases together are about a hundred thousand runs, which take hours on two cores. `--sample 5` takes 15 minutes and
includes every scenario.

Examples:
  cargo xtask faults --kind crashes --scenario window_opens
  cargo xtask faults --sample 5 --seed 7
  cargo xtask faults --only 'crashes:window_opens:two-clusters:12-dies-unaware'
  RUST_LOG=debug cargo xtask faults --only '...' 2> log

Exit status: 0 if every case passed, 1 if one failed (the report names the command that repeats it), 2 on wrong usage.")]
pub(crate) struct Args {
    /// Only this kind of fault; may be repeated.
    #[arg(long = "kind", value_enum)]
    kinds: Vec<Kind>,
    /// Only scenarios whose name contains this text; may be repeated.
    #[arg(long = "scenario", value_name = "PART")]
    scenarios: Vec<String>,
    /// Only this layout [default: two clusters for pairs, clocks and leaders, both layouts for everything
    /// else].
    #[arg(long, value_enum)]
    layout: Option<Layout>,
    /// Seed that selects the stale reads, the failed requests of a storm, and the cases of a sample.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run at most this many cases of each kind per scenario and layout, spread over all of them.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Run only this case, by the name in the failure report.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["kinds", "scenarios", "layout", "sample"])]
    only: Option<String>,
    /// Output format of the summary. Progress goes to standard error.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A kind of fault.
#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// The controller crashes before, during or after a write, or the request or the response is lost: for
    /// each write.
    Crashes,
    /// The controller crashes twice: for each pair of writes.
    Pairs,
    /// Every other read returns the state from 1 or 5 changes ago, or from before the controller's own last
    /// write.
    Stale,
    /// An event is lost or late, or the watch is closed, hangs or is too old: for each event of each watch.
    Watches,
    /// 1, 10, 50 or 100 % of all requests fail for ten minutes, in one of eight ways.
    Storms,
    /// The controller's clock is set forward or back by a second to a year, temporarily or permanently.
    Clocks,
    /// The watch event of a write is delivered before its response, after it, or after the next reconcile:
    /// for each write.
    Orderings,
    /// A hostile tenant has a namespace in the same cluster.
    Neighbours,
    /// The leader of two controllers is killed, suspended or disconnected, and the other one takes over: for
    /// each write.
    Leaders,
}

/// The cluster layout: the location of the Nodes.
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
    ensure!(status.success(), "some cases failed: {status}");
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

    fn options_of(flags: &[&str]) -> serde_json::Value {
        let alone = Alone::parse_from([&["faults"], flags].concat());
        serde_json::to_value(options(&alone.args)).expect("JSON")
    }

    #[test]
    fn flags_become_options_of_the_program() {
        let all = options_of(&[]);
        assert_eq!(all["kinds"], serde_json::json!([]));
        assert_eq!(all["seed"], 1);
        let some = options_of(&["--kind", "pairs", "--kind", "stale", "--layout", "both", "--sample", "3"]);
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
        let known = five_spot_scenarios::faults::CampaignKind::ALL.map(|kind| (kind.to_string(), true));
        assert_eq!(offered, known);
    }
}
