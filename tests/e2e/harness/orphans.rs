//! A killed test program leaves nothing behind: this suite kills a second instance of itself and checks.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::guard::{self, ProcessIdentity};
use five_spot_testenv::harness::{PARENT_VARIABLE, REPORT_VARIABLE, Test, TestResult};
use five_spot_testenv::run_directory;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;

pub(crate) fn tests() -> Vec<Test> {
    tests![killed_program_leaves_no_process_and_no_file]
}

/// A test that runs long enough to be killed in the middle.
const VICTIM: &str = "cluster_api::draining::drain_passes_are_twenty_seconds_apart";
const UP_WITHIN: Duration = Duration::from_secs(90);
const GONE_WITHIN: Duration = Duration::from_secs(10);

async fn killed_program_leaves_no_process_and_no_file(_scene: Arc<TestContext>) -> TestResult {
    // The second program is guarded too: if this program is killed during the test, the second one ends.
    let mut command = guard::command("/proc/self/exe")?;
    command
        .args(["--exact", VICTIM])
        .env_remove(PARENT_VARIABLE)
        .env_remove(REPORT_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut program = guard::spawn(command)?;
    let directory = run_directory::base().join(format!("test-{}", program.id()));
    let started = tokio::time::timeout(UP_WITHIN, all_processes(&directory, &mut program)).await;
    // The second program must not outlive this test.
    program.kill()?;
    program.wait()?;
    let processes = started.context("the second control plane did not start in time")??;
    tokio::task::spawn_blocking(move || {
        for (name, process) in processes {
            ensure!(process.wait(Some(GONE_WITHIN)), "{name}, process {}, lives on", process.pid);
        }
        Ok(())
    })
    .await??;
    let gone = tokio::time::timeout(GONE_WITHIN, until_removed(&directory)).await;
    ensure!(gone.is_ok(), "{} is still there", directory.display());
    Ok(())
}

/// Waits until every component has been recorded. There are no events for another program's files, so they are
/// polled.
async fn all_processes(
    directory: &Path,
    program: &mut Child,
) -> anyhow::Result<Vec<(String, ProcessIdentity)>> {
    let mut interval = tokio::time::interval(Duration::from_millis(100));
    loop {
        interval.tick().await;
        let recorded = run_directory::recorded(directory);
        if recorded.len() == Component::ALL.len() {
            return Ok(recorded);
        }
        if let Some(status) = program.try_wait()? {
            bail!("the second program ended by itself: {status}");
        }
    }
}

async fn until_removed(directory: &Path) {
    let mut interval = tokio::time::interval(Duration::from_millis(50));
    while directory.exists() {
        interval.tick().await;
    }
}
