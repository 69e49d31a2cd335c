//! Many objects whose machines are lent, and the one controller that manages them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::audit::{AuditLog, AuditQuery, AuditRecord};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::{CONTROLLER_AGENT, HARNESS_AGENT};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::measure::{Memory, Usage, kill_switch_to_delete, logged};
use crate::permissions::condition;
use crate::scenarios::{controller_identity, node_identity};
use crate::startup::Program;

/// The Secret with the kubeconfig of the controller's own identity in the workload cluster.
const SECRET: &str = "edge-nodes";
/// The number of objects created before all of them have to have a Ready node: other components are slower than 5-Spot.
const STEP: usize = 50;
/// The number of objects created at the same time.
const AT_A_TIME: usize = 8;
/// The number of attempts when the server is too busy.
const ATTEMPTS: u32 = 10;
/// The time without requests after which the controller counts as idle.
const SILENCE: Duration = Duration::from_secs(10);
/// Slightly longer than the time after which unused connections are closed.
const CONNECTIONS_CLOSED: Duration = Duration::from_secs(100);
/// Long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(40);

/// The objects, and their controller.
pub(crate) struct Fleet {
    context: Arc<TestContext>,
    identity: ServiceAccountIdentity,
    controller: PathBuf,
    program: Option<Program>,
    made: usize,
    /// The number of rounds of changes so far, which makes every change different.
    rounds: AtomicI64,
}

impl Fleet {
    pub(crate) async fn prepare(context: Arc<TestContext>, controller: &Path) -> anyhow::Result<Self> {
        let identity = controller_identity(&context).await?;
        let nodes = node_identity(&context, "bench").await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
            "stringData": {"value": nodes.kubeconfig(None)},
        });
        Applier::new(context.management().admin()).apply(&secret, context.namespace()).await?;
        context.capi_cluster("edge", ControlPlaneOwner::External).await?;
        let controller = controller.to_path_buf();
        Ok(Self { context, identity, controller, program: None, made: 0, rounds: AtomicI64::new(0) })
    }

    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        let directory = self.context.directory();
        let program = Program::start_file(&self.controller, directory, &self.identity, "bench", &[]).await?;
        program.is_ready().await?;
        self.program = Some(program);
        Ok(())
    }

    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        match self.program.take() {
            Some(program) => program.stop().await,
            None => Ok(()),
        }
    }

    pub(crate) fn log(&self) -> String {
        self.program
            .as_ref()
            .map(Program::log)
            .unwrap_or_default()
            .lines()
            .rev()
            .take(30)
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn program(&self) -> anyhow::Result<&Program> {
        self.program.as_ref().context("no controller runs")
    }

    fn objects(&self) -> Api<ScheduledMachine> {
        Api::namespaced(self.context.management().admin(), self.context.namespace())
    }

    fn logs(&self) -> [AuditLog; 2] {
        [self.context.management().audit_log(), self.context.workload().audit_log()]
    }

    /// Makes objects until there are this many, some at a time, and waits until each has a Ready node.
    pub(crate) async fn grow_to(&mut self, count: usize) -> anyhow::Result<()> {
        while self.made < count {
            let next = count.min(self.made + STEP);
            let objects = self.objects();
            stream::iter(self.made..next)
                .map(|number| make(objects.clone(), self.object(number)))
                .buffer_unordered(AT_A_TIME)
                .try_collect::<()>()
                .await?;
            self.made = next;
            tokio::time::timeout(WAIT_LIMIT, self.until_ready(next))
                .await
                .context("not all objects became Active")??;
        }
        Ok(())
    }

    async fn until_ready(&self, count: usize) -> anyhow::Result<()> {
        loop {
            // A request that a busy server rejects is retried.
            let ready = self.ready().await.unwrap_or_default();
            eprintln!("{ready} of {count} objects have a Ready node");
            if ready >= count {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }

    async fn ready(&self) -> anyhow::Result<usize> {
        let objects = self.objects().list(&ListParams::default()).await?;
        let is_ready = |object: &&ScheduledMachine| {
            condition(object, "MachineReady").is_some_and(|ready| ready.status == "True")
        };
        Ok(objects.items.iter().filter(is_ready).count())
    }

    fn object(&self, number: usize) -> serde_json::Value {
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": name(number)},
            "spec": {
                "schedule": {"daysOfWeek": ["mon-sun"]},
                "clusterName": "edge",
                "kubeconfigSecretRef": {"name": SECRET},
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                    "spec": {"version": "v1.36.4+k0s.0"},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                    "spec": {"address": self.context.address(), "port": 22},
                },
            },
        })
    }

    /// The requests of the controller so far.
    pub(super) async fn usage(&self) -> anyhow::Result<Usage> {
        Ok(Usage::read(&self.logs(), &self.program()?.metrics().await?)?)
    }

    /// Waits until the controller has sent no request for a while.
    pub(crate) async fn until_silent(&self) -> anyhow::Result<()> {
        let silent = async {
            let mut before = self.usage().await?.total();
            loop {
                tokio::time::sleep(SILENCE).await;
                let now = self.usage().await?.total();
                if now == before {
                    return anyhow::Ok(());
                }
                before = now;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, silent).await.context("the controller does not come to rest")?
    }

    /// Memory at rest.
    pub(super) async fn settled_memory(&self) -> anyhow::Result<Memory> {
        self.until_silent().await?;
        tokio::time::sleep(CONNECTIONS_CLOSED).await;
        Ok(Memory::of(self.program()?.pid())?)
    }

    /// Memory at rest of a controller that has just been started.
    pub(super) async fn restarted_memory(&mut self) -> anyhow::Result<Memory> {
        self.until_silent().await?;
        self.stop().await?;
        self.start().await?;
        self.settled_memory().await
    }

    /// Changes objects one after another. For each, how long it took from the arrival of the change at the API server to
    /// that of the controller's first write because of it.
    pub(crate) async fn changes(&self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let log = self.context.management().audit_log();
        let objects = self.objects();
        let mut times = Vec::new();
        let round = self.rounds.fetch_add(1, Ordering::SeqCst) + 1;
        for number in 0..count.min(self.made) {
            let name = name(number * self.made / count.min(self.made));
            let place = log.end()?;
            let patch = Patch::Merge(json!({"spec": {"priority": round}}));
            objects.patch(&name, &PatchParams::default(), &patch).await?;
            let (change, write) =
                answered(&log, place, &name).await.with_context(|| format!("the change of {name}"))?;
            times
                .push(Duration::try_from(write.received.duration_since(change.received)).unwrap_or_default());
        }
        ensure!(!times.is_empty(), "there is nothing to change");
        Ok(times)
    }

    /// The names of the Nodes of all objects.
    pub(crate) async fn nodes(&self) -> anyhow::Result<Vec<String>> {
        let objects = self.objects().list(&ListParams::default()).await?;
        let node = |object: ScheduledMachine| object.status?.node_ref.map(|node| node.name);
        Ok(objects.items.into_iter().filter_map(node).collect())
    }

    /// Sets the kill switch of objects, one after the other, and resets it when the Machine is gone. For each, how long it
    /// took from the arrival of the change at the API server to that of the Machine's DELETE.
    pub(crate) async fn kill_switches(&self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::new();
        for number in 0..count {
            let name = name(number);
            let place = self.context.management().audit_log().end()?;
            self.set_kill_switch(&name, true).await?;
            times.push(self.deleted_after(place, &name).await?);
            self.until_phase(&name, Phase::Terminated).await?;
            self.set_kill_switch(&name, false).await?;
        }
        tokio::time::timeout(WAIT_LIMIT, self.until_ready(self.made)).await??;
        Ok(times)
    }

    async fn set_kill_switch(&self, name: &str, is_on: bool) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"spec": {"killSwitch": is_on}}));
        self.objects().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn deleted_after(&self, place: u64, name: &str) -> anyhow::Result<Duration> {
        let log = self.context.management().audit_log();
        kill_switch_to_delete(&log, place, name).await
    }

    async fn until_phase(&self, name: &str, phase: Phase) -> anyhow::Result<()> {
        let is_there = |object: &ScheduledMachine| {
            object.status.as_ref().is_some_and(|status| status.phase == Some(phase))
        };
        wait::until_present(&self.objects(), name, "its phase", WAIT_LIMIT, is_there).await?;
        Ok(())
    }

    /// Every object is lent, and none was ever reclaimed.
    pub(crate) async fn is_never_reclaimed(&self) -> anyhow::Result<()> {
        for object in self.objects().list(&ListParams::default()).await? {
            let status = object.status.unwrap_or_default();
            ensure!(status.reclaims.is_empty(), "reclaimed: {:?}", status.reclaims);
            ensure!(status.phase == Some(Phase::Active), "{:?} is {:?}", object.metadata.name, status.phase);
        }
        Ok(())
    }
}

/// Creates an object, even if the server is busy.
async fn make(objects: Api<ScheduledMachine>, object: serde_json::Value) -> anyhow::Result<()> {
    let object: ScheduledMachine = serde_json::from_value(object)?;
    for attempt in 1.. {
        match objects.create(&PostParams::default(), &object).await {
            Ok(_) => break,
            // A create that timed out may have succeeded.
            Err(kube::Error::Api(status)) if status.code == 409 => break,
            Err(error) if attempt == ATTEMPTS => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
    Ok(())
}

/// The change of an object after a position in the log, and the first write of the controller after it.
async fn answered(log: &AuditLog, place: u64, name: &str) -> anyhow::Result<(AuditRecord, AuditRecord)> {
    let query = AuditQuery::all().writes().name(name);
    let found = logged(log, place, &query, |records| {
        let change = records.iter().find(|record| record.user_agent.starts_with(HARNESS_AGENT))?;
        let write = records.iter().find(|record| {
            record.user_agent.starts_with(CONTROLLER_AGENT) && record.received >= change.received
        })?;
        Some((change.clone(), write.clone()))
    });
    found.await.context("nothing was written")
}

fn name(number: usize) -> String {
    format!("desk-{number:05}")
}
