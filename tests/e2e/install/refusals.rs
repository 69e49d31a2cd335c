//! Installations that a cluster refuses in part: the reason is in the answer of kubectl or in the events, and the rest works.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::tests;
use serde_json::json;

use super::kubectl::Kubectl;

pub(crate) fn tests() -> Vec<Test> {
    // With its own clusters: a quota applies to every pod of the namespace.
    tests![refusals_are_shown_where_people_look]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(6)))
        .collect()
}

const WITHIN: Duration = Duration::from_mins(2);

async fn refusals_are_shown_where_people_look(_: Arc<TestContext>) -> TestResult {
    let clusters = TestClusters::start_another("refusals").await?;
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Management);

    // No Prometheus Operator: the rest of the kustomization is applied.
    kubectl.ok("create namespace monitoring").await?;
    let refused = kubectl.run("apply -k deploy/monitoring").await?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(!refused.status.success(), "there is no ServiceMonitor in this cluster");
    ensure!(said.contains("no matches for kind \"ServiceMonitor\""), "{said}");
    kubectl.ok("get configmap -n monitoring 5spot-dashboard").await?;

    // A quota without room.
    kubectl.ok("create namespace 5spot-system").await?;
    kubectl.ok("create quota none --hard=pods=0 -n 5spot-system").await?;
    kubectl.ok("apply -k deploy/single").await?;
    until_event(&kubectl, "ReplicaSet", "exceeded quota: none").await?;
    let (described, _) = kubectl.ok("describe deployment -n 5spot-system 5spot-controller").await?;
    ensure!(described.contains("ReplicaFailure") && described.contains("FailedCreate"), "{described}");

    // Pod Security without exceptions for the agent.
    kubectl.ok("apply -k deploy/node-agent").await?;
    kubectl.ok("delete quota none -n 5spot-system").await?;
    let restricted = "pod-security.kubernetes.io/enforce=restricted";
    kubectl.ok(&format!("label namespace 5spot-system --overwrite {restricted}")).await?;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "desk", "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/os": "linux", "5spot.finos.org/reclaim-agent": "enabled"},
        },
    });
    Applier::new(clusters.control_plane().management().admin()).apply(&node, "").await?;
    until_event(&kubectl, "DaemonSet", "violates PodSecurity").await?;
    let (described, _) = kubectl.ok("describe daemonset -n 5spot-system 5spot-reclaim-agent").await?;
    ensure!(described.contains("violates PodSecurity"), "{described}");
    Ok(clusters.stop().await?)
}

/// Waits for an event of the namespace about an object of this kind.
pub(super) async fn until_event(kubectl: &Kubectl, kind: &str, text: &str) -> anyhow::Result<()> {
    let line = format!("get events -n 5spot-system --field-selector involvedObject.kind={kind}");
    let mut last = String::new();
    let search = async {
        loop {
            (last, _) = kubectl.ok(&line).await?;
            if last.contains(text) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let found = tokio::time::timeout(WITHIN, search).await;
    found.with_context(|| format!("no event of a {kind} says {text:?}: {last}"))?
}
