//! `cargo xtask e2e`: builds everything that the end-to-end tests need and runs them on a real control plane.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cache::{self, Cache, CacheEnvironment};
use five_spot_testenv::harness::{PARENT_VARIABLE, REPORT_VARIABLE, RETRY_VARIABLE};

use crate::tools::{Tool, install_missing};
use crate::{cargo, control_plane, image};

/// The package and the program of the suite.
pub(crate) const SUITE: &str = "five-spot-e2e";

/// The package of the controller.
pub(crate) const CONTROLLER: &str = "five-spot-controller";

/// The program of the controller, which the suite expects in its own directory, like the agent: statically
/// linked, as in the images.
pub(crate) const CONTROLLER_PROGRAM: &str = "5spot-controller";

/// The command-line tools, which the suite expects in its own directory too.
pub(crate) const CLI_PROGRAM: &str = "5spot";

/// A test of the workspace that depends on little.
const SMALL_TEST: &str = "crd_table";

/// Tools that the suite does not build: it tests the official Python client and the completion scripts, loads
/// the alert rules into Prometheus, and uses `ip` to set up the network of the real node.
const TOOLS: [Tool; 6] = [
    Tool { check: &["fish", "--version"], package: "fish" },
    Tool { check: &["ip", "-V"], package: "iproute2" },
    Tool { check: &["prometheus", "--version"], package: "prometheus" },
    Tool { check: &["python3", "--version"], package: "python3" },
    Tool { check: &["python3", "-c", "import venv, ensurepip"], package: "python3-venv" },
    Tool { check: &["zsh", "--version"], package: "zsh" },
];

/// Flags of `e2e`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run up to three failed tests once more, each alone, and list those that pass then.
    #[arg(long)]
    retry: bool,
    /// Test the archives in this directory, written by `cargo xtask image`, instead of unoptimised programs.
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
    /// Run only tests whose name contains this text; flags of the test program may follow, such as `--list`
    /// or `--test-threads 4`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The report of the suite.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    passed: u64,
    failed: u64,
    failures: Vec<Failure>,
    /// Tests that failed in the parallel run and passed alone.
    unstable: Vec<Failure>,
    seconds: f64,
    start_seconds: f64,
    peak_memory_bytes: u64,
    disk_bytes: u64,
}

/// A failed test and its cause.
#[derive(serde::Deserialize)]
struct Failure {
    name: String,
    cause: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let begun = Instant::now();
    if let Some(images) = &args.images {
        image::archives_in(images)?;
    }
    install_missing(&TOOLS)?;
    let built = control_plane::build()?.built.len()
        + control_plane::build_node()?
        + control_plane::build_for_installation()?;
    let built_in = begun.elapsed();
    let suite = build_suite()?;
    let images = image::for_tests()?;
    if let Some(shipped) = &args.images {
        image::copy_archives(shipped, &images)?;
    }
    let report_file = std::env::temp_dir().join(format!("5spot-e2e-{}.json", std::process::id()));
    let status = Command::new(suite)
        .args(&args.arguments)
        .env(PARENT_VARIABLE, std::process::id().to_string())
        .env(REPORT_VARIABLE, &report_file)
        .envs(args.retry.then_some((RETRY_VARIABLE, "1")))
        .status()
        .context("failed to start the end-to-end tests")?;
    let report = read_report(&report_file);
    println!("control plane, node and Helm: {built} components built in {:.0} s", built_in.as_secs_f64());
    if let Some(report) = &report {
        print_report(report)?;
    }
    println!("total: {:.0} s", begun.elapsed().as_secs_f64());
    // Failures are printed last, because the output of the tests is long.
    if let Some(Report { failures, unstable, .. }) = report {
        let unstable = unstable.iter().map(|failure| ("failed, but passed alone", failure));
        for (result, Failure { name, cause }) in unstable.chain(failures.iter().map(|it| ("failed", it))) {
            println!("\n{result}: {name}\n{}", cause.trim_end());
        }
    }
    ensure!(status.success(), "the end-to-end tests failed: {status}");
    Ok(())
}

/// Builds the suite and returns its path. It is built as part of the workspace and beside a test, so that it
/// shares the artifacts of `cargo test --workspace`. Without a test, cargo leaves out the features that only
/// dev-dependencies request (`either`, `getrandom` and `zerocopy` have some), and compiles kube and every crate
/// of the workspace that uses it a second time.
fn build_suite() -> anyhow::Result<PathBuf> {
    cargo::build(SUITE, &["--workspace", "--bin", SUITE, "--bin", CLI_PROGRAM, "--test", SMALL_TEST])
}

/// The report, if the suite has written one.
fn read_report(path: &Path) -> Option<Report> {
    let text = std::fs::read(path).ok()?;
    // The report has been read; a leftover file could be mistaken for that of a later run.
    let _ = std::fs::remove_file(path);
    serde_json::from_slice(&text).ok()
}

fn print_report(report: &Report) -> anyhow::Result<()> {
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    println!(
        "tests: {} passed, {} failed in {:.0} s, {:.1} s of them until the control plane was up",
        report.passed, report.failed, report.seconds, report.start_seconds
    );
    println!(
        "peak memory: {} MB (the peaks of all processes together); disk: {} MB of the run, {} MB of the cache",
        megabytes(report.peak_memory_bytes),
        megabytes(report.disk_bytes),
        megabytes(cache::size_of(cache.root()).unwrap_or_default())
    );
    Ok(())
}

fn megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000
}
