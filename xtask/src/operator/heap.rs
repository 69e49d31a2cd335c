//! Checks with the real `jeprof` that the build with jemalloc writes a readable heap profile.

use crate::{cargo, e2e};
use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    let program =
        cargo::build(e2e::CONTROLLER_PROGRAM, &["--package", e2e::CONTROLLER, "--features", "jemalloc"])?;
    // Without a cluster, the controller reports an error, exits and writes its profile.
    let profiling =
        format!("prof:true,prof_final:true,lg_prof_sample:10,prof_prefix:{}/jeprof", directory.display());
    let status = Command::new(&program)
        .env_clear()
        .env("MALLOC_CONF", profiling)
        .env("HOME", directory)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", program.display()))?;
    ensure!(status.code() == Some(1), "without a cluster, the controller exited with {status}");
    let profile = profile_in(directory)?;
    let output = Command::new("jeprof").args(["--text", "--cum"]).args([&program, &profile]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.contains("five_spot_controller::program::start"),
        "jeprof does not list the controller's functions: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn profile_in(directory: &Path) -> anyhow::Result<PathBuf> {
    let mut files = std::fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_profile = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "heap");
    files.find(is_profile).context("the controller wrote no heap profile")
}
