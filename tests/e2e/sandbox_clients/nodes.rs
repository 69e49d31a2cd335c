//! Operations of administrators on Nodes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_apiserver::Clock;
use five_spot_standins::{StandInSettings, StandIns, Timing};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use super::server::{Server, with_both};

pub(crate) fn tests() -> Vec<Test> {
    tests![nodes_are_cordoned_and_tainted, a_node_is_drained_when_its_budget_allows]
}

async fn nodes_are_cordoned_and_tainted(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        let name = format!("{}-node", server.namespace);
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        server.ok_with("create -f -", &node.to_string()).await?;
        server.ok(&format!("cordon {name}")).await?;
        server.ok(&format!("cordon {name}")).await?;
        ensure!(server.field(&format!("node/{name}"), ".spec.unschedulable").await? == "true");
        server.ok(&format!("uncordon {name}")).await?;
        server.ok(&format!("taint node {name} team=red:NoSchedule")).await?;
        let refused = server.run(&format!("taint node {name} team=blue:NoSchedule")).await?;
        ensure!(refused.code == Some(1), "{}", refused.text);
        server.ok(&format!("taint node {name} team=blue:NoSchedule --overwrite")).await?;
        let taints = server.field(&format!("node/{name}"), ".spec.taints[?(@.key==\"team\")].value").await?;
        ensure!(taints == "blue", "{taints}");
        server.ok(&format!("taint node {name} team-")).await?;
        server.run(&format!("taint node {name} team-")).await?;
        server.ok(&format!("label node {name} zone=a")).await?;
        server.ok(&format!("get nodes -l zone=a --field-selector=metadata.name={name} -o name")).await?;
        server.ok(&format!("delete node {name}")).await?;
        Ok(())
    })
    .await
}

/// Needs the stand-in for kubelets, which ends pods.
async fn a_node_is_drained_when_its_budget_allows(context: Arc<TestContext>) -> TestResult {
    let mut server = Server::embedded(&context).await?;
    let at_once = Duration::from_millis(10);
    let timing = Timing { node_ready: at_once, pod_start: at_once, pod_stop: at_once, ..Timing::default() };
    let client = || server.api().client("default");
    let stand_ins = StandIns::new(client(), client(), Clock::system(), StandInSettings::new(timing));
    let _playing = AbortOnDrop(tokio::spawn(stand_ins.run()));
    for node in ["left", "right"] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
        server.ok_with("create -f -", &node.to_string()).await?;
    }
    server.ok("wait --for=condition=Ready node --all --timeout=30s").await?;
    server.ok("cordon right").await?;
    let labels = json!({"app": "web"});
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
                },
            },
        },
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}},
        },
    ]});
    server.ok_with("apply -f -", &manifest.to_string()).await?;
    server.ok("rollout status deploy/web --timeout=30s").await?;
    let held = server.run("drain left --timeout=2s").await?;
    ensure!(held.code == Some(1), "{}", held.text);
    ensure!(
        held.text.contains("Cannot evict pod as it would violate the pod's disruption budget"),
        "{}",
        held.text
    );
    server.ok("delete pdb web").await?;
    server.ok("uncordon right").await?;
    let drained = server.ok("drain left --timeout=30s").await?;
    ensure!(drained.contains("node/left drained"), "{drained}");
    server.ok("rollout status deploy/web --timeout=30s").await?;
    let nodes = server.field("pods", ".items[*].spec.nodeName").await?;
    ensure!(nodes == "right right", "{nodes}");
    let wide = server.ok("get pods -o wide").await?;
    ensure!(wide.matches("Running").count() == 2, "{wide}");
    let described = server.ok("describe node left").await?;
    ensure!(described.contains("Unschedulable:      true"), "{described}");
    Ok(())
}

/// Ends a task with the test that started it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
