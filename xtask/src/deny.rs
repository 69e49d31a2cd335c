//! `cargo xtask deny`: checks the dependencies against `deny.toml` with a pinned cargo-deny, which is built once into the
//! cache directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cache::{self, CacheEnvironment};

use crate::cargo::cargo;

/// The version of cargo-deny. A newer one may know more licenses or checks: raise it on purpose.
const VERSION: &str = "0.20.2";

/// The checks that need no database from the network.
const OFFLINE_CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub(crate) fn run() -> anyhow::Result<()> {
    let tools = cache::directory(&CacheEnvironment::from_process())?.join("tools");
    let program = installed(&tools)?;
    let status = Command::new(program)
        .args(["--workspace", "--locked", "check", "--hide-inclusion-graph"])
        .args(OFFLINE_CHECKS)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .context("failed to run cargo-deny")?;
    ensure!(status.success(), "cargo-deny found problems: {status}");
    Ok(())
}

/// Builds cargo-deny unless this version is in the cache already, and returns its path.
///
/// `cargo install` moves the program into place when it is complete, so an interrupted build leaves none behind.
fn installed(tools: &Path) -> anyhow::Result<PathBuf> {
    let root = tools.join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin").join("cargo-deny");
    if !program.is_file() {
        eprintln!("building cargo-deny {VERSION} into {}", root.display());
        let status = cargo()
            // Without optimisations it builds in a third of the time, and a check still takes a few seconds.
            .args(["install", "--quiet", "--locked", "--debug", "--version", VERSION, "--root"])
            .arg(&root)
            .arg("cargo-deny")
            .current_dir(std::env::temp_dir())
            .status()
            .context("failed to run cargo")?;
        ensure!(status.success(), "failed to install cargo-deny {VERSION}: {status}");
    }
    Ok(program)
}
