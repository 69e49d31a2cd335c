//! `cargo xtask deny`: checks the dependencies against `deny.toml` with a pinned cargo-deny. Known vulnerabilities are
//! checked only with `--advisories`, because their database comes from the network.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::cargo_tool;

/// The version of cargo-deny. A newer one may have more licenses or checks, so it is raised by hand.
const VERSION: &str = "0.20.2";

/// The checks that need no database from the network.
const OFFLINE_CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

/// Arguments of `cargo xtask deny`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check for known vulnerabilities as well; fetches the advisory database from GitHub.
    #[arg(long)]
    advisories: bool,
}

impl Args {
    fn checks(&self) -> Vec<&'static str> {
        let advisories = self.advisories.then_some("advisories");
        OFFLINE_CHECKS.into_iter().chain(advisories).collect()
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = cargo_tool::installed("cargo-deny", VERSION)?;
    let status = Command::new(program)
        .args(["--workspace", "--locked", "check", "--hide-inclusion-graph"])
        .args(args.checks())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .context("failed to run cargo-deny")?;
    ensure!(status.success(), "cargo-deny found problems: {status}");
    if !args.advisories {
        println!(
            "advisories were not checked: run `cargo xtask deny --advisories` where github.com can be reached"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisories_are_checked_only_on_request() {
        assert_eq!(Args { advisories: false }.checks(), OFFLINE_CHECKS);
        assert_eq!(Args { advisories: true }.checks(), ["licenses", "bans", "sources", "advisories"]);
    }
}
