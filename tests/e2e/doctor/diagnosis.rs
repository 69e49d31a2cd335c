//! A lent machine with the real controller, and `5spot doctor` for it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_scenarios::Subject;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::TestResult;
use five_spot_testenv::test_clusters::TestContext;
use serde_json::{Value, json};

use super::pages::{Page, Words};
use crate::scenarios::{RealControlPlane, View};
use crate::shell::Shell;

/// The time limit: error backoffs, rechecks of Cluster API and the minute after a grace period, on a busy
/// machine.
const WITHIN: Duration = Duration::from_mins(3);

/// The doctor for the objects of one context. The shared clusters have other faults.
pub(super) struct Diagnosis {
    pub(super) context: Arc<TestContext>,
    management: Shell,
    workload: Shell,
}

/// Runs a test with its own controller.
pub(super) async fn with_controller(
    context: Arc<TestContext>,
    test: impl AsyncFnOnce(&RealControlPlane, &Diagnosis) -> TestResult,
) -> TestResult {
    let env = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
    let control_plane = context.clusters().control_plane();
    let (management, workload) =
        (Shell::new(control_plane, Side::Management)?, Shell::new(control_plane, Side::Workload)?);
    let diagnosis = Diagnosis { context: Arc::clone(&context), management, workload };
    test(&env, &diagnosis).await.with_context(|| env.failure_report())
}

/// Ends the loan of a machine.
pub(super) async fn end_loan(subject: &Subject<'_>) -> TestResult {
    subject.set(json!({"schedule": {"enabled": false}})).await
}

impl Diagnosis {
    /// The findings above `info` about the objects of this context.
    async fn findings(&self) -> anyhow::Result<Vec<Value>> {
        let command = format!("5spot doctor -n {} -o json", self.context.namespace());
        let output = self.management.run(&command).await?;
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let findings = answer["findings"].as_array().cloned().unwrap_or_default();
        let has_errors = findings.iter().any(|finding| finding["severity"] == "error");
        ensure!(output.status.code() == Some(i32::from(has_errors)), "{:?}: {answer:#}", output.status);
        let is_ours = |finding: &Value| {
            finding["object"]["namespace"] == self.context.namespace() && finding["severity"] != "info"
        };
        Ok(findings.into_iter().filter(is_ours).collect())
    }

    /// Waits until the doctor reports the expected findings.
    async fn until(&self, what: &str, is_it: impl Fn(&[Value]) -> bool) -> anyhow::Result<Vec<Value>> {
        let begun = tokio::time::Instant::now();
        loop {
            let found = self.findings().await?;
            if is_it(&found) {
                return Ok(found);
            }
            ensure!(begun.elapsed() < WITHIN, "expected {what}, found {found:#?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits until the doctor reports exactly this finding, and returns it.
    pub(super) async fn finds(&self, id: &str) -> anyhow::Result<Value> {
        let found = self.until(id, |found| found.len() == 1 && found[0]["id"] == id).await?;
        self.context.note(format!("{:#}", found[0]));
        found.into_iter().next().context("a finding")
    }

    /// Waits until the doctor reports nothing.
    pub(super) async fn is_well(&self) -> TestResult {
        self.until("nothing", <[Value]>::is_empty).await.map(drop)
    }

    /// Runs the printed command that starts with this text, in the cluster of its note.
    pub(super) async fn fix(&self, finding: &Value, begins: &str) -> anyhow::Result<String> {
        let fixes = finding["fix"].as_array().into_iter().flatten();
        let command = |fix: &Value| fix["command"].as_str().unwrap_or_default().to_owned();
        let fix = fixes.clone().find(|fix| command(fix).starts_with(begins));
        let fix = fix.with_context(|| format!("no fix {begins}: {finding:#}"))?;
        let is_elsewhere =
            fix["note"].as_str().is_some_and(|note| note.starts_with("in the workload cluster"));
        let shell = if is_elsewhere { &self.workload } else { &self.management };
        shell.ok(&command(fix)).await
    }

    /// Runs the commands under *Evidence* of the page of a finding while the fault exists: each has to
    /// succeed in one of the clusters.
    pub(super) async fn evidence(&self, finding: &Value, words: &Words<'_>) -> TestResult {
        let page = Page::read(finding["id"].as_str().unwrap_or_default())?;
        for command in page.evidence() {
            let command = words.fill(command);
            if self.management.ok(&command).await.is_err() {
                self.workload.ok(&command).await?;
            }
        }
        Ok(())
    }

    /// The values for the placeholders of pages.
    pub(super) fn words(&self) -> Words<'_> {
        Words { namespace: self.context.namespace(), cluster: "edge", ..Words::default() }
    }
}
