//! Every overlay by `kubectl apply -k`, first as a dry run of the server, then really, and the pods that follow from it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::{Cluster, Side};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::tests;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::kubectl::Kubectl;
use super::pod_shapes;

pub(crate) fn tests() -> Vec<Test> {
    // With its own clusters: policies, Pod Security and the fence apply to accounts that other tests use.
    tests![overlays_are_accepted_and_their_pods_admitted]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(8)))
        .collect()
}

const WITHIN: Duration = Duration::from_mins(2);

/// The label with the level that Pod Security enforces.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

async fn overlays_are_accepted_and_their_pods_admitted(_: Arc<TestContext>) -> TestResult {
    let clusters = TestClusters::start_another("overlays").await?;
    management_cluster(&clusters).await?;
    workload_cluster(&clusters).await?;
    Ok(clusters.stop().await?)
}

async fn management_cluster(clusters: &TestClusters) -> TestResult {
    let cluster = clusters.control_plane().management();
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Management);
    // On an empty cluster; a dry run would miss the namespace.
    apply(&kubectl, "deploy/single").await?;
    enforces(cluster, "restricted").await?;
    until_pods(cluster, "app=5spot-controller", 1).await?;
    let single = pod_shapes::pod_of(&kubectl.build("deploy/single").await?, "Deployment")?;
    pod_shapes::are_restricted(cluster, &single).await?;

    dry_run(&kubectl, "deploy/ha").await?;
    apply(&kubectl, "deploy/ha").await?;
    enforces(cluster, "restricted").await?;
    // The old pod ends when the new ones are ready, which does not happen here.
    until_pods(cluster, "app=5spot-controller", 2).await?;
    let made =
        "poddisruptionbudget/5spot-controller networkpolicy/5spot-controller service/fivespot-controller";
    kubectl.ok(&format!("get {made} configmap/5spot-config -n 5spot-system")).await?;

    kubectl.ok("delete deployment -n 5spot-system 5spot-controller").await?;
    dry_run(&kubectl, "deploy/sharded").await?;
    apply(&kubectl, "deploy/sharded").await?;
    until_pods(cluster, "app=5spot-controller,apps.kubernetes.io/pod-index", 3).await?;
    // Only tried: agents of other layouts follow below.
    dry_run(&kubectl, "deploy/sharded-with-agent").await?;
    kubectl.ok("delete statefulset -n 5spot-system 5spot-controller").await?;

    for folder in ["deploy/single-with-agent", "deploy/ha-with-agent"] {
        dry_run(&kubectl, folder).await?;
        apply(&kubectl, folder).await?;
        enforces(cluster, "privileged").await?;
    }
    until_pods(cluster, "app=5spot-controller", 2).await?;
    let documents = kubectl.build("deploy/ha-with-agent").await?;
    let (controller, agent) =
        (pod_shapes::pod_of(&documents, "Deployment")?, pod_shapes::pod_of(&documents, "DaemonSet")?);
    pod_shapes::until_in_force(cluster, &agent, WITHIN).await?;
    pod_shapes::are_held_by_the_policy(cluster, &controller, &agent).await?;
    let pods: Api<Pod> = Api::namespaced(cluster.admin(), SYSTEM_NAMESPACE);
    let running = pods.list(&ListParams::default().labels("app=5spot-controller").limit(1)).await?.items;
    let running = running.first().context("a pod of the controller")?.name_any();
    pod_shapes::debug_containers_are_held_by_the_policy(cluster, &running).await?;
    policies_are_well_typed(&kubectl).await
}

async fn workload_cluster(clusters: &TestClusters) -> TestResult {
    let cluster = clusters.control_plane().workload();
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Workload);
    apply(&kubectl, "deploy/workload-cluster").await?;
    dry_run(&kubectl, "deploy/workload-cluster").await?;
    enforces(cluster, "privileged").await?;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "desk", "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/os": "linux", "5spot.finos.org/reclaim-agent": "enabled"},
        },
    });
    Applier::new(cluster.admin()).apply(&node, "").await?;
    until_pods(cluster, "app=5spot-reclaim-agent", 1).await?;
    for folder in ["deploy/node-agent", "deploy/node-agent-no-capability", "deploy/node-agent-poll"] {
        dry_run(&kubectl, folder).await?;
    }
    policies_are_well_typed(&kubectl).await?;

    // Chosen namespaces only, in a cluster without agents whose administrator has installed the CRD.
    kubectl.ok("delete daemonset -n 5spot-system 5spot-reclaim-agent --cascade=foreground").await?;
    apply(&kubectl, "deploy/crds").await?;
    dry_run(&kubectl, "deploy/namespaced").await?;
    apply(&kubectl, "deploy/namespaced").await?;
    kubectl.ok("create namespace team-a").await?;
    kubectl.ok("apply --namespace=team-a -f deploy/rbac-namespaced/namespace.yaml").await?;
    enforces(cluster, "restricted").await?;
    until_pods(cluster, "app=5spot-controller", 1).await
}

/// Applies a kustomization. The only expected warning is that of Pod Security about the agent.
async fn apply(kubectl: &Kubectl, folder: &str) -> anyhow::Result<()> {
    let (_, warned) = kubectl.ok(&format!("apply -k {folder}")).await?;
    expect_no_warning(folder, &warned)
}

/// Runs a server-side dry run.
async fn dry_run(kubectl: &Kubectl, folder: &str) -> anyhow::Result<()> {
    let (_, warned) = kubectl.ok(&format!("apply -k {folder} --dry-run=server")).await?;
    expect_no_warning(folder, &warned)
}

fn expect_no_warning(folder: &str, warned: &str) -> anyhow::Result<()> {
    let is_expected = |line: &&str| {
        line.contains("would violate PodSecurity \"restricted") && line.contains("hostPID=true")
            || line.contains("hostPath volumes")
    };
    let unexpected: Vec<&str> = warned.lines().filter(|line| !is_expected(line)).collect();
    ensure!(unexpected.is_empty(), "{folder}: {unexpected:?}");
    Ok(())
}

async fn enforces(cluster: &Cluster, level: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(cluster.admin());
    let namespace = namespaces.get(SYSTEM_NAMESPACE).await?;
    ensure!(namespace.labels().get(ENFORCE).map(String::as_str) == Some(level), "{:?}", namespace.labels());
    Ok(())
}

/// Waits until at least this many pods exist, all of them admitted.
pub(super) async fn until_pods(cluster: &Cluster, selector: &str, count: usize) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.admin(), SYSTEM_NAMESPACE);
    let mut seen = std::collections::BTreeSet::new();
    let search = async {
        let events = watcher(pods, watcher::Config::default().labels(selector)).default_backoff();
        let mut events = std::pin::pin!(events.applied_objects());
        while seen.len() < count {
            let pod = events.try_next().await?.context("the watch has ended")?;
            seen.insert(pod.name_any());
        }
        anyhow::Ok(())
    };
    let waited = tokio::time::timeout(WITHIN, search).await;
    waited.with_context(|| format!("{count} pods of {selector} expected, seen: {seen:?}"))?
}

/// The API server checks the types of policies and reports the result in their status.
async fn policies_are_well_typed(kubectl: &Kubectl) -> anyhow::Result<()> {
    let policies = kubectl.json("get validatingadmissionpolicies -o json").await?;
    for policy in policies["items"].as_array().context("policies")? {
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        ensure!(warnings.is_null(), "{}: {warnings:#}", policy["metadata"]["name"]);
    }
    Ok(())
}
