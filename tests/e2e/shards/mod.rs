//! Instances that share the objects, as processes with the tokens of pods, on a real control plane: a rolling
//! change from one to three and back while machines are lent. Their writes are read from the audit log, by
//! pod.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::CONTROLLER_AGENT;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::scenarios::{controller_identity, node_identity};
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![lent_machines_survive_a_change_of_the_number_of_instances]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(8)))
        .collect()
}

const WITHIN: Duration = Duration::from_mins(3);

/// The polling interval for metrics.
const ASK_EVERY: Duration = Duration::from_millis(200);

const OBJECTS: usize = 8;

/// The time between the edits of two objects.
const BETWEEN_EDITS: Duration = Duration::from_millis(100);

/// The time for which the instances of a new number work on edited objects.
const LOAD_AFTERWARDS: Duration = Duration::from_secs(5);

/// The kinds that two instances must not write at the same time.
const OURS: [&str; 4] = ["scheduledmachines", "machines", "k0sworkerconfigs", "remotemachines"];

async fn lent_machines_survive_a_change_of_the_number_of_instances(context: Arc<TestContext>) -> TestResult {
    context.capi_cluster("edge", ControlPlaneOwner::External).await?;
    let identity = controller_identity(&context).await?;
    let mut instances =
        Instances { identities: Vec::new(), programs: Vec::new(), context: Arc::clone(&context) };
    for id in 0..3 {
        instances.identities.push(identity.bound_to_pod(&instances.pod(id)).await?);
    }
    instances.start(0, 1).await?;
    lend(&context).await?;
    // Every object is changed repeatedly while the instances change.
    let load = tokio::spawn(edit_without_end(Arc::clone(&context)));
    for count in [3, 1] {
        instances.roll_out(count).await?;
        let owned = instances.until_all_are_owned().await?;
        println!("{count} instances own {owned:?} objects");
        tokio::time::sleep(LOAD_AFTERWARDS).await;
    }
    ensure!(!load.is_finished(), "the objects were not edited: {:?}", load.await);
    load.abort();
    edit(&context, "afterwards").await?;
    instances.stop().await?;
    check(&context)
}

/// The instances, by their number.
struct Instances {
    context: Arc<TestContext>,
    identities: Vec<ServiceAccountIdentity>,
    programs: Vec<Program>,
}

impl Instances {
    /// A pod of a `StatefulSet`, separate from those of other tests.
    fn pod(&self, id: usize) -> String {
        format!("{}-{id}", self.context.namespace())
    }

    async fn start(&mut self, id: usize, count: usize) -> anyhow::Result<()> {
        let (namespace, pod) = (self.context.namespace(), self.pod(id));
        let flags = [
            format!("--watch-namespace={namespace}"),
            format!("--lease-name={namespace}"),
            format!("--instance-id={pod}"),
            format!("--instance-count={count}"),
            "--lease-duration-secs=6".to_owned(),
            "--lease-renew-deadline-secs=4".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let kubeconfig = self.identities[id].kubeconfig(None);
        let program = Program::start_with(self.context.directory(), &kubeconfig, &pod, &flags).await?;
        program.is_ready().await?;
        self.programs.insert(id, program);
        Ok(())
    }

    /// Like a `StatefulSet`: superfluous instances are stopped first, new ones are started, and the others
    /// are replaced from the highest number to the lowest.
    async fn roll_out(&mut self, count: usize) -> anyhow::Result<()> {
        while self.programs.len() > count {
            self.programs.pop().context("an instance")?.stop().await?;
        }
        let before = self.programs.len();
        for id in before..count {
            self.start(id, count).await?;
        }
        for id in (0..before).rev() {
            self.programs.remove(id).stop().await?;
            self.start(id, count).await?;
        }
        Ok(())
    }

    /// Waits until every object belongs to an instance. Returns the number of objects of each.
    async fn until_all_are_owned(&self) -> anyhow::Result<Vec<usize>> {
        let complete = async {
            loop {
                let mut owned = Vec::new();
                for program in &self.programs {
                    let metrics = program.metrics().await?;
                    let series = r#"fivespot_shard_objects{state="owned"} "#;
                    let value = metrics.lines().find_map(|line| line.strip_prefix(series));
                    owned.push(value.context("it is always exported")?.trim().parse::<usize>()?);
                }
                match owned.iter().sum::<usize>() {
                    OBJECTS => return anyhow::Ok(owned),
                    sum => ensure!(sum < OBJECTS, "an object is owned twice: {owned:?}"),
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WITHIN, complete).await.context("some objects belong to no instance")?
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        for program in self.programs.drain(..) {
            program.stop().await?;
        }
        Ok(())
    }
}

fn names() -> Vec<String> {
    (0..OBJECTS).map(|number| format!("desk-{number}")).collect()
}

/// Machines that are wanted now and exist.
async fn lend(context: &TestContext) -> anyhow::Result<()> {
    let (admin, namespace) = (context.management().admin(), context.namespace());
    let nodes = node_identity(context, namespace).await?;
    let mut documents = vec![json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-nodes"},
        "stringData": {"value": nodes.kubeconfig(None)},
    })];
    for name in names() {
        let mut object = machine(&name);
        object["metadata"]["namespace"] = namespace.into();
        object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
        object["spec"]["infrastructureSpec"]["spec"] = json!({"address": context.address()});
        documents.push(object);
    }
    manifests::Applier::new(admin).apply_all(&documents, namespace).await?;
    until_all(context, "to have its machine", |object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.phase == Some(Phase::Active) && status.node_ref.is_some())
    })
    .await
}

/// Edits one object after the other, for as long as it is polled.
async fn edit_without_end(context: Arc<TestContext>) -> anyhow::Result<()> {
    for round in 0_u64.. {
        label_all(&context, &format!("round-{round}")).await?;
    }
    Ok(())
}

async fn label_all(context: &TestContext, value: &str) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(context.management().admin(), context.namespace());
    let labels = json!({"spec": {"machineTemplate": {"labels": {"example.org/edit": value}}}});
    for name in names() {
        objects.patch(&name, &PatchParams::default(), &Patch::Merge(&labels)).await?;
        tokio::time::sleep(BETWEEN_EDITS).await;
    }
    Ok(())
}

/// Edits every object, and waits until its current owner has processed the change.
async fn edit(context: &TestContext, value: &str) -> anyhow::Result<()> {
    label_all(context, value).await?;
    until_all(context, "to be reconciled after an edit", |object| {
        let observed = object.status.as_ref().and_then(|status| status.observed_generation);
        let phase = object.status.as_ref().and_then(|status| status.phase);
        observed == object.metadata.generation && phase == Some(Phase::Active)
    })
    .await
}

async fn until_all(
    context: &TestContext,
    what: &str,
    is_so: impl Fn(&ScheduledMachine) -> bool + Copy,
) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(context.management().admin(), context.namespace());
    for name in names() {
        wait::until_present(&objects, &name, what, WITHIN, is_so).await?;
    }
    Ok(())
}

/// No object was written by two pods in overlapping turns, and no Machine was created twice or deleted.
fn check(context: &TestContext) -> TestResult {
    let query = AuditQuery::all().user_agent(CONTROLLER_AGENT).writes().since(context.begun());
    let mut records = context.management().audit_log().read(&query)?;
    records.retain(|record| {
        let is_accepted = record.stage == "ResponseComplete" && record.code.is_some_and(|code| code < 300);
        let is_here = record.object.namespace == context.namespace();
        is_accepted && is_here && OURS.contains(&record.object.resource.as_str())
    });
    records.sort_by_key(|record| record.answered);
    for name in names() {
        let is_about = |record: &&AuditRecord| {
            let object = &record.object.name;
            *object == name || object.starts_with(&format!("{name}-"))
        };
        let writes: Vec<&AuditRecord> = records.iter().filter(is_about).collect();
        let turns: Vec<(&str, usize)> = writes
            .chunk_by(|one, other| one.pod == other.pod)
            .map(|turn| (turn[0].pod.as_str(), turn.len()))
            .collect();
        println!("{name}: {turns:?}");
        ensure!(turns.iter().all(|(pod, _)| !pod.is_empty()), "{name}: a token without a pod");
        ensure!(turns.len() <= 3, "{name} was written in {} turns: {turns:?}", turns.len());
        for pair in writes.windows(2).filter(|pair| pair[0].pod != pair[1].pod) {
            ensure!(pair[0].answered <= pair[1].received, "two at a time: {} {}", pair[0], pair[1]);
        }
        let of_machine = |record: &&&AuditRecord| record.object.resource == "machines";
        let made = writes.iter().filter(of_machine).filter(|record| record.code == Some(201)).count();
        let deleted = writes.iter().filter(of_machine).filter(|record| record.verb == "delete").count();
        ensure!((made, deleted) == (1, 0), "{name}: {made} made, {deleted} deleted");
    }
    Ok(())
}
