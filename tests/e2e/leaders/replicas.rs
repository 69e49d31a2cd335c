//! The replicas of one controller.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::proxy::{Line, Proxy};
use five_spot_testenv::test_clusters::TestContext;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::Value;

use super::is_leader;
use crate::startup::Program;

/// The duration of the Lease in these tests: short, so that the tests are short.
pub(super) const LEASE_SECONDS: i64 = 6;

/// The time limit: long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// The polling interval for metrics.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// One replica: a pod's name and token, a proxy to the API server, and the process while it runs.
pub(super) struct Replica {
    pub(super) pod: String,
    pub(super) identity: ServiceAccountIdentity,
    line: Proxy,
    program: Option<Program>,
}

/// All replicas, and what is needed to restart them.
pub(super) struct Replicas {
    context: Arc<TestContext>,
    pub(super) all: Vec<Replica>,
}

impl Replicas {
    /// Creates the pods and starts a process for each.
    pub(super) async fn start(
        context: Arc<TestContext>,
        identity: &ServiceAccountIdentity,
        count: usize,
    ) -> anyhow::Result<Self> {
        let mut replicas = Self { all: Vec::new(), context };
        for number in 0..count {
            let pod = format!("5spot-controller-{number}");
            replicas.all.push(Replica {
                identity: identity.bound_to_pod(&pod).await?,
                line: replicas.context.proxy(Side::Management).await?,
                program: None,
                pod,
            });
            replicas.start_one(number).await?;
        }
        Ok(replicas)
    }

    /// Starts a replica, and waits until it is ready.
    pub(super) async fn start_one(&mut self, number: usize) -> anyhow::Result<()> {
        let replica = &mut self.all[number];
        let namespace = format!("--watch-namespace={}", self.context.namespace());
        let duration = format!("--lease-duration-secs={LEASE_SECONDS}");
        let deadline = format!("--lease-renew-deadline-secs={}", LEASE_SECONDS - 2);
        let flags = ["--enable-leader-election", &namespace, &duration, &deadline];
        let kubeconfig = replica.identity.kubeconfig(Some(&replica.line.server()));
        let program =
            Program::start_with(self.context.directory(), &kubeconfig, &replica.pod, &flags).await?;
        program.is_ready().await?;
        replica.program = Some(program);
        Ok(())
    }

    /// Waits until there is exactly one leader. Fails if two replicas report at the same time that they lead.
    pub(super) async fn leader(&self) -> anyhow::Result<usize> {
        self.leader_among(&(0..self.all.len()).collect::<Vec<_>>()).await
    }

    /// The same among these replicas, because others cannot respond.
    pub(super) async fn leader_among(&self, numbers: &[usize]) -> anyhow::Result<usize> {
        let found = async {
            loop {
                let mut leaders = Vec::new();
                for number in numbers {
                    if self.is_leader(*number).await? {
                        leaders.push(*number);
                    }
                }
                match leaders.as_slice() {
                    [] => tokio::time::sleep(ASK_EVERY).await,
                    [leader] => return anyhow::Ok(*leader),
                    several => bail!("replicas {several:?} say that they lead"),
                }
            }
        };
        tokio::time::timeout(WAIT_LIMIT, found)
            .await
            .with_context(|| format!("no replica leads\n{}", self.logs()))?
    }

    /// The leader among all other replicas.
    pub(super) async fn other_leader(&self, than: usize) -> anyhow::Result<usize> {
        let others: Vec<usize> = (0..self.all.len()).filter(|number| *number != than).collect();
        self.leader_among(&others).await
    }

    async fn is_leader(&self, number: usize) -> anyhow::Result<bool> {
        let Some(program) = &self.all[number].program else { return Ok(false) };
        is_leader(program).await
    }

    /// The time from `since` to the first reconcile of a replica after it.
    pub(super) async fn first_reconcile(
        &self,
        number: usize,
        since: Timestamp,
    ) -> anyhow::Result<SignedDuration> {
        let program = self.program(number)?;
        let first = async {
            loop {
                let lines = program.lines()?;
                let begun =
                    lines.iter().filter(|line| line["fields"]["message"] == "Starting reconciliation");
                let first = begun.filter_map(timestamp).find(|at| *at > since);
                if let Some(first) = first {
                    return anyhow::Ok(first.duration_since(since));
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, first).await.context("it reconciles nothing")?
    }

    pub(super) fn program(&self, number: usize) -> anyhow::Result<&Program> {
        self.all[number].program.as_ref().context("it does not run")
    }

    /// SIGKILL. The replica can be started again.
    pub(super) async fn kill(&mut self, number: usize) {
        if let Some(program) = self.all[number].program.take() {
            program.kill().await;
        }
    }

    /// SIGTERM. The replica can be started again.
    pub(super) async fn terminate(&mut self, number: usize) -> anyhow::Result<()> {
        self.all[number].program.take().context("it does not run")?.stop().await
    }

    pub(super) fn set_line(&self, number: usize, line: Line) {
        self.all[number].line.set(line);
    }

    /// Checks that no replica counted a refusal by the fence as a failure, and ends all replicas.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        for number in 0..self.all.len() {
            let log = self.program(number)?.log();
            let failure = log
                .lines()
                .find(|line| line.contains("Reconciliation error") && line.contains("5spot-fence"));
            ensure!(failure.is_none(), "the holder was refused: {failure:?}");
            self.terminate(number).await?;
        }
        Ok(())
    }

    /// Deletes the pods, which invalidates their tokens.
    pub(super) async fn delete_pods(context: &TestContext, count: usize) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::namespaced(context.management().admin(), SYSTEM_NAMESPACE);
        for number in 0..count {
            pods.delete(&format!("5spot-controller-{number}"), &DeleteParams::default().grace_period(0))
                .await?;
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let logs =
            self.all.iter().filter_map(|replica| Some((&replica.pod, replica.program.as_ref()?.log())));
        logs.map(|(pod, log)| format!("---- log of {pod}\n{log}")).collect::<Vec<_>>().join("\n")
    }
}

fn timestamp(line: &Value) -> Option<Timestamp> {
    line["timestamp"].as_str()?.parse().ok()
}
