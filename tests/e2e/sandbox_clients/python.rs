//! The official Python client, in its own virtual environment in the cache.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::cache::{self, Cache, CacheEnvironment};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use tokio::process::Command;

use super::server::Server;

/// The release for the tested version of Kubernetes.
const CLIENT_VERSION: &str = "36.0.3";

const CHECKS: &str = include_str!("checks.py");

pub(crate) fn tests() -> Vec<Test> {
    tests![the_python_client_works]
}

async fn the_python_client_works(context: Arc<TestContext>) -> TestResult {
    let python = tokio::task::spawn_blocking(environment).await??;
    for server in [Server::embedded(&context).await?, Server::real(&context).await?] {
        let output = Command::new(&python)
            .args(["-c", CHECKS])
            .arg(&server.kubeconfig)
            .arg(&server.namespace)
            .kill_on_drop(true)
            .output()
            .await?;
        let text = text_of(&output);
        ensure!(output.status.success(), "with the {} server:\n{text}", server.name);
        // A script that ends early must not pass.
        ensure!(text.contains("create, read, update, delete, pages, watch, conflict: well"), "{text}");
    }
    Ok(())
}

/// A Python environment with the client, created once.
fn environment() -> anyhow::Result<PathBuf> {
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    let _lock = cache.lock(|| {})?;
    let directory = cache.component("python-kubernetes", CLIENT_VERSION);
    if !cache::is_complete(&directory) {
        cache::clear(&directory)?;
        let partial = cache::partial(&directory);
        make_environment(&partial)?;
        run(
            &python_in(&partial),
            &["-m", "pip", "install", "--quiet", &format!("kubernetes=={CLIENT_VERSION}")],
        )?;
        cache::install(&directory)?;
    }
    Ok(python_in(&directory))
}

fn make_environment(directory: &Path) -> anyhow::Result<()> {
    let directory = directory.to_str().context("the path of the cache is not UTF-8")?;
    run(Path::new("python3"), &["-m", "venv", directory]).context(
        "the Python client's tests need python3 with its venv module; on Debian and Ubuntu: \
         apt-get install python3 python3-venv",
    )
}

fn python_in(directory: &Path) -> PathBuf {
    directory.join("bin").join("python")
}

fn run(program: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let output = std::process::Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("failed to start {}", program.display()))?;
    if !output.status.success() {
        bail!("{} {} failed:\n{}", program.display(), arguments.join(" "), text_of(&output));
    }
    Ok(())
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
