//! `cargo xtask control-plane`: the real control plane by hand. The work is done by `five-spot-testenv`; this is its
//! command line.

use anyhow::Context as _;
use clap::Subcommand;
use five_spot_testenv::binaries;
use five_spot_testenv::build::{self, BuildReport};
use five_spot_testenv::cache::{Cache, CacheEnvironment};

/// Flags of `control-plane`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build etcd, Kubernetes, kwok and Cluster API into the cache, unless they are there.
    Build,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match args.command {
        Command::Build => {
            let report = build()?;
            let cache = Cache::locate(&CacheEnvironment::from_process())?;
            if report.built.is_empty() {
                println!("nothing to do: everything is in {}", cache.root().display());
            } else {
                println!("built {} in {}", report.built.len(), cache.root().display());
            }
            Ok(())
        }
    }
}

/// Builds what is missing, with progress on standard error.
pub(crate) fn build() -> anyhow::Result<BuildReport> {
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    build::build(&cache, binaries::envtest_directory().as_deref(), |line| {
        eprintln!("{line}")
    })
    .context("failed to build the control plane")
}
