//! The cargo that runs this program, for further builds and runs.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// A command of that cargo, without arguments.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds with these arguments and returns the path of the program with this name.
pub(crate) fn build(program: &str, arguments: &[&str]) -> anyhow::Result<PathBuf> {
    build_with(program, "build", arguments, &[])
}

/// The same with another command of cargo (`rustc`) and with environment variables.
pub(crate) fn build_with(
    program: &str,
    command: &str,
    arguments: &[&str],
    variables: &[(&str, String)],
) -> anyhow::Result<PathBuf> {
    let mut build = cargo()
        .args([command, "--message-format=json-render-diagnostics"])
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run cargo")?;
    let messages = build.stdout.take().context("cargo has no output")?;
    let mut executable = None;
    for line in BufReader::new(messages).lines() {
        let message: serde_json::Value = serde_json::from_str(&line?).unwrap_or_default();
        if message["target"]["name"] == program && message["executable"].is_string() {
            executable = message["executable"].as_str().map(PathBuf::from);
        }
    }
    ensure!(build.wait()?.success(), "failed to build {program}");
    executable.with_context(|| format!("cargo built {program} but did not report its path"))
}
