//! Runs the program like a user.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::test_clusters::TestContext;
use serde_json::Value;
use tokio::process::Command;

use crate::shell::{self, Shell};

fn kubeconfig(context: &TestContext, side: Side) -> PathBuf {
    let cluster = match side {
        Side::Management => context.management(),
        Side::Workload => context.workload(),
    };
    cluster.kubeconfig().to_owned()
}

/// Runs `5spot` with the administrator's kubeconfig of a cluster in the environment.
pub(super) async fn five_spot(
    context: &TestContext,
    side: Side,
    words: &[&str],
) -> anyhow::Result<std::process::Output> {
    let program = shell::five_spot()?;
    ensure!(program.exists(), "{} is not built: run `cargo xtask e2e`", program.display());
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .env("KUBECONFIG", kubeconfig(context, side))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    Ok(command.output().await?)
}

/// The output of `5spot why`, which exits with 0 for every result.
pub(super) async fn why(context: &TestContext, side: Side, words: &[&str]) -> anyhow::Result<Value> {
    let words: Vec<&str> = ["why"].iter().chain(words).chain(&["-o", "json"]).copied().collect();
    let output = five_spot(context, side, &words).await?;
    context.note(String::from_utf8_lossy(&output.stdout));
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the answer is JSON")
}

/// Applies the first fix of the first cause, as printed.
pub(super) async fn apply_fix(context: &TestContext, side: Side, answer: &Value) -> anyhow::Result<()> {
    let command = answer["causes"][0]["fix"][0]["command"].as_str().context("a fix")?;
    let shell = Shell::new(context.clusters().control_plane(), side)?.in_directory(context.directory());
    shell.ok(command).await?;
    Ok(())
}

/// The object of the first cause, as text.
pub(super) fn first_cause(answer: &Value) -> String {
    let object = &answer["causes"][0]["object"];
    format!("{} {}", object["kind"].as_str().unwrap_or_default(), object["name"].as_str().unwrap_or_default())
}
