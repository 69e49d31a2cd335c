//! The developers' own tool: `cargo xtask <task>`. Each task is a module of its own.

mod bench_leaders;
mod bench_operator;
mod campaign;
mod cargo;
mod conformance;
mod control_plane;
mod deny;
mod e2e;
mod faults;
mod generate;
mod operator;
mod output;
mod tools;

use clap::{Parser, Subcommand};

/// Tasks of 5-Spot's developers besides `cargo build` and `cargo test`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure failover, and what a standby costs, on a real API server.
    BenchLeaders(bench_leaders::Args),
    /// Measure what a fleet at rest costs on a real control plane: requests, latency, memory.
    BenchOperator(bench_operator::Args),
    /// Run the tests at full size: every zone, every cell, larger samples of faults and property cases.
    Campaign(campaign::Args),
    /// Ask a real server the questions by which the embedded Kubernetes API is kept honest.
    Conformance(conformance::Args),
    /// The real control plane for tests and for trying things out.
    ControlPlane(control_plane::Args),
    /// Check licenses, bans and sources of all dependencies against deny.toml; builds cargo-deny if it is missing.
    Deny,
    /// Build what is missing of the real control plane and run the end-to-end tests on it.
    E2e(e2e::Args),
    /// Play every scenario again and again, and let something else go wrong each time.
    Faults(faults::Args),
    /// Write every generated file: the CRDs under deploy/crds and the API reference page.
    Generate(generate::Args),
    /// Let promtool, Prometheus and jq read what the controller tells; installs them where it may.
    Operator,
}

fn main() -> anyhow::Result<()> {
    // The control plane's processes must end with this program: see the guard's own description.
    five_spot_testenv::guard::enter();
    match Args::parse().task {
        Task::BenchLeaders(args) => bench_leaders::run(&args),
        Task::BenchOperator(args) => bench_operator::run(&args),
        Task::Campaign(args) => campaign::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ControlPlane(args) => control_plane::run(&args),
        Task::Deny => deny::run(),
        Task::E2e(args) => e2e::run(&args),
        Task::Faults(args) => faults::run(&args),
        Task::Generate(args) => generate::run(&args),
        Task::Operator => operator::run(),
    }
}
