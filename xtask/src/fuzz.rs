//! `cargo xtask fuzz`: random inputs for the parsers of untrusted input, for a given time.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::cargo::cargo;

/// The parsers of the agent: `crates/agent/tests/fuzz`.
const AGENT: [&str; 6] = ["netlink", "cgroup", "proc", "toml", "watch", "annotations"];

/// The parsers of data from a workload cluster: `fuzz.rs` in `crates/cluster/src/transport/http` and in
/// `cache`.
const CLUSTER: [&str; 7] = ["status", "shape", "watch-lines", "address", "objects", "names", "kubeconfig"];

/// Flags of `fuzz`.
#[derive(clap::Args)]
#[command(after_help = "\
Targets of the agent:   netlink, cgroup, proc, toml, watch, annotations
Targets of the cluster: status, shape, watch-lines, address, objects, names, kubeconfig

Every target is fuzzed for --seconds, one after the other. A failure prints the input; put it into the corpus of its target
(crates/agent/tests/fuzz/corpus, crates/cluster/tests/fuzz-corpus), and `cargo test` replays it from then on.

Examples:
  cargo xtask fuzz --seconds 600
  cargo xtask fuzz netlink toml --seconds 3600 --seed 7")]
pub(crate) struct Args {
    /// Targets to fuzz [default: all].
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(AGENT.into_iter().chain(CLUSTER)))]
    targets: Vec<String>,
    /// Seconds per target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the mutations: the same seed gives the same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.targets.is_empty() {
        fuzz(args, &["--test", "fuzz"], None)?;
        return fuzz(args, &["--lib"], None);
    }
    for target in &args.targets {
        let tests: &[&str] = if AGENT.contains(&target.as_str()) { &["--test", "fuzz"] } else { &["--lib"] };
        fuzz(args, tests, Some(target))?;
    }
    Ok(())
}

fn fuzz(args: &Args, tests: &[&str], target: Option<&str>) -> anyhow::Result<()> {
    let mut command: Command = cargo();
    // The whole workspace: single packages would be compiled again, with different features of their
    // dependencies.
    command.args(["test", "--quiet", "--workspace"]).args(tests);
    command.args(["mutations_of_the_corpus_do_no_harm", "--", "--nocapture", "--test-threads=1"]);
    command.env("FIVE_SPOT_FUZZ_SECONDS", args.seconds.to_string());
    command.env("FIVE_SPOT_FUZZ_SEED", args.seed.to_string());
    if let Some(target) = target {
        command.env("FIVE_SPOT_FUZZ_TARGET", target);
    }
    let status = command.status().context("failed to run cargo")?;
    ensure!(status.success(), "fuzzing failed: {status}");
    Ok(())
}
