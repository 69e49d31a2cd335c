//! A killed test program leaves nothing behind: this suite kills a second instance of itself and checks.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::guard::{self, ProcessIdentity};
use five_spot_testenv::harness::{PARENT_VARIABLE, REPORT_VARIABLE, Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{link, node, run_directory, tests};

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = tests![killed_program_leaves_no_process_and_no_file];
    if !node::is_left_out() {
        let with_node = tests![killed_program_leaves_nothing_of_an_isolated_node];
        tests.extend(with_node.into_iter().map(|test| test.within(Duration::from_mins(6))));
    }
    tests
}

/// A test that runs long enough to be killed in the middle.
const VICTIM: &str = "cluster_api::draining::drain_passes_are_twenty_seconds_apart";
/// A test with isolated nodes.
const VICTIM_WITH_NODE: &str = "node::isolated::agents_that_poll_see_the_programs_of_their_own_node";
const UP_WITHIN: Duration = Duration::from_secs(90);
const NODE_UP_WITHIN: Duration = Duration::from_mins(4);
const GONE_WITHIN: Duration = Duration::from_secs(10);

async fn killed_program_leaves_no_process_and_no_file(_scene: Arc<TestContext>) -> TestResult {
    let (mut program, directory) = second_program(VICTIM)?;
    let started = tokio::time::timeout(UP_WITHIN, all_processes(&directory, &mut program)).await;
    // The second program must not outlive this test.
    program.kill()?;
    program.wait()?;
    let processes = started.context("the second control plane did not start in time")??;
    until_ended(processes).await?;
    let gone = tokio::time::timeout(GONE_WITHIN, until_removed(&directory)).await;
    ensure!(gone.is_ok(), "{} is still there", directory.display());
    Ok(())
}

async fn killed_program_leaves_nothing_of_an_isolated_node(_: Arc<TestContext>) -> TestResult {
    let (mut program, directory) = second_program(VICTIM_WITH_NODE)?;
    let started = tokio::time::timeout(NODE_UP_WITHIN, kubelet(&directory, &mut program)).await;
    let records = Records::read(&directory);
    program.kill()?;
    program.wait()?;
    let kubelet = started.context("the node did not start in time")??;
    let Records { links, cgroups } = records?;
    ensure!(!links.is_empty() && !cgroups.is_empty(), "nothing recorded: {links:?}, {cgroups:?}");
    until_ended(vec![("the kubelet".into(), kubelet)]).await?;
    // The janitor removes it last.
    let gone = tokio::time::timeout(GONE_WITHIN, until_removed(&directory)).await;
    ensure!(gone.is_ok(), "{} is still there", directory.display());
    for name in links {
        ensure!(!link::exists(&name), "the interface {name} is still there");
    }
    for cgroup in cgroups {
        ensure!(!cgroup.exists(), "the cgroup {} is still there", cgroup.display());
    }
    Ok(())
}

/// Starts another instance of this program with one test. It is guarded too: if this program is killed during the test, the
/// second one ends.
fn second_program(test: &str) -> anyhow::Result<(Child, PathBuf)> {
    let mut command = guard::command("/proc/self/exe")?;
    command
        .args(["--exact", test])
        .env_remove(PARENT_VARIABLE)
        .env_remove(REPORT_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let program = guard::spawn(command)?;
    let directory = run_directory::base().join(format!("test-{}", program.id()));
    Ok((program, directory))
}

async fn until_ended(processes: Vec<(String, ProcessIdentity)>) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || {
        for (name, process) in processes {
            ensure!(process.wait(Some(GONE_WITHIN)), "{name}, process {}, lives on", process.pid);
        }
        Ok(())
    })
    .await?
}

/// The records of a program outside of its directory.
struct Records {
    links: Vec<String>,
    cgroups: Vec<PathBuf>,
}

impl Records {
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let mut records = Self { links: Vec::new(), cgroups: Vec::new() };
        for entry in std::fs::read_dir(directory.join("links"))? {
            records.links.push(entry?.file_name().to_string_lossy().into_owned());
        }
        for entry in std::fs::read_dir(directory.join("cgroups"))? {
            let directories: Vec<PathBuf> = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
            records.cgroups.extend(directories);
        }
        Ok(records)
    }
}

/// Waits until the kubelet of an isolated node runs: the child of the process that was recorded, in a pid namespace of its own.
async fn kubelet(directory: &Path, program: &mut Child) -> anyhow::Result<ProcessIdentity> {
    let mut interval = tokio::time::interval(Duration::from_millis(100));
    loop {
        interval.tick().await;
        let recorded = run_directory::recorded(directory);
        let kubelet = recorded
            .into_iter()
            .find(|(name, _)| name.starts_with("isolated-node-") && name.ends_with("-kubelet"));
        if let Some((_, ProcessIdentity { pid, .. })) = kubelet {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let child = children.unwrap_or_default().trim().parse().ok();
            if let Some(child) = child.and_then(ProcessIdentity::of) {
                return Ok(child);
            }
        }
        if let Some(status) = program.try_wait()? {
            bail!("the second program ended by itself: {status}");
        }
    }
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
