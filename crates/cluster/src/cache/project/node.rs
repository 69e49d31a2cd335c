//! Nodes, and the ConfigMaps of reclaim agents beside them.

use crate::cache::room::Footprint;
use crate::transport::core_kinds::Node;
use five_spot_api::NodeTaint;
use five_spot_api::TaintEffect;
use five_spot_api::names::{annotation, label};
use five_spot_api::reclaim::{CONFIG_NAME_PREFIX, REQUESTED, REQUESTED_TRUE, ReclaimRequest};
use five_spot_core::world::{NodeName, Readiness, TaintId, Uid};
use five_spot_core::{Fingerprint, text};
use k8s_openapi::api::core::v1::{ConfigMap, Taint};
use kube::ResourceExt;
use kube::api::PartialObjectMeta;
use serde::Deserialize;

/// Bytes of any text that is kept of a Node: provider ids are paths of a few hundred.
const MOST_TEXT: usize = 1024;

/// Taints that are kept of a Node. A Node has a few, and an object of ours at most 32.
const MOST_TAINTS: usize = 128;

/// Bytes that are kept of a value that does not count.
const MOST_IGNORED: usize = 64;

/// The facts that are kept of a Node. Heartbeats are not among them, so that they change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) uid: Uid,
    pub(crate) provider_id: Option<String>,
    pub(crate) readiness: Readiness,
    pub(crate) unschedulable: bool,
    /// The object that did it, as `namespace/name`.
    pub(crate) cordoned_by: Option<String>,
    pub(crate) taints: Vec<NodeTaint>,
    pub(crate) owned_taints: Vec<TaintId>,
    pub(crate) agent_label: bool,
    pub(crate) reclaim: Option<ReclaimRequest>,
    /// The value of the reclaim annotation, if it is not the one that counts.
    pub(crate) ignored_request: Option<Box<str>>,
}

impl Footprint for NodeFacts {
    fn heap_bytes(&self) -> usize {
        let taint = |taint: &NodeTaint| {
            size_of::<NodeTaint>() + taint.key.len() + taint.value.as_ref().map_or(0, String::len)
        };
        let reclaim = |request: &ReclaimRequest| request.reason.len();
        self.uid.as_str().len()
            + self.provider_id.as_ref().map_or(0, String::len)
            + self.cordoned_by.as_ref().map_or(0, String::len)
            + self.taints.iter().map(taint).sum::<usize>()
            + self.owned_taints.iter().map(|id| size_of::<TaintId>() + id.key.len()).sum::<usize>()
            + self.reclaim.as_ref().map_or(0, reclaim)
            + self.ignored_request.as_ref().map_or(0, |value| value.len())
    }
}

pub(crate) fn node(object: &Node) -> NodeFacts {
    let spec = object.spec.clone().unwrap_or_default();
    let annotations = object.annotations();
    NodeFacts {
        uid: Uid::from(object.uid().unwrap_or_default()),
        provider_id: spec.provider_id.filter(|id| !id.is_empty() && id.len() <= MOST_TEXT),
        readiness: readiness(object),
        unschedulable: spec.unschedulable.unwrap_or(false),
        cordoned_by: annotations.get(annotation::CORDONED_BY).filter(|text| text.len() <= MOST_TEXT).cloned(),
        taints: spec.taints.unwrap_or_default().iter().filter_map(taint).take(MOST_TAINTS).collect(),
        owned_taints: annotations.get(annotation::APPLIED_TAINTS).map(|text| owned(text)).unwrap_or_default(),
        agent_label: object.labels().get(label::RECLAIM_AGENT).map(String::as_str)
            == Some(label::RECLAIM_AGENT_ENABLED),
        reclaim: ReclaimRequest::from_annotations(annotations).map(|request| ReclaimRequest {
            reason: text::bounded(&request.reason, text::MAX_FIELD).into_owned(),
            ..request
        }),
        ignored_request: annotations
            .get(REQUESTED)
            .filter(|value| *value != REQUESTED_TRUE)
            .map(|value| text::bounded(value, MOST_IGNORED).into()),
    }
}

fn readiness(object: &Node) -> Readiness {
    let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    match ready.map(|condition| condition.status.as_str()) {
        Some("True") => Readiness::Ready,
        Some("Unknown") => Readiness::Unreachable,
        Some(_) | None => Readiness::NotReady,
    }
}

fn taint(taint: &Taint) -> Option<NodeTaint> {
    // The API server holds keys and values to less than this.
    let bytes = taint.key.len() + taint.value.as_ref().map_or(0, String::len);
    if bytes > MOST_TEXT {
        return None;
    }
    // An effect that this program does not know is left out here, and left alone when taints are written.
    let effect = TaintEffect::ALL.into_iter().find(|effect| effect.as_str() == taint.effect)?;
    Some(NodeTaint { key: taint.key.clone(), value: taint.value.clone(), effect })
}

/// The record of our own taints. One that cannot be read owns nothing, which is the safe side.
fn owned(text: &str) -> Vec<TaintId> {
    #[derive(Deserialize)]
    struct Entry {
        key: String,
        effect: TaintEffect,
    }
    let entries: Vec<Entry> = serde_json::from_str(text).unwrap_or_default();
    let entries = entries.into_iter().filter(|entry| entry.key.len() <= MOST_TEXT).take(MOST_TAINTS);
    entries.map(|Entry { key, effect }| TaintId { key, effect }).collect()
}

/// The facts that are kept of an agent's ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentConfigFacts {
    pub(crate) node: NodeName,
    /// The `ScheduledMachine`, as `namespace/name`.
    pub(crate) made_for: Option<String>,
    pub(crate) rendered: Option<Fingerprint>,
    /// The UID of the Node that it was written for.
    pub(crate) node_uid: Option<Uid>,
}

impl Footprint for AgentConfigFacts {
    fn heap_bytes(&self) -> usize {
        self.node.as_str().len()
            + self.made_for.as_ref().map_or(0, String::len)
            + self.node_uid.as_ref().map_or(0, |uid| uid.as_str().len())
    }
}

pub(crate) fn agent_config(object: &PartialObjectMeta<ConfigMap>) -> AgentConfigFacts {
    AgentConfigFacts {
        node: agent_node(&object.name_any()),
        made_for: object
            .annotations()
            .get(annotation::MADE_FOR)
            .filter(|text| text.len() <= MOST_TEXT)
            .cloned(),
        rendered: object.annotations().get(annotation::AGENT_HASH).map(|hash| Fingerprint::read(hash)),
        node_uid: object
            .annotations()
            .get(annotation::AGENT_NODE_UID)
            .filter(|uid| uid.len() <= MOST_TEXT)
            .map(|uid| Uid::from(uid.as_str())),
    }
}

/// The node that an agent's ConfigMap is for, by its name.
pub(crate) fn agent_node(name: &str) -> NodeName {
    NodeName::from(name.strip_prefix(CONFIG_NAME_PREFIX).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn requested(value: &str) -> NodeFacts {
        let annotations = json!({REQUESTED: value, "5spot.finos.org/reclaim-reason": "x".repeat(100_000)});
        let object = json!({"metadata": {"name": "a", "annotations": annotations}});
        node(&serde_json::from_value(object).expect("a Node"))
    }

    #[test]
    fn a_request_is_bounded_and_another_value_is_kept_for_the_log() {
        assert_eq!(requested("true").reclaim.expect("a request").reason.len(), text::MAX_FIELD);
        assert_eq!(requested("true").ignored_request, None);
        assert_eq!(requested("yes").reclaim, None);
        assert_eq!(requested("yes").ignored_request.as_deref(), Some("yes"));
        assert!(requested(&"y".repeat(10_000)).ignored_request.expect("a value").len() <= MOST_IGNORED);
    }
}
