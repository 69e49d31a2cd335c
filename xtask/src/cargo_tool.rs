//! Programs from crates.io, built once in a pinned version into the cache directory.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cache::{self, CacheEnvironment};

use crate::cargo::cargo;

/// Builds this version of a program unless it is in the cache, and returns its path.
///
/// `cargo install` moves the program into place when it is complete, so an interrupted build leaves no
/// program behind.
pub(crate) fn installed(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let tools = cache::directory(&CacheEnvironment::from_process())?.join("tools");
    let root = tools.join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if !program.is_file() {
        eprintln!("building {name} {version} into {}", root.display());
        let status = cargo()
            // A build without optimisations takes a third of the time, and a run still takes only a few
            // seconds.
            .args(["install", "--quiet", "--locked", "--debug", "--version", version, "--root"])
            .arg(&root)
            .arg(name)
            .current_dir(std::env::temp_dir())
            .status()
            .context("failed to run cargo")?;
        ensure!(status.success(), "failed to install {name} {version}: {status}");
    }
    Ok(program)
}
