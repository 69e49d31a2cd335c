//! Installations that a cluster refuses in part: the reason is in the answer of kubectl or in the events, and the rest works. With
//! the CRDs of the Prometheus Operator, `deploy/monitoring` is accepted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::binaries;
use five_spot_testenv::cache::{Cache, CacheEnvironment};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::tests;
use serde_json::json;

use super::kubectl::Kubectl;
use super::overlays::until_pods;
use super::quick_start::blocks;

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
    the_prometheus_operator_is_installed(&kubectl).await?;

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
    cpu_limits_are_demanded(&clusters, &kubectl).await?;
    Ok(clusters.stop().await?)
}

/// A quota that counts CPU limits, and the objects that the guide has against quotas.
async fn cpu_limits_are_demanded(clusters: &TestClusters, kubectl: &Kubectl) -> TestResult {
    let cluster = clusters.control_plane().management();
    until_pods(cluster, "app=5spot-controller", 1).await?;
    kubectl.ok("create quota cpu --hard=limits.cpu=4 -n 5spot-system").await?;
    kubectl.ok("rollout restart deployment -n 5spot-system 5spot-controller").await?;
    until_event(kubectl, "ReplicaSet", "must specify limits.cpu").await?;
    let mut applier = Applier::new(cluster.admin());
    for block in blocks("### Quotas")? {
        let (_, manifest) = block.split_once("<<'EOF'\n").context("a manifest")?;
        let (manifest, _) = manifest.split_once("\nEOF").context("the end of the manifest")?;
        applier.apply_all(&manifests::parse(manifest, "docs/install.md")?, "").await?;
    }
    until_pods(cluster, "app=5spot-controller", 1).await
}

/// With the CRDs of the Prometheus Operator everything is accepted: the API server checks every field, the types of the rules
/// included.
async fn the_prometheus_operator_is_installed(kubectl: &Kubectl) -> TestResult {
    let crds = binaries::prometheus_operator_crds(&Cache::locate(&CacheEnvironment::from_process())?);
    kubectl.ok(&format!("apply --server-side -f {}", crds.display())).await?;
    let (rules, monitors) =
        ("prometheusrules.monitoring.coreos.com", "servicemonitors.monitoring.coreos.com");
    kubectl.ok(&format!("wait --for=condition=Established --timeout=2m crd/{rules} crd/{monitors}")).await?;
    let (_, warned) = kubectl.ok("apply -k deploy/monitoring").await?;
    ensure!(warned.is_empty(), "{warned}");
    kubectl.ok(&format!("get {rules}/5spot {monitors}/5spot-controller -n monitoring")).await?;
    Ok(())
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
