//! The admission policy, tested with an identity that has all rights on Nodes, so that every refusal comes from the
//! policy.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wire::{WireResponse, ask};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::bound::{self, BoundToken, reclaim_patch};

pub(crate) fn tests() -> Vec<Test> {
    tests![an_agent_may_annotate_its_own_node_and_nothing_else]
}

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// The API server takes a new policy into account within seconds.
const POLICY_WITHIN: Duration = Duration::from_secs(30);

async fn an_agent_may_annotate_its_own_node_and_nothing_else(context: Arc<TestContext>) -> TestResult {
    let cluster = context.workload();
    bound::install(cluster).await?;
    grant_all_on_nodes(&context, cluster).await?;
    let (own, other) = (context.cluster_scoped("own"), context.cluster_scoped("other"));
    bound::node(cluster, &own).await?;
    bound::node(cluster, &other).await?;
    let bound = BoundToken::on(cluster, &own).await?;
    let agent = bound::client(cluster, &bound.token).await?;
    let own_path = format!("/api/v1/nodes/{own}");
    until_in_force(&agent, &format!("/api/v1/nodes/{other}")).await?;

    let allowed = ask(&agent, Method::PATCH, &own_path, JSON_PATCH, Some(&reclaim_patch())).await?;
    ensure!(allowed.code == 200, "own node: {allowed:?}");
    ensure!(allowed.body["metadata"]["annotations"]["5spot.finos.org/reclaim-requested"] == "true");
    ensure!(allowed.body["metadata"]["annotations"]["kept"] == "annotation");

    for (what, path, body, message) in refusals(&own_path, &format!("/api/v1/nodes/{other}")) {
        let answer = ask(&agent, Method::PATCH, &path, MERGE, Some(&body)).await?;
        denied(what, &answer, message)?;
    }
    let other_path = format!("/api/v1/nodes/{other}");
    let foreign = ask(&agent, Method::PATCH, &other_path, JSON_PATCH, Some(&reclaim_patch())).await?;
    denied("another node", &foreign, "may only update its own Node")?;
    let deletion = ask(&agent, Method::DELETE, &own_path, "application/json", None).await?;
    denied("deletion", &deletion, "may only update Nodes")?;
    let new =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": context.cluster_scoped("new")}});
    let creation = ask(&agent, Method::POST, "/api/v1/nodes", "application/json", Some(&new)).await?;
    denied("creation", &creation, "may only update Nodes")?;

    let unbound = bound::client(cluster, &bound::token(cluster, None).await?).await?;
    let answer = ask(&unbound, Method::PATCH, &own_path, JSON_PATCH, Some(&reclaim_patch())).await?;
    denied("a token without a node", &answer, "not bound to a node")?;

    // Signed again with another end: what is refused is that it has passed.
    let key = context.clusters().control_plane().directory().join("pki/service-accounts.key");
    let key = std::fs::read_to_string(key)?;
    for (seconds, code) in [(600, 200), (-600, 401)] {
        let client = bound::client(cluster, &bound::ending_in(&bound.token, &key, seconds)?).await?;
        let path = format!("{own_path}?dryRun=All");
        let answer = ask(&client, Method::PATCH, &path, JSON_PATCH, Some(&reclaim_patch())).await?;
        ensure!(answer.code == code, "a token that ends in {seconds} s: {answer:?}");
    }

    // Another machine with the name of this Node: the patch itself refuses it.
    let mut of_another = reclaim_patch();
    of_another[0]["value"] = "ffffffffffffffffffffffffffffffff".into();
    let answer = ask(&agent, Method::PATCH, &own_path, JSON_PATCH, Some(&of_another)).await?;
    ensure!(answer.code == 422, "{answer:?}");

    ends_with_its_pod(&bound, &agent, &own_path).await
}

/// Changes that an agent must not make, and the message of the policy.
fn refusals(own: &str, other: &str) -> Vec<(&'static str, String, Value, &'static str)> {
    let of = |path: &str, what, body, message| (what, path.to_owned(), body, message);
    let metadata = |field: &str, value: Value| json!({"metadata": {field: value}});
    let long = "x".repeat(257);
    vec![
        of(own, "a label", metadata("labels", json!({"new": "label"})), "may not change labels"),
        of(own, "a label taken away", metadata("labels", json!({"kept": null})), "may not change labels"),
        of(
            own,
            "a finalizer",
            metadata("finalizers", json!(["example.org/x"])),
            "may not change labels, finalizers",
        ),
        of(
            own,
            "an owner",
            metadata(
                "ownerReferences",
                json!([{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]),
            ),
            "may not change labels, finalizers or owners",
        ),
        of(own, "a taint", json!({"spec": {"taints": []}}), "may not change the spec"),
        of(own, "cordon", json!({"spec": {"unschedulable": true}}), "may not change the spec"),
        of(
            own,
            "another annotation",
            metadata("annotations", json!({"other": "x"})),
            "its three annotations",
        ),
        of(
            own,
            "an annotation changed",
            metadata("annotations", json!({"kept": "x"})),
            "its three annotations",
        ),
        of(
            own,
            "an annotation taken away",
            metadata("annotations", json!({"kept": null})),
            "its three annotations",
        ),
        of(
            own,
            "a key that begins alike",
            metadata("annotations", json!({"5spot.finos.org/reclaim-requested-by": "x"})),
            "its three annotations",
        ),
        of(
            own,
            "a reason without bounds",
            metadata("annotations", json!({"5spot.finos.org/reclaim-reason": long})),
            "at most 256 characters",
        ),
        of(
            &format!("{own}/status"),
            "status",
            json!({"status": {"phase": "Terminated"}}),
            "may only update Nodes",
        ),
        of(other, "a label of another node", metadata("labels", json!({"new": "label"})), "its own Node"),
    ]
}

fn denied(what: &str, answer: &WireResponse, message: &str) -> anyhow::Result<()> {
    ensure!(answer.code == 422, "{what}: {answer:?}");
    let text = answer.message();
    ensure!(text.contains("5spot-reclaim-agent-own-node") && text.contains(message), "{what}: {text}");
    Ok(())
}

/// Grants the agent's account all rights on Nodes.
async fn grant_all_on_nodes(context: &TestContext, cluster: &Cluster) -> anyhow::Result<()> {
    let rbac = "rbac.authorization.k8s.io";
    let metadata = json!({"name": context.cluster_scoped("all-on-nodes")});
    let rules = json!([{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}]);
    let documents = [
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": bound::ACCOUNT, "namespace": "5spot-system"}],
        }),
    ];
    Ok(Applier::new(cluster.admin()).apply_all(&documents, context.namespace()).await?)
}

/// Waits until the policy refuses something. RBAC and policies take effect a moment after they were applied.
async fn until_in_force(agent: &Client, path: &str) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + POLICY_WITHIN;
    let body = json!({"metadata": {"annotations": {"probe": "x"}}});
    loop {
        let answer = ask(agent, Method::PATCH, &format!("{path}?dryRun=All"), MERGE, Some(&body)).await?;
        if answer.code == 422 {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < deadline, "the policy is not in force: {answer:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A token ends with its pod; the API server may remember it for ten seconds.
async fn ends_with_its_pod(bound: &BoundToken, agent: &Client, path: &str) -> TestResult {
    bound.delete_pod().await?;
    let deadline = tokio::time::Instant::now() + POLICY_WITHIN;
    loop {
        let answer = ask(agent, Method::PATCH, path, JSON_PATCH, Some(&reclaim_patch())).await?;
        if answer.code == 401 {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < deadline, "the token is still good: {answer:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
