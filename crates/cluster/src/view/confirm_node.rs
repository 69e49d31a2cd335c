//! Live reads of a Node and its pods.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::project;
use crate::cache::workload::{WorkloadLink, node_key};
use crate::transport::core_kinds::{Node, Pod};
use crate::transport::error::{CallError, explain, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::observed::Observed;
use five_spot_core::world::{FormerNode, NodeName, Uid};
use kube::api::{GetParams, ListParams, VersionMatch};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The most pods of one page of a list.
const POD_PAGE: u32 = 500;

/// Reads the Node of the Machine, and its pods if they are watched.
pub(super) async fn confirm_node(
    caches: &Caches,
    key: &ObjectKey,
    observed: &Observed,
) -> Result<(), CallError> {
    let Some(machine) = caches.machines.view(&machine_key(key)) else {
        confirm_former_node(caches, key, observed).await;
        return Ok(());
    };
    let Some(link) = &observed.link else { return Ok(()) };
    let Some(name) = machine.node else { return Ok(()) };
    let api: Api<Node> = Api::all(link.client.clone());
    let found = read(&api, name.as_str(), link.nodes.version(&node_key(&name))).await.map_err(|error| {
        CallError::new(Operation::new(Verb::Get, TargetKind::Node, node_key(&name)), error)
    })?;
    if let Some(node) = found {
        let version = node.resource_version().unwrap_or_default();
        link.nodes.put(node_key(&name), &version, project::node(&node));
    } else {
        // That it is gone counts only if this is still the cluster in which it was seen.
        link.identify_again().await?;
        link.nodes.remove(&node_key(&name));
    }
    if link.watched_pods(&name).is_some() { confirm_pods(link, &name).await } else { Ok(()) }
}

/// Reads a Node that should be gone with its Machine. A failure is logged, and nothing else waits for it.
async fn confirm_former_node(caches: &Caches, object: &ObjectKey, observed: &Observed) {
    match observed.world.former_node {
        FormerNode::LeftBehind | FormerNode::Cached => {}
        FormerNode::Gone | FormerNode::Unknown => return,
    }
    let (Some(link), Some(recorded)) = (&observed.former_link, &observed.world.status.node_ref) else {
        return;
    };
    let key = node_key(&NodeName::from(recorded.name.as_str()));
    let api: Api<Node> = Api::all(link.client.clone());
    match read(&api, &recorded.name, link.nodes.version(&key)).await {
        Ok(Some(node)) => {
            let uid = Uid::from(node.uid().unwrap_or_default());
            caches.memories.update(object, |memory| memory.left_behind = Some(uid));
        }
        Ok(None) => link.nodes.remove(&key),
        Err(error) => {
            tracing::debug!(error = explain(&error), node = recorded.name, "failed to read the Node");
        }
    }
}

async fn confirm_pods(link: &WorkloadLink, node: &NodeName) -> Result<(), CallError> {
    let Some(store) = link.watched_pods(node) else { return Ok(()) };
    let api: Api<Pod> = Api::all(link.client.clone());
    let mut parameters = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(POD_PAGE);
    if let Some(latest) = store.latest() {
        // An older list would bring pods back that are gone, and hide new ones.
        parameters = parameters.at(&latest).matching(VersionMatch::NotOlderThan);
    }
    let mut there = Vec::new();
    loop {
        let page = api.list(&parameters).await.map_err(|error| {
            CallError::new(Operation::new(Verb::List, TargetKind::Pod, node_key(node)), error)
        })?;
        for pod in &page.items {
            let version = pod.resource_version().unwrap_or_default();
            store.put(ObjectKey::of(pod), &version, project::pod(pod));
            there.push(ObjectKey::of(pod));
        }
        // A pod that is not listed is gone at this version, even if a watch that lags still shows it.
        store.note_version(&page.metadata.resource_version.unwrap_or_default());
        let Some(next) = page.metadata.continue_.filter(|next| !next.is_empty()) else { break };
        parameters =
            ListParams { resource_version: None, version_match: None, ..parameters.continue_token(&next) };
    }
    for key in store.keys() {
        if !there.contains(&key) {
            store.remove(&key);
        }
    }
    Ok(())
}

/// Reads an object, not older than `known`: an older answer, from a server that lags behind its peers, could say that the
/// object does not exist.
pub(super) async fn read<K>(api: &Api<K>, name: &str, known: Option<String>) -> Result<Option<K>, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let parameters = GetParams { resource_version: known };
    or_absent(api.get_with(name, &parameters).await)
}
