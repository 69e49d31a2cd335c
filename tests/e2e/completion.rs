//! The completion scripts, read by the shells that they are for. bash is tested with the program itself, in `crates/cli`.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;

use crate::shell::five_spot;

pub(crate) fn tests() -> Vec<Test> {
    tests![zsh_completes_commands, fish_completes_commands]
}

/// Loads the script, and prints what it passes to the functions of the completion system.
const ZSH: &str = r#"
compdef() { :; }
_files() { print -r -- files; }
_describe() { print -rl -- "${(@P)4}"; }
source =(5spot completion zsh)
words=(5spot "$@")
CURRENT=$#words
_5spot
"#;

async fn zsh_completes_commands(context: Arc<TestContext>) -> TestResult {
    for (words, expected) in
        [(&["expl"][..], "explain"), (&["doctor", "--fail"], "--fail-on"), (&["preview", "-f", ""], "files")]
    {
        let arguments: Vec<&str> = ["-f", "-c", ZSH, "zsh"].iter().chain(words).copied().collect();
        let found = printed("zsh", run("zsh", &arguments, context.directory()).await?)?;
        ensure!(found.lines().any(|candidate| candidate.starts_with(expected)), "{words:?}: {found}");
    }
    Ok(())
}

async fn fish_completes_commands(context: Arc<TestContext>) -> TestResult {
    for (line, expected) in [("5spot expl", "explain"), ("5spot doctor --fail", "--fail-on")] {
        let script = format!("5spot completion fish | source; complete -C '{line}'");
        let found = printed("fish", run("fish", &["-c", &script], context.directory()).await?)?;
        ensure!(found.lines().any(|candidate| candidate.starts_with(expected)), "{line}: {found}");
    }
    Ok(())
}

/// Runs a shell that finds `5spot`, and no cluster.
async fn run(shell: &str, arguments: &[&str], home: &Path) -> anyhow::Result<Output> {
    let program = five_spot()?;
    let built = program.parent().context("a directory")?;
    let output = tokio::process::Command::new(shell)
        .args(arguments)
        .env("PATH", format!("{}:/usr/bin:/bin", built.display()))
        .env("HOME", home)
        .env("KUBECONFIG", home.join("no-kubeconfig"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    output.with_context(|| format!("failed to start {shell}"))
}

/// The output of a shell that has to succeed.
fn printed(shell: &str, output: Output) -> anyhow::Result<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shell}: {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
