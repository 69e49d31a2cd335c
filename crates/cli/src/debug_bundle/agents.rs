//! The reclaim agents of a cluster.

use super::bundle::Bundle;
use super::logs;
use super::read::{Reader, Selection};
use five_spot_api::{names, reclaim};

/// The most ConfigMaps and pods: one for each node with an agent.
const OBJECTS: usize = 2000;

/// The agents whose logs are read. Those that are not ready come first.
const LOGS: usize = 20;

/// Collects the agents of a cluster into a folder.
pub async fn collect(reader: &Reader<'_>, bundle: &mut Bundle, folder: &str) {
    let here = Selection { namespace: Some(names::SYSTEM_NAMESPACE), limit: OBJECTS, ..Selection::default() };
    let mut maps = reader.list(bundle, "", "configmaps", here).await;
    maps.retain(|map| {
        let name = map["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with(reclaim::CONFIG_NAME_PREFIX)
    });
    bundle.add_objects(
        &format!("{folder}agents/configmaps.yaml"),
        "the configurations of the reclaim agents",
        &maps,
    );
    let sets = reader.list(bundle, "apps", "daemonsets", here).await;
    bundle.add_objects(
        &format!("{folder}agents/daemonsets.yaml"),
        "the DaemonSet of the reclaim agents",
        &sets,
    );
    let mut pods =
        reader.list(bundle, "", "pods", Selection { labels: Some("app=5spot-reclaim-agent"), ..here }).await;
    bundle.add_objects(&format!("{folder}agents/pods.yaml"), "the pods of the reclaim agents", &pods);
    pods.sort_by_key(is_ready);
    if pods.len() > LOGS {
        bundle.miss(
            &format!("{folder}agents/logs"),
            &format!("there are {} agents, and {LOGS} logs are enough", pods.len()),
        );
    }
    for pod in pods.iter().take(LOGS) {
        logs::collect(reader, bundle, pod, &format!("{folder}agents/logs")).await;
    }
}

fn is_ready(pod: &serde_json::Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
