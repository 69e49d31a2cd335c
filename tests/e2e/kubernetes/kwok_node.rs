//! A Node that is Ready and does not change any more.

use std::time::Duration;

use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

/// The time limit: kwok makes a Node Ready within a second; its taints are removed a moment later.
const READY_WITHIN: Duration = Duration::from_mins(1);

pub(super) fn nodes(context: &TestContext) -> Api<Node> {
    Api::all(context.workload().admin())
}

/// Creates the Node of a context and waits until the node controller has removed the taint of a new Node.
pub(crate) async fn ready_node(context: &TestContext) -> anyhow::Result<Node> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": context.cluster_scoped("node"), "annotations": { "kwok.x-k8s.io/node": "fake" },
        },
    });
    let created = nodes(context).create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let settled =
        |node: &Node| is_ready(node) && node.spec.as_ref().is_some_and(|spec| spec.taints.is_none());
    Ok(wait::until_present(&nodes(context), &created.name_any(), "to be Ready", READY_WITHIN, settled)
        .await?)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .is_some_and(|conditions| conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
}
