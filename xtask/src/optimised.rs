//! The programs for measurements and long campaigns. Measurements use the programs as they ship in the
//! images.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::PARENT_VARIABLE;

use crate::{cargo, control_plane, e2e, image};

/// Builds a program of the workspace for measurements and campaigns: optimised, but without the slow link
/// step of the shipped programs.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    // The whole workspace, so that everything is compiled once for all of these programs.
    cargo::build(name, &["--profile", "campaign", "--workspace", "--bins"])
}

/// Builds the control plane and the programs, and runs a benchmark of the suite. `arguments` receives a
/// function that returns the path of a program in the suite's directory.
pub(crate) fn benchmark(
    word: &str,
    arguments: impl FnOnce(&dyn Fn(&str) -> String) -> Vec<String>,
) -> anyhow::Result<()> {
    control_plane::build()?;
    let suite = suite()?;
    let beside = |program: &str| suite.with_file_name(program).display().to_string();
    let status = Command::new(&suite)
        .arg(word)
        .args(arguments(&beside))
        .env(PARENT_VARIABLE, std::process::id().to_string())
        .status()
        .context("failed to start the benchmark")?;
    ensure!(status.success(), "the benchmark failed: {status}");
    Ok(())
}

/// Builds the suite and the command-line tools, and copies the shipped programs into their directory, where
/// the suite expects them.
fn suite() -> anyhow::Result<PathBuf> {
    let suite = program(e2e::SUITE)?;
    for shipped in image::SHIPPED {
        let beside = suite.with_file_name(shipped.program);
        // The file is a hard link to cargo's own copy, which must not change.
        fs::remove_file(&beside).with_context(|| format!("failed to replace {}", beside.display()))?;
        fs::copy(image::shipped_program(&shipped)?, &beside)
            .with_context(|| format!("failed to write {}", beside.display()))?;
    }
    Ok(suite)
}
