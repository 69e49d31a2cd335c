//! The build with jemalloc, and the heap profile that it leaves: read by the real `jeprof`.

use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    let program = build()?;
    // Without a cluster it says so and ends, and leaves its profile.
    let profiling =
        format!("prof:true,prof_final:true,lg_prof_sample:10,prof_prefix:{}/jeprof", directory.display());
    let status = Command::new(&program)
        .env_clear()
        .env("MALLOC_CONF", profiling)
        .env("HOME", directory)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", program.display()))?;
    ensure!(status.code() == Some(1), "without a cluster it ended with {status}");
    let profile = profile_in(directory)?;
    let output = Command::new("jeprof").args(["--text", "--cum"]).args([&program, &profile]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.contains("five_spot_controller::program::start"),
        "jeprof does not find our functions: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Builds the controller with jemalloc, and says where it is.
fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", "five-spot-controller", "--features", "jemalloc"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("failed to run cargo")?;
    ensure!(output.status.success(), "it does not build with jemalloc: {}", output.status);
    let messages = String::from_utf8(output.stdout)?;
    let built = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = built.filter_map(|message| Some(message["executable"].as_str()?.into()));
    programs.next_back().context("cargo names no program")
}

fn profile_in(directory: &Path) -> anyhow::Result<PathBuf> {
    let mut files = std::fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_profile = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "heap");
    files.find(is_profile).context("no heap profile was left behind")
}
