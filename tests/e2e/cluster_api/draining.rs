//! Drains by Cluster API, and Machines that it does not drain.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::kinds::ThirdPartyKind;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::machine::{
    CLUSTER_NAME, MachinePlan, MadeMachine, cluster, condition, condition_message, create, running,
};
use super::workload::{block_evictions, budgets, evictions, pod_on, pods};

/// The time limit: a drain of one pass and the deletions after it.
const GONE_WITHIN: Duration = Duration::from_secs(90);

pub(crate) fn tests() -> Vec<Test> {
    tests![
        deletion_drains_and_cascades,
        drain_passes_are_twenty_seconds_apart,
        drain_timeout_applies_at_the_next_pass_and_deletes_no_pod,
        excluding_the_drain_defeats_a_budget_and_leaves_the_pod,
        pods_labelled_skip_are_not_evicted,
        deleting_the_infrastructure_in_mid_drain_abandons_it,
        pre_drain_hook_holds_the_drain,
        pre_terminate_hook_holds_the_infrastructure,
        machine_drain_rules_are_honoured,
        control_plane_of_cluster_api_itself_skips_drain_and_node,
    ]
}

/// Evictions, then infrastructure, bootstrap, Node and Machine; the bootstrap data are deleted with their
/// owner.
async fn deletion_drains_and_cascades(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    made.delete().await?;
    made.until_gone(GONE_WITHIN).await?;
    let evicted = evictions(&context, "web")?;
    assert_eq!(evicted.first().and_then(|record| record.code), Some(201), "{evicted:?}");
    assert!(pods(&context).get_opt("web").await?.is_none());
    assert!(made.nodes().get_opt(&made.node()).await?.is_none(), "Cluster API deletes the Node itself");
    assert!(made.infrastructures().get_opt(&made.infrastructure()).await?.is_none());
    assert!(made.bootstraps().get_opt(&made.bootstrap()).await?.is_none());
    let deleted = |cluster: &Cluster, query: AuditQuery| -> anyhow::Result<jiff::Timestamp> {
        let query = query.verbs(&["delete"]);
        let records = cluster.audit_log().read(&query)?;
        let first = records.first().with_context(|| format!("no record of {query:?}"))?;
        Ok(first.received)
    };
    let own = |resource: &str| AuditQuery::all().namespace(context.namespace()).resource(resource);
    let order = [
        evicted[0].received,
        deleted(context.management(), own("remotemachines"))?,
        deleted(context.management(), own("k0sworkerconfigs"))?,
        deleted(context.workload(), AuditQuery::all().resource("nodes").name(&made.node()))?,
    ];
    assert!(order.is_sorted(), "pods, infrastructure, bootstrap, Node: {order:?}");
    let secrets: Api<Secret> = Api::namespaced(context.management().admin(), context.namespace());
    wait::until_gone(&secrets, &format!("{}-data", made.bootstrap()), GONE_WITHIN).await?;
    Ok(())
}

/// The reason why 5-Spot drains first: this drain retries only every 20 s.
async fn drain_passes_are_twenty_seconds_apart(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    made.delete().await?;
    let blocked = |machine: &DynamicObject| {
        condition(machine, "Deleting") == ("True".into(), "DrainingNode".into())
            && condition_message(machine, "Deleting").contains("web")
    };
    wait::until_present(&made.machines(), "m", "to name the blocked pod", GONE_WITHIN, blocked).await?;
    // Three passes: one at once, then two more.
    let lasting = Duration::from_secs(48);
    wait::while_lasting(&made.machines(), "m", "draining", lasting, |machine| machine.is_some_and(blocked))
        .await?;
    let attempts = evictions(&context, "web")?;
    assert!(attempts.len() >= 3, "{attempts:?}");
    assert!(attempts.iter().all(|record| record.code == Some(429)), "a budget answers 429: {attempts:?}");
    for pair in attempts.windows(2) {
        let apart = pair[1].received.duration_since(pair[0].received).as_secs_f64();
        assert!((15.0..30.0).contains(&apart), "passes are {apart} s apart");
    }
    assert!(made.nodes().get_opt(&made.node()).await?.is_some());
    budgets(&context).delete("web", &DeleteParams::default()).await?;
    made.until_gone(GONE_WITHIN).await
}

async fn drain_timeout_applies_at_the_next_pass_and_deletes_no_pod(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let plan = MachinePlan { drain_timeout_seconds: Some(1), ..MachinePlan::new("m") };
    let made = running(&context, &cluster, plan).await?;
    let pod = pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    made.delete().await?;
    // The first pass comes before any timeout is checked, the second 20 s later.
    let lasting = Duration::from_secs(12);
    wait::while_lasting(&made.nodes(), &made.node(), "existing", lasting, |node| node.is_some()).await?;
    made.until_gone(GONE_WITHIN).await?;
    let left = pods(&context).get_opt("web").await?;
    let left = left
        .filter(|left| left.metadata.uid == pod.metadata.uid && left.metadata.deletion_timestamp.is_none());
    assert!(left.is_some(), "at the timeout Cluster API goes on; it does not delete pods");
    Ok(())
}

/// The kill switch and emergency reclaims rely on this.
async fn excluding_the_drain_defeats_a_budget_and_leaves_the_pod(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let annotations = json!({ "machine.cluster.x-k8s.io/exclude-node-draining": "" });
    let made = running(&context, &cluster, MachinePlan { annotations, ..MachinePlan::new("m") }).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    made.delete().await?;
    made.until_gone(Duration::from_secs(20)).await?;
    assert_eq!(evictions(&context, "web")?, []);
    assert!(pods(&context).get_opt("web").await?.is_some(), "the pod stays on a Node that is gone");
    // Until the pod garbage collector notices, within a minute or so.
    wait::until_gone(&pods(&context), "web", Duration::from_secs(150)).await?;
    Ok(())
}

async fn pods_labelled_skip_are_not_evicted(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "skipped", &[("cluster.x-k8s.io/drain", "skip")]).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    made.delete().await?;
    made.until_gone(GONE_WITHIN).await?;
    assert_eq!(evictions(&context, "skipped")?, []);
    assert!(!evictions(&context, "web")?.is_empty());
    Ok(())
}

/// The drain of 5-Spot has to follow these rules too: they are in the management cluster and apply to pods of
/// the workload cluster.
async fn machine_drain_rules_are_honoured(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let rule = json!({
        "apiVersion": MACHINE_DRAIN_RULE.api_version(), "kind": MACHINE_DRAIN_RULE.kind,
        "metadata": { "name": "skip-ruled" },
        "spec": {
            "drain": { "behavior": "Skip" }, "pods": [{ "selector": { "matchLabels": { "app": "ruled" } } }],
        },
    });
    create(&context, MACHINE_DRAIN_RULE, rule).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "ruled", &[]).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    made.delete().await?;
    made.until_gone(GONE_WITHIN).await?;
    assert_eq!(evictions(&context, "ruled")?, []);
    assert!(!evictions(&context, "web")?.is_empty());
    Ok(())
}

const MACHINE_DRAIN_RULE: ThirdPartyKind = ThirdPartyKind {
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    kind: "MachineDrainRule",
    plural: "machinedrainrules",
};

/// 5-Spot deletes the Machine and never the infrastructure object, because the drain ends with it.
async fn deleting_the_infrastructure_in_mid_drain_abandons_it(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    block_evictions(&context, "web").await?;
    made.delete().await?;
    let draining = |machine: &DynamicObject| condition(machine, "Deleting").1 == "DrainingNode";
    wait::until_present(&made.machines(), "m", "to drain", GONE_WITHIN, draining).await?;
    made.infrastructures().delete(&made.infrastructure(), &DeleteParams::default()).await?;
    made.until_gone(GONE_WITHIN).await?;
    assert!(
        made.nodes().get_opt(&made.node()).await?.is_none(),
        "the Node is gone though the budget forbade it"
    );
    Ok(())
}

async fn pre_drain_hook_holds_the_drain(context: Arc<TestContext>) -> TestResult {
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/test";
    let made = held_by_hook(&context, hook, "WaitingForPreDrainHook").await?;
    assert_eq!(evictions(&context, "web")?, []);
    release_hook(&made, hook).await?;
    made.until_gone(GONE_WITHIN).await
}

async fn pre_terminate_hook_holds_the_infrastructure(context: Arc<TestContext>) -> TestResult {
    let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/test";
    let made = held_by_hook(&context, hook, "WaitingForPreTerminateHook").await?;
    assert!(!evictions(&context, "web")?.is_empty(), "the drain is over");
    let infrastructure = made.infrastructures().get(&made.infrastructure()).await?;
    assert!(infrastructure.metadata.deletion_timestamp.is_none());
    release_hook(&made, hook).await?;
    made.until_gone(GONE_WITHIN).await
}

/// A Machine with a pod on its node, which is deleted and waits for a hook with this reason.
async fn held_by_hook<'a>(
    context: &'a TestContext,
    hook: &str,
    reason: &str,
) -> anyhow::Result<MadeMachine<'a>> {
    let cluster = cluster(context).await?;
    let plan = MachinePlan { annotations: json!({ hook: "us" }), ..MachinePlan::new("m") };
    let made = running(context, &cluster, plan).await?;
    pod_on(context, &made.node(), "web", &[]).await?;
    made.delete().await?;
    let held = |machine: &DynamicObject| condition(machine, "Deleting").1 == reason;
    wait::until_present(&made.machines(), "m", "to wait for the hook", GONE_WITHIN, held).await?;
    Ok(made)
}

async fn release_hook(made: &MadeMachine<'_>, hook: &str) -> anyhow::Result<()> {
    let release = Patch::Merge(json!({ "metadata": { "annotations": { hook: null } } }));
    made.machines().patch("m", &PatchParams::default(), &release).await?;
    Ok(())
}

/// The stub control plane of these tests is externally managed: otherwise Cluster API skips its drain.
async fn control_plane_of_cluster_api_itself_skips_drain_and_node(context: Arc<TestContext>) -> TestResult {
    let cluster = context.capi_cluster(CLUSTER_NAME, ControlPlaneOwner::ClusterApi).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    made.delete().await?;
    made.until_gone(GONE_WITHIN).await?;
    assert_eq!(evictions(&context, "web")?, []);
    assert!(made.nodes().get_opt(&made.node()).await?.is_some(), "the Node is left behind");
    Ok(())
}
