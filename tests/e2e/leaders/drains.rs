//! A leader that drains 300 nodes at once, each with a watch of its pods: more streams than one HTTP/2 connection may have.
//! The renewals of its Lease must not wait for any of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use five_spot_apiserver::Clock;
use five_spot_standins::{STOPS_AFTER_ANNOTATION, StandInSettings, StandIns, Timing, provider_crds};
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{LEASE, is_leader};
use crate::startup::{Bare, Program, machine, shipped_definition};

pub(crate) fn tests() -> Vec<Test> {
    tests![renewals_continue_while_300_nodes_drain]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(16)))
        .collect()
}

const NODES: usize = 300;

/// The number of objects that are written at a time.
const AT_A_TIME: usize = 16;

/// The time limit: long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(7);

/// The time for which all drains are observed together.
const OBSERVED: Duration = Duration::from_secs(30);

/// The deadline of a renewal. A longer gap ends the leadership.
const RENEW_DEADLINE: SignedDuration = SignedDuration::from_secs(10);

async fn renewals_continue_while_300_nodes_drain(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("drains").await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    manifests::apply_crds(&bare.admin(), &provider_crds(), WAIT_LIMIT).await?;
    // Pods need it, and no controller creates it here.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    bare.apply(&account).await?;
    let quick = Timing {
        provision: Duration::from_secs(1),
        join: Duration::from_secs(1),
        node_ready: Duration::from_secs(1),
        ..Timing::default()
    };
    let around = StandIns::new(bare.admin(), bare.admin(), Clock::system(), StandInSettings::new(quick));
    let around = tokio::spawn(around.run());
    let outcome = drain(&bare).await;
    around.abort();
    outcome?;
    bare.stop().await
}

async fn drain(bare: &Bare) -> TestResult {
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let identity = bare.account("5spot-controller", &everything).await?;
    let flags = ["--enable-leader-election", "--management-nodes-namespace=default"];
    let program = Program::start(bare.directory(), &identity, "drains", &flags).await?;
    program.logged("Became the leader").await?;
    lend(bare).await?;
    let begun = Timestamp::now();
    close(bare).await?;
    until(bare, "every node to be cordoned", |nodes, _| {
        nodes
            .iter()
            .filter(|node| node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)))
            .count()
    })
    .await?;
    tokio::time::sleep(OBSERVED).await;
    let log = bare.control_plane().management().audit_log();
    let query = AuditQuery::all().user(&identity.user());
    let watches = open_watches(&log.read(&query.clone().resource("pods").verbs(&["watch"]))?);
    let renewals = query.resource("leases").name(LEASE).verbs(&["update"]).since(begun);
    let gap = largest_gap(&log.read(&renewals)?)?;
    println!(
        "{NODES} nodes draining: {watches} watches of pods open, largest gap between renewals {:.2} s",
        gap.as_secs_f64()
    );
    ensure!(watches >= NODES, "only {watches} watches of pods are open");
    ensure!(gap < RENEW_DEADLINE, "no renewal for {gap:#}");
    ensure!(is_leader(&program).await?, "the leader has lost its Lease");
    ensure!(!program.log().contains("Lost the Lease"), "the leader has lost its Lease\n{}", program.log());
    program.stop().await
}

/// Machines that are lent, each with a pod on its node that takes longer to stop than the test.
async fn lend(bare: &Bare) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let create = |number: usize| {
        let objects = objects.clone();
        async move {
            let mut object = machine(&format!("desk-{number:03}"));
            object["spec"]["infrastructureSpec"]["spec"] =
                json!({"address": format!("10.0.{}.{}", number / 250, number % 250)});
            for timeout in ["gracefulShutdownTimeout", "nodeDrainTimeout"] {
                object["spec"][timeout] = "30m".into();
            }
            objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            anyhow::Ok(())
        }
    };
    stream::iter((0..NODES).map(create)).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
    until(bare, "every machine to have joined", |_, objects| {
        let has_node = |object: &&ScheduledMachine| {
            object.status.as_ref().is_some_and(|status| status.node_ref.is_some())
        };
        objects.iter().filter(has_node).count()
    })
    .await?;
    let pods: Api<Pod> = Api::namespaced(bare.admin(), "default");
    let nodes = Api::<Node>::all(bare.admin()).list(&ListParams::default()).await?.items;
    let create = |node: &Node| {
        let (pods, node) = (pods.clone(), node.name_any());
        async move {
            let pod = json!({
                "metadata": {"name": format!("on-{node}"), "annotations": {STOPS_AFTER_ANNOTATION: "20m"}},
                "spec": {
                    "nodeName": node, "automountServiceAccountToken": false,
                    "terminationGracePeriodSeconds": 1800,
                    "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
                },
            });
            pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
            anyhow::Ok(())
        }
    };
    let created = nodes.iter().map(create).collect::<Vec<_>>();
    stream::iter(created).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Closes all objects.
async fn close(bare: &Bare) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let until = Timestamp::now() + SignedDuration::from_hours(10);
    let down = json!({"spec": {"override": {"state": "down", "until": until, "reason": "the drains begin"}}});
    let change = |number: usize| {
        let (objects, down) = (objects.clone(), down.clone());
        async move {
            let name = format!("desk-{number:03}");
            objects.patch(&name, &PatchParams::default(), &Patch::Merge(&down)).await?;
            anyhow::Ok(())
        }
    };
    stream::iter((0..NODES).map(change)).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Waits until a condition is true for all nodes or objects.
async fn until(
    bare: &Bare,
    what: &str,
    count: impl Fn(&[Node], &[ScheduledMachine]) -> usize,
) -> anyhow::Result<()> {
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let nodes: Api<Node> = Api::all(bare.admin());
    let mut last = 0;
    let holds = async {
        loop {
            let parameters = ListParams::default();
            last = count(&nodes.list(&parameters).await?.items, &objects.list(&parameters).await?.items);
            if last >= NODES {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_LIMIT, holds).await;
    waited.with_context(|| format!("waiting for {what}: {last} of {NODES}"))?
}

/// The number of open watches, by resource.
fn open_watches(records: &[AuditRecord]) -> usize {
    let mut open: BTreeMap<&str, i64> = BTreeMap::new();
    for record in records {
        let node = record.uri.split(['?', '&']).find(|pair| pair.starts_with("fieldSelector="));
        let change = if record.stage == "ResponseStarted" { 1 } else { -1 };
        *open.entry(node.unwrap_or_default()).or_default() += change;
    }
    open.values().filter(|count| **count > 0).count()
}

fn largest_gap(renewals: &[AuditRecord]) -> anyhow::Result<SignedDuration> {
    let mut times: Vec<Timestamp> = renewals.iter().map(|renewal| renewal.answered).collect();
    times.sort();
    let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
    gaps.max().context("the Lease was renewed twice")
}
