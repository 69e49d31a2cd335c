//! The conformance of the in-memory API server: this real server gets the same requests, which are every case
//! of `tests/conformance` and random walks of operations.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_conformance::{Case, Differences, Recording, Runner, Suite, compare, walk};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use jiff::Timestamp;

/// The random walks and the operations in each, in addition to the cases.
const WALKS: u64 = 25;
const OPERATIONS: usize = 100;

/// The number of concurrent cases: the controllers of the cluster prepare a namespace for each.
const AT_ONCE: usize = 12;

pub(crate) fn tests() -> Vec<Test> {
    tests![a_real_server_gives_the_recorded_responses, both_servers_give_equal_responses_to_random_walks]
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance")
}

/// A prefix of the names of namespaces. A test that is run again does not find what is left of its first run.
fn prefix(name: &str) -> String {
    format!("{name}-{}", Timestamp::now().as_millisecond() % 1_000_000)
}

async fn a_real_server_gives_the_recorded_responses(context: Arc<TestContext>) -> TestResult {
    let suite = Suite::load(&directory())?;
    let recording = Recording::load(&directory().join("recorded"))?;
    let runner =
        Runner::new(context.management().admin(), &prefix("conformance"), Duration::from_millis(100));
    runner.set_up(&suite).await?;
    let mut problems = Vec::new();
    for (case, answers) in runner.run_all(&suite.cases, AT_ONCE).await {
        let id = case.id();
        let expected = recording.answers.get(&id).cloned().unwrap_or_default();
        let mismatches = compare(&expected, &answers?.to_value());
        problems.extend(mismatches.into_iter().map(|mismatch| format!("{id}\n    {mismatch}")));
    }
    runner.tear_down(suite.cases.len()).await?;
    context.note(format!("{} cases sent", suite.cases.len()));
    ensure!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    Ok(())
}

async fn both_servers_give_equal_responses_to_random_walks(context: Arc<TestContext>) -> TestResult {
    let suite = Suite::load(&directory())?;
    let differences = Differences::load(&directory().join("differences.yaml"))?;
    let walks: Vec<Case> = (1..=WALKS).map(|seed| walk(seed, OPERATIONS)).collect();
    let prefix = prefix("walk");
    let real = Runner::new(context.management().admin(), &prefix, Duration::from_millis(100));
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let embedded = Runner::new(api.client("default"), &prefix, Duration::from_millis(1));
    real.set_up(&suite).await?;
    embedded.set_up(&suite).await?;
    let (expected, found) = (real.run_all(&walks, AT_ONCE).await, embedded.run_all(&walks, AT_ONCE).await);
    let mut problems = Vec::new();
    for ((case, expected), (_, found)) in expected.into_iter().zip(found) {
        let id = case.id();
        let mismatches = compare(&expected?.to_value(), &found?.to_value());
        let unexplained =
            mismatches.into_iter().filter(|mismatch| differences.explain(&id, mismatch).is_none());
        problems.extend(unexplained.map(|mismatch| format!("{id}\n    {mismatch}")));
    }
    real.tear_down(walks.len()).await?;
    context.note(format!("{} operations sent to both servers", walks.len() * OPERATIONS));
    ensure!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    Ok(())
}
