//! The second layout of the quick start: Nodes in the management cluster. A machine is lent and returned with the permissions of
//! the shipped manifests.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_apiserver::Clock;
use five_spot_standins::{StandInSettings, StandIns, Timing, provider_crds};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::kubectl::Kubectl;
use crate::startup::{Bare, Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![a_machine_joins_and_leaves_the_management_cluster]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(6)))
        .collect()
}

const WITHIN: Duration = Duration::from_mins(2);
const ACCOUNT: &str = "5spot-controller";

async fn a_machine_joins_and_leaves_the_management_cluster(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("own-nodes").await?;
    bare.install_cluster_api().await?;
    manifests::apply_crds(&bare.admin(), &provider_crds(), WITHIN).await?;
    // Pods need it, and no controller creates it here.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    bare.apply(&account).await?;
    let quick = Timing {
        provision: Duration::from_secs(1),
        join: Duration::from_secs(1),
        node_ready: Duration::from_secs(1),
        ..Timing::default()
    };
    // The Nodes are in the same cluster.
    let around = StandIns::new(bare.admin(), bare.admin(), Clock::system(), StandInSettings::new(quick));
    let around = tokio::spawn(around.run());
    let outcome = lend_and_return(&bare).await;
    around.abort();
    bare.stop().await?;
    outcome
}

async fn lend_and_return(bare: &Bare) -> TestResult {
    let kubectl = Kubectl::new(bare.control_plane(), Side::Management);
    kubectl.ok("apply -k deploy/single").await?;
    kubectl.ok("apply -k deploy/rbac-nodes").await?;
    // No controller aggregates roles here, so the role of the provider is bound itself.
    kubectl
        .ok(&format!(
            "create clusterrolebinding provider --clusterrole=5spot-provider-k0smotron \
             --serviceaccount={SYSTEM_NAMESPACE}:{ACCOUNT}"
        ))
        .await?;
    kubectl
        .ok(&format!(
            "create rolebinding 5spot-management-nodes --clusterrole=5spot-kubeconfig-reader \
             --serviceaccount={SYSTEM_NAMESPACE}:{ACCOUNT} --namespace=default"
        ))
        .await?;
    let cluster = bare.control_plane().management();
    let identity = ServiceAccountIdentity::from_manifests(cluster, &[], SYSTEM_NAMESPACE, ACCOUNT).await?;
    let flags = ["--management-nodes-namespace=default"];
    let program = Program::start(bare.directory(), &identity, "own-nodes", &flags).await?;
    program.is_ready().await?;

    let mut object = machine("desk");
    object["spec"]["infrastructureSpec"]["spec"] = json!({"address": "10.0.0.1"});
    bare.apply(&object).await?;
    let objects: Api<ScheduledMachine> = Api::namespaced(bare.admin(), "default");
    let is_lent = |object: &ScheduledMachine| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.phase == Some(Phase::Active) && status.node_ref.is_some())
    };
    let lent = wait::until_present(&objects, "desk", "to have its node", WITHIN, is_lent).await?;
    let node = lent.status.and_then(|status| status.node_ref).context("a node")?.name;
    Api::<Node>::all(bare.admin()).get(&node).await?;

    // A pod for the drain.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "work"},
        "spec": {
            "nodeName": node, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "registry.invalid/work"}],
        },
    });
    bare.apply(&pod).await?;
    let disable = json!({"spec": {"schedule": {"enabled": false}}});
    objects.patch("desk", &PatchParams::default(), &Patch::Merge(&disable)).await?;
    let is_returned = |object: &ScheduledMachine| {
        object.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Disabled))
    };
    wait::until_present(&objects, "desk", "to be returned", WITHIN, is_returned).await?;
    wait::until_gone(&Api::<Pod>::namespaced(bare.admin(), "default"), "work", WITHIN).await?;

    let asked = bare.asked(&identity)?;
    let refused: Vec<_> = asked.iter().filter(|request| request.code == Some(403)).collect();
    ensure!(refused.is_empty(), "forbidden: {refused:#?}");
    let evictions = asked.iter().filter(|request| request.object.subresource == "eviction");
    ensure!(evictions.count() > 0, "the pod was not evicted");
    program.stop().await
}
