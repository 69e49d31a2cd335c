//! The brake on a real API server and real Cluster API: the windows of a small fleet close an hour before the recorded time, as
//! they would with new time-zone data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::names::{self, SYSTEM_NAMESPACE, annotation};
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::{controller_identity, node_identity};
use crate::permissions::condition;
use crate::startup::{Program, machine};

const MACHINES: usize = 8;

/// 20 % of eight machines are fewer than the five removals that are always allowed.
const LIMIT: usize = 5;

/// The windows stay open for at least this long after they were set, so that the controller can record their end.
const OPEN_FOR: SignedDuration = SignedDuration::from_secs(15);

/// The delay of the recorded time.
const LATER: SignedDuration = SignedDuration::from_hours(1);

/// The time that the annotation allows.
const ALLOWED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Twice the guaranteed latency of the kill switch: other tests use the same processors.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// The polling interval: neither metrics nor audit logs can be watched.
const ASK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn tests() -> Vec<Test> {
    tests![unplanned_removals_are_held_until_allowed]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(8)))
        .collect()
}

async fn unplanned_removals_are_held_until_allowed(context: Arc<TestContext>) -> TestResult {
    let fleet = Fleet::prepare(context).await?;
    let program = fleet.start_controller().await?;
    fleet.lend().await?;
    let close = fleet.close_soon().await?;
    program.stop().await?;
    fleet.record(close + LATER).await?;
    tokio::time::sleep(Duration::try_from(close.duration_since(Timestamp::now())).unwrap_or_default()).await;
    let program = fleet.start_controller().await?;
    let result = fleet.is_held_until_allowed(&program).await.with_context(|| program.log());
    // All tests share the namespace of the controller. Only this test has unplanned removals, and a second
    // run of it.
    fleet.annotate_controller_namespace(&format!("{}-", annotation::ALLOW_REMOVALS)).await?;
    result?;
    program.stop().await
}

/// The objects of the test.
struct Fleet {
    context: Arc<TestContext>,
    identity: ServiceAccountIdentity,
    objects: Api<ScheduledMachine>,
}

impl Fleet {
    async fn prepare(context: Arc<TestContext>) -> anyhow::Result<Self> {
        let identity = controller_identity(&context).await?;
        context.capi_cluster("edge", ControlPlaneOwner::External).await?;
        let objects = Api::namespaced(context.management().admin(), context.namespace());
        Ok(Self { context, identity, objects })
    }

    async fn start_controller(&self) -> anyhow::Result<Program> {
        let namespace = self.context.namespace();
        let flag = format!("--watch-namespace={namespace}");
        let program = Program::start(self.context.directory(), &self.identity, namespace, &[&flag]).await?;
        program.is_ready().await?;
        Ok(program)
    }

    /// Creates objects that are always open, and waits until their machines are lent.
    async fn lend(&self) -> anyhow::Result<()> {
        let (admin, namespace) = (self.context.management().admin(), self.context.namespace());
        let nodes = node_identity(&self.context, namespace).await?;
        let mut documents = vec![json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-nodes"},
            "stringData": {"value": nodes.kubeconfig(None)},
        })];
        for name in all() {
            let mut object = machine(&name);
            object["metadata"]["namespace"] = namespace.into();
            object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
            object["spec"]["infrastructureSpec"]["spec"] = json!({"address": self.context.address()});
            documents.push(object);
        }
        Applier::new(admin).apply_all(&documents, namespace).await?;
        let is_lent = |object: &ScheduledMachine| {
            phase(object) == Some(Phase::Active)
                && condition(object, "MachineReady").is_some_and(|ready| ready.status == "True")
        };
        self.until_each(&all(), "to be lent", is_lent).await
    }

    /// Sets windows that close at the same minute, and waits until the controller has recorded it.
    async fn close_soon(&self) -> anyhow::Result<Timestamp> {
        let earliest = Timestamp::now() + OPEN_FOR;
        let close = Timestamp::from_second((earliest.as_second().div_euclid(60) + 1) * 60)?;
        let window = json!({"from": minute(close - SignedDuration::from_hours(2)), "to": minute(close)});
        let schedule =
            json!({"daysOfWeek": null, "hoursOfDay": null, "timezone": "UTC", "windows": [window]});
        for name in all() {
            let patch = Patch::Merge(json!({"spec": {"schedule": schedule}}));
            self.objects.patch(&name, &PatchParams::default(), &patch).await?;
        }
        let is_recorded = |object: &ScheduledMachine| {
            object.status.as_ref().is_some_and(|status| {
                status.observed_generation == object.metadata.generation
                    && status.next_cleanup.as_ref().is_some_and(|time| time.0 == close)
            })
        };
        self.until_each(&all(), "to have recorded the end of its window", is_recorded).await?;
        Ok(close)
    }

    /// Changes the recorded end of all windows, while no controller runs.
    async fn record(&self, time: Timestamp) -> anyhow::Result<()> {
        for name in all() {
            let status = json!({"nextCleanup": time, "nextChange": time});
            let patch = Patch::Merge(json!({"status": status}));
            let object = self.objects.patch_status(&name, &PatchParams::default(), &patch).await?;
            ensure!(phase(&object) == Some(Phase::Active), "{name} closed too early: {:?}", object.status);
        }
        Ok(())
    }

    async fn is_held_until_allowed(&self, program: &Program) -> TestResult {
        let mut held = self.until_held(program, MACHINES - LIMIT).await?;
        let gone: BTreeSet<String> = all().difference(&held).cloned().collect();
        self.until_each(&gone, "to be removed", |object| phase(object) == Some(Phase::Inactive)).await?;
        self.are_held(program, &held).await?;
        self.until_reported(&held).await?;
        let begun = self.select(|object| {
            let removal = object.status.as_ref().and_then(|status| status.unplanned_removal.as_ref());
            removal.is_some_and(|removal| removal.begun_at.is_some())
        });
        ensure!(begun.await? == gone, "the removals that began are not those of the deleted Machines");

        let killed = held.pop_first().context("one that is held")?;
        let after = self.kill(&killed).await?;
        println!("{gone:?} removed; {killed} deleted {after:?} after its kill switch; {held:?} held");
        self.until_each(&BTreeSet::from([killed]), "to be terminated", |object| {
            phase(object) == Some(Phase::Terminated) && !is_held(object)
        })
        .await?;
        ensure!(self.until_held(program, held.len()).await? == held, "others are held than before");
        self.are_held(program, &held).await?;

        let until = Timestamp::now() + ALLOWED_FOR;
        self.annotate_controller_namespace(&format!("{}={until:.0}", annotation::ALLOW_REMOVALS)).await?;
        let allowed = Instant::now();
        self.until_each(&held, "to be removed", |object| {
            phase(object) == Some(Phase::Inactive) && !is_held(object)
        })
        .await?;
        self.until_held(program, 0).await?;
        println!("the others were removed {:?} after they were allowed", allowed.elapsed());
        ensure!(self.deleted()? == all().iter().map(|name| names::machine(name)).collect());
        Ok(())
    }

    /// Waits until the metric and the conditions report this many held removals. Returns the names of the
    /// objects.
    async fn until_held(&self, program: &Program, count: usize) -> anyhow::Result<BTreeSet<String>> {
        let held = async {
            loop {
                let (metric, held) = (removals_held(program).await?, self.select(is_held).await?);
                if metric == count && held.len() == count {
                    return anyhow::Ok(held);
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, held)
            .await
            .with_context(|| format!("never {count} removals held"))?
    }

    /// Fails unless exactly these removals are held and their Machines have not been deleted.
    async fn are_held(&self, program: &Program, held: &BTreeSet<String>) -> TestResult {
        ensure!(self.select(is_held).await? == *held, "others are held than before");
        ensure!(removals_held(program).await? == held.len(), "the metric differs from the conditions");
        let deleted = self.deleted()?;
        let machines: BTreeSet<String> = all().difference(held).map(|name| names::machine(name)).collect();
        ensure!(deleted == machines, "deleted: {deleted:?}, but held: {held:?}");
        Ok(())
    }

    /// Waits for an event about each of these objects, and checks that there are none about others.
    async fn until_reported(&self, held: &BTreeSet<String>) -> TestResult {
        let events: Api<Event> = Api::namespaced(self.context.management().admin(), self.context.namespace());
        let reason = ListParams::default().fields("reason=TooManyRemovals");
        let reported = async {
            loop {
                let mut found = events.list(&reason).await?.items;
                found.retain(|event| event.type_.as_deref() == Some("Warning"));
                let names: BTreeSet<String> =
                    found.into_iter().filter_map(|event| event.regarding?.name).collect();
                ensure!(names.is_subset(held), "events about {names:?}");
                if names == *held {
                    return Ok(());
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, reported).await.context("no event TooManyRemovals")?
    }

    /// Sets a kill switch. Returns the time after which the deletion of the Machine was accepted.
    async fn kill(&self, name: &str) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let patch = Patch::Merge(json!({"spec": {"killSwitch": true}}));
        self.objects.patch(name, &PatchParams::default(), &patch).await?;
        let deleted = async {
            while !self.deleted()?.contains(&names::machine(name)) {
                tokio::time::sleep(ASK_EVERY).await;
            }
            anyhow::Ok(begun.elapsed())
        };
        tokio::time::timeout(DELETED_WITHIN, deleted).await.context("the kill switch was held")?
    }

    /// The Machines whose deletion was accepted, by any client.
    fn deleted(&self) -> anyhow::Result<BTreeSet<String>> {
        let query = AuditQuery::all()
            .verbs(&["delete", "deletecollection"])
            .resource("machines")
            .namespace(self.context.namespace());
        let mut records = self.context.management().audit_log().read(&query)?;
        records.retain(|record| record.code.is_some_and(|code| code < 300));
        Ok(records.into_iter().map(|record| record.object.name).collect())
    }

    /// Runs the command of the documentation.
    async fn annotate_controller_namespace(&self, change: &str) -> TestResult {
        let command = ["annotate", "namespace", SYSTEM_NAMESPACE, "--overwrite", change];
        let output = self.context.kubectl(Side::Management, &command).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The names of the objects that match.
    async fn select(
        &self,
        is_wanted: impl Fn(&ScheduledMachine) -> bool,
    ) -> anyhow::Result<BTreeSet<String>> {
        let objects = self.objects.list(&ListParams::default()).await?;
        let wanted = objects.items.into_iter().filter(is_wanted);
        Ok(wanted.filter_map(|object| object.metadata.name).collect())
    }

    async fn until_each(
        &self,
        names: &BTreeSet<String>,
        what: &str,
        is_so: impl Fn(&ScheduledMachine) -> bool,
    ) -> anyhow::Result<()> {
        for name in names {
            wait::until_present(&self.objects, name, what, WAIT_LIMIT, &is_so).await?;
        }
        Ok(())
    }
}

/// The names of all objects.
fn all() -> BTreeSet<String> {
    (0..MACHINES).map(|number| format!("desk-{number}")).collect()
}

fn phase(object: &ScheduledMachine) -> Option<Phase> {
    object.status.as_ref().and_then(|status| status.phase)
}

fn is_held(object: &ScheduledMachine) -> bool {
    condition(object, "Paused")
        .is_some_and(|paused| paused.status == "True" && paused.reason == "TooManyRemovals")
}

async fn removals_held(program: &Program) -> anyhow::Result<usize> {
    let metrics = program.metrics().await?;
    let value = metrics.lines().find_map(|line| line.strip_prefix("fivespot_removals_held "));
    Ok(value.context("no metric fivespot_removals_held")?.trim().parse()?)
}

/// A minute of the week in the format of schedules.
fn minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%a %H:%M").to_string().to_lowercase()
}
