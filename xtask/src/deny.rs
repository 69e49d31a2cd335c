//! `cargo xtask deny`: checks the dependencies against `deny.toml` with a pinned cargo-deny.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::cargo_tool;

/// The version of cargo-deny. A newer one may have more licenses or checks, so it is raised by hand.
const VERSION: &str = "0.20.2";

/// The checks that need no database from the network.
const OFFLINE_CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub(crate) fn run() -> anyhow::Result<()> {
    let program = cargo_tool::installed("cargo-deny", VERSION)?;
    let status = Command::new(program)
        .args(["--workspace", "--locked", "check", "--hide-inclusion-graph"])
        .args(OFFLINE_CHECKS)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .context("failed to run cargo-deny")?;
    ensure!(status.success(), "cargo-deny found problems: {status}");
    Ok(())
}
