//! The developers' own tool: `cargo xtask <task>`. Each task is a module of its own.

mod generate;

use clap::{Parser, Subcommand};

/// What 5-Spot's developers do besides `cargo build` and `cargo test`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write every generated file: the CRDs under deploy/crds and the API reference page.
    Generate(generate::Args),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Generate(args) => generate::run(&args),
    }
}
