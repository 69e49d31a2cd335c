//! The developers' own tool: `cargo xtask <task>`. Each task is a module of its own.

mod bench_agent;
mod bench_diagnose;
mod bench_fleet;
mod bench_kill_switch;
mod bench_leaders;
mod bench_operator;
mod campaign;
mod cargo;
mod cargo_tool;
mod conformance;
mod control_plane;
mod dashboard;
mod deny;
mod e2e;
mod faults;
mod fuzz;
mod generate;
mod image;
mod operator;
mod optimised;
mod output;
mod prometheus_server;
mod tools;

use std::process::ExitCode;

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
    /// Measure the reclaim agent: matching, CPU, memory, and the time from a program's start to the Machine's deletion.
    BenchAgent(bench_agent::Args),
    /// Measure `5spot doctor` and `5spot why` on a real API server.
    BenchDiagnose(bench_diagnose::Args),
    /// Measure openings of many machines at once, and the growth of the controller with the number of objects.
    BenchFleet(bench_fleet::Args),
    /// Measure the time from a kill switch to the deletion of the Machine, with a healthy and with a hanging workload cluster.
    BenchKillSwitch(bench_kill_switch::Args),
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
    /// Draw the Grafana dashboard with the metrics of a sandbox run.
    Dashboard(dashboard::Args),
    /// Check licenses, bans and sources of all dependencies against deny.toml; builds cargo-deny if it is missing.
    Deny,
    /// Build what is missing of the real control plane and run the end-to-end tests on it.
    E2e(e2e::Args),
    /// Play every scenario again and again, and let something else go wrong each time.
    Faults(faults::Args),
    /// Pass random inputs to every parser of what others can write.
    Fuzz(fuzz::Args),
    /// Write every generated file: the CRDs under deploy/crds and the API reference page.
    Generate(generate::Args),
    /// Build the container images of the controller and the agent, with their SBOMs.
    Image(image::Args),
    /// Let promtool, Prometheus and jq read what the controller tells; installs them where it may.
    Operator,
}

fn main() -> ExitCode {
    // The control plane's processes must end with this program: see the guard's own description.
    five_spot_testenv::guard::enter();
    match run(Args::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::BenchAgent(args) => bench_agent::run(&args),
        Task::BenchDiagnose(args) => bench_diagnose::run(&args),
        Task::BenchFleet(args) => bench_fleet::run(&args),
        Task::BenchKillSwitch(args) => bench_kill_switch::run(&args),
        Task::BenchLeaders(args) => bench_leaders::run(&args),
        Task::BenchOperator(args) => bench_operator::run(&args),
        Task::Campaign(args) => campaign::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ControlPlane(args) => control_plane::run(&args),
        Task::Dashboard(args) => dashboard::run(&args),
        Task::Deny => deny::run(),
        Task::E2e(args) => e2e::run(&args),
        Task::Faults(args) => faults::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Generate(args) => generate::run(&args),
        Task::Image(args) => image::run(&args),
        Task::Operator => operator::run(),
    }
}
