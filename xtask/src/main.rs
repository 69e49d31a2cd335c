//! Development tasks: `cargo xtask <task>`. Each task is a module.

mod bench_agent;
mod bench_diagnose;
mod bench_fleet;
mod bench_kill_switch;
mod bench_leaders;
mod bench_neighbours;
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
#[cfg(test)]
mod style;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of 5-Spot, besides `cargo build` and `cargo test`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the reclaim agent: matching, CPU, memory, and the time from the start of a program to the
    /// deletion of the Machine.
    BenchAgent(bench_agent::Args),
    /// Measure `5spot doctor` and `5spot why` on a real API server.
    BenchDiagnose(bench_diagnose::Args),
    /// Measure many windows that open at once, and how the controller's costs grow with the number of
    /// objects.
    BenchFleet(bench_fleet::Args),
    /// Measure the time from a kill switch to the deletion of the Machine, with a healthy and with an
    /// unresponsive workload cluster.
    BenchKillSwitch(bench_kill_switch::Args),
    /// Measure failover and the cost of a standby on a real API server.
    BenchLeaders(bench_leaders::Args),
    /// Measure the latencies of one tenant without and with a hostile tenant beside it.
    BenchNeighbours(bench_neighbours::Args),
    /// Measure the cost of an idle fleet on a real control plane: requests, latency, memory.
    BenchOperator(bench_operator::Args),
    /// Run the tests at full size: every time zone, every case, larger samples of faults and property cases.
    Campaign(campaign::Args),
    /// Compare the in-memory API server with a real kube-apiserver.
    Conformance(conformance::Args),
    /// Build, start, inspect and stop the real control plane for tests.
    ControlPlane(control_plane::Args),
    /// Draw the Grafana dashboard with the metrics of a sandbox run.
    Dashboard(dashboard::Args),
    /// Check licenses, bans and sources of all dependencies against deny.toml; install cargo-deny if it is
    /// missing.
    Deny(deny::Args),
    /// Build the missing parts of the real control plane and run the end-to-end tests on it.
    E2e(e2e::Args),
    /// Run every scenario many times, each time with a different fault.
    Faults(faults::Args),
    /// Run every parser of untrusted input with random inputs.
    Fuzz(fuzz::Args),
    /// Write all generated files: the CRDs, the alert rules, the shape of the CRD and the API reference.
    Generate(generate::Args),
    /// Build the container images of the controller and the agent, with their SBOMs.
    Image(image::Args),
    /// Check the controller's metrics, alerts, logs and heap profile with promtool, Prometheus, jq and
    /// jeprof; install them if possible.
    Operator,
}

fn main() -> ExitCode {
    // The processes of the control plane must end with this program: see the documentation of the guard.
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
        Task::BenchNeighbours(args) => bench_neighbours::run(&args),
        Task::BenchOperator(args) => bench_operator::run(&args),
        Task::Campaign(args) => campaign::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ControlPlane(args) => control_plane::run(&args),
        Task::Dashboard(args) => dashboard::run(&args),
        Task::Deny(args) => deny::run(&args),
        Task::E2e(args) => e2e::run(&args),
        Task::Faults(args) => faults::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Generate(args) => generate::run(&args),
        Task::Image(args) => image::run(&args),
        Task::Operator => operator::run(),
    }
}
