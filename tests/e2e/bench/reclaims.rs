//! `cargo xtask bench-agent`: the time from the start of the owner's program to the deletion of the Machine, with the real agent,
//! the real controller and the real control plane. Nodes and pods are kwok's.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::{ReclaimStage, ReclaimStages};
use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::measure::{is_machine_delete, logged};
use super::report::Latency;
use crate::agent::{AgentProcess, MACHINE_ID, install};
use crate::scenarios::{RealControlPlane, View};

/// The argument that selects this benchmark.
pub(super) const WORD: &str = "bench-agent";

/// The name of the owner's program.
const PROGRAM: &str = "fs-bench-java";

/// The pods on the node when the owner returns.
const PODS: usize = 30;

/// The polling interval for logs and audit logs. The times in them do not depend on when they are read.
const READ_EVERY: Duration = Duration::from_millis(20);

/// Long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(3);

/// Measures this many reclaims, and prints the figures.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [runs] = arguments else { anyhow::bail!("to be started by `cargo xtask bench-agent`") };
    let clusters = TestClusters::start().await?;
    let context = Arc::new(clusters.test_context("bench").await?);
    let real = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
    let measured = measure(&context, &real, runs.parse()?).await.with_context(|| real.failure_report());
    drop(real);
    clusters.stop().await?;
    measured?.print();
    Ok(())
}

/// The times of all reclaims.
#[derive(Default)]
struct Times {
    exec_to_delete: Vec<Duration>,
    stages: Vec<ReclaimStages>,
}

impl Times {
    fn print(self) {
        println!("exec to Machine DELETE, {PODS} pods: {}", Latency::of(self.exec_to_delete));
        for stage in ReclaimStage::ALL {
            let times: Vec<Duration> = self
                .stages
                .iter()
                .filter_map(|stages| Duration::try_from(stages.duration(stage)?).ok())
                .collect();
            println!("request to {}: {}", stage.as_str(), Latency::of(times));
        }
    }
}

async fn measure(context: &TestContext, clusters: &dyn Environment, runs: usize) -> anyhow::Result<Times> {
    install(context.workload()).await?;
    let program = context.directory().join(PROGRAM);
    crate::shell::copy_program("/bin/sleep", &program)?;
    let subject = Subject::lent(clusters, json!({"killIfCommands": [PROGRAM]})).await?;
    let mut times = Times::default();
    for run in 1..=runs {
        let machine = subject.machine_uid().await?;
        reclaim_once(context, clusters, &subject, &program, &mut times)
            .await
            .with_context(|| format!("run {run}"))?;
        eprintln!("run {run}: {:?}", times.exec_to_delete.last());
        subject.set(json!({"schedule": {"enabled": true}})).await?;
        subject.until_other_machine(&machine).await?;
    }
    Ok(times)
}

async fn reclaim_once(
    context: &TestContext,
    clusters: &dyn Environment,
    subject: &Subject<'_>,
    program: &Path,
    times: &mut Times,
) -> anyhow::Result<()> {
    let node = subject.node().await?;
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let identified = json!({"status": {"nodeInfo": {"machineID": MACHINE_ID}}});
    nodes.patch_status(&node, &PatchParams::default(), &Patch::Merge(identified)).await?;
    clusters.pods_on(&node, PODS, 0).await?;
    let agent = AgentProcess::start(context, &node).await?;
    until(async || Ok(agent.log().contains("configmap applied").then_some(()))).await.context(agent.log())?;
    let log = context.management().audit_log();
    let place = log.end()?;

    let began = Timestamp::now();
    let _program = OwnersProgram::start(program)?;
    let writes = AuditQuery::all().writes();
    let delete = logged(&log, place, &writes, |records| {
        records.iter().find(|record| is_machine_delete(record, subject.name())).map(|record| record.received)
    });
    let deleted = delete.await.with_context(|| format!("no Machine was deleted\n{}", agent.log()))?;
    times.exec_to_delete.push(Duration::try_from(deleted.duration_since(began)).unwrap_or_default());

    let object = subject.until_phase("Disabled").await?;
    let gone = |object: &Value| !object["status"]["reclaims"][0]["stages"]["nodeGoneAt"].is_null();
    let object = if gone(&object) { object } else { subject.until("to have lost its Node", gone).await? };
    times.stages.push(serde_json::from_value(object["status"]["reclaims"][0]["stages"].clone())?);
    let pods: Api<Pod> = Api::namespaced(context.workload().admin(), context.namespace());
    let left = pods.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await?;
    ensure!(left.items.is_empty(), "{} pods are left", left.items.len());
    Ok(())
}

/// Polls until there is a result.
async fn until<T>(asked: impl AsyncFn() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let answered = async {
        loop {
            if let Some(answer) = asked().await? {
                return anyhow::Ok(answer);
            }
            tokio::time::sleep(READ_EVERY).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, answered).await.context("no answer")?
}

/// A program of the owner. It ends with this.
struct OwnersProgram(Child);

impl OwnersProgram {
    fn start(program: &Path) -> anyhow::Result<Self> {
        Ok(Self(Command::new(program).arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for OwnersProgram {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
