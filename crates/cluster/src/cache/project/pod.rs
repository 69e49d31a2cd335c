//! Pods on a node that is being emptied.

use crate::cache::drain_rules::{Labels, by_label};
use crate::cache::room::Footprint;
use crate::transport::core_kinds::Pod;
use crate::transport::key::ObjectKey;
use crate::transport::valid_name::is_subdomain;
use five_spot_api::names::label;
use five_spot_core::world::{NodeName, PodDrain, PodId, PodTermination, Uid};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Toleration;
use kube::ResourceExt;

/// On a Pod: it mirrors a static pod of the kubelet.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The taint of a cordoned Node, with the effect `NoSchedule`.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Bytes of labels that are kept of a pod.
const MOST_LABELS: usize = 8 << 10;

/// The facts that are kept of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFacts {
    pub(crate) id: PodId,
    pub(crate) mirror: bool,
    /// The DaemonSet that it belongs to, whether that still exists or not.
    pub(crate) daemon_set: Option<ObjectKey>,
    /// The creation time, if it tolerates a cordon.
    pub(crate) comes_back: Option<Timestamp>,
    pub(crate) finished: bool,
    pub(crate) terminating: Option<PodTermination>,
    /// The behaviour by its own label; without one, rules may apply.
    pub(crate) drain: Option<PodDrain>,
    pub(crate) labels: Labels,
}

impl Footprint for PodFacts {
    fn heap_bytes(&self) -> usize {
        /// The places of a key and a value in a map, and their own sizes.
        const LABEL: usize = 2 * size_of::<String>();
        self.id.namespace.len()
            + self.id.name.len()
            + self.id.uid.as_str().len()
            + self.daemon_set.as_ref().map_or(0, |key| key.namespace.len() + key.name.len())
            + self.labels.iter().map(|(key, value)| LABEL + key.len() + value.len()).sum::<usize>()
    }
}

pub(crate) fn pod(object: &Pod) -> PodFacts {
    let namespace = object.namespace().unwrap_or_default();
    let owner = object
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
    PodFacts {
        id: PodId {
            namespace: namespace.clone(),
            name: object.name_any(),
            uid: Uid::from(object.uid().unwrap_or_default()),
        },
        mirror: object.annotations().contains_key(MIRROR),
        daemon_set: owner
            .filter(|owner| is_subdomain(&owner.name))
            .map(|owner| ObjectKey::new(namespace, owner.name.clone())),
        comes_back: object.creation_timestamp().map(|made| made.0).filter(|_| tolerates_cordon(object)),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
        terminating: object.metadata.deletion_timestamp.as_ref().map(|until| PodTermination {
            until: until.0,
            grace: SignedDuration::from_secs(object.metadata.deletion_grace_period_seconds.unwrap_or(0)),
        }),
        drain: object.labels().get(label::DRAIN).and_then(|value| by_label(value)),
        labels: labels(object),
    }
}

/// The facts that are kept of a pod of a reclaim agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentPodFacts {
    pub(crate) node: NodeName,
    /// True if it is Ready and not about to end.
    pub(crate) is_ready: bool,
}

impl Footprint for AgentPodFacts {
    fn heap_bytes(&self) -> usize {
        self.node.as_str().len()
    }
}

pub(crate) fn agent_pod(object: &Pod) -> AgentPodFacts {
    let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    let node = object.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    AgentPodFacts {
        node: NodeName::from(node.filter(|name| is_subdomain(name)).unwrap_or_default()),
        is_ready: ready && object.metadata.deletion_timestamp.is_none(),
    }
}

/// The labels of a pod. One that has more of them than is sensible counts as one without: they are kept for every pod.
fn labels(object: &Pod) -> Labels {
    let bytes: usize = object.labels().iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes <= MOST_LABELS { object.labels().clone() } else { Labels::new() }
}

fn tolerates_cordon(pod: &Pod) -> bool {
    let tolerates = |toleration: &Toleration| {
        let exists = toleration.operator.as_deref() == Some("Exists");
        let no_value = toleration.value.as_deref().unwrap_or_default().is_empty();
        let key = toleration.key.as_deref().unwrap_or_default();
        let effect = toleration.effect.as_deref().unwrap_or_default();
        matches!(effect, "" | "NoSchedule")
            && (key == CORDON && (exists || no_value) || key.is_empty() && exists)
    };
    pod.spec.iter().filter_map(|spec| spec.tolerations.as_ref()).flatten().any(tolerates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn is_undeterred(tolerations: &Value) -> bool {
        let pod = json!({
            "metadata": {"name": "a", "creationTimestamp": "2026-11-16T08:00:00Z"},
            "spec": {"containers": [], "tolerations": tolerations},
        });
        super::pod(&serde_json::from_value(pod).unwrap()).comes_back.is_some()
    }

    #[test]
    fn an_agent_is_ready_while_its_pod_is_and_stays() {
        let facts = |metadata: Value, ready: &str| {
            let pod = json!({
                "metadata": metadata,
                "spec": {"containers": [], "nodeName": "desk-1"},
                "status": {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": ready}]},
            });
            agent_pod(&serde_json::from_value(pod).unwrap())
        };
        let node = NodeName::from("desk-1");
        assert_eq!(facts(json!({}), "True"), AgentPodFacts { node: node.clone(), is_ready: true });
        assert_eq!(facts(json!({}), "False"), AgentPodFacts { node: node.clone(), is_ready: false });
        let leaving = facts(json!({"deletionTimestamp": "2026-11-16T08:00:00Z"}), "True");
        assert_eq!(leaving, AgentPodFacts { node, is_ready: false });
        let strange = json!({"metadata": {}, "spec": {"containers": [], "nodeName": "x".repeat(5000)}});
        assert_eq!(agent_pod(&serde_json::from_value(strange).unwrap()).node.as_str(), "");
    }

    #[test]
    fn a_cordon_keeps_away_who_does_not_tolerate_it() {
        assert!(!is_undeterred(&json!([])));
        assert!(!is_undeterred(
            &json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}])
        ));
        assert!(!is_undeterred(&json!([{"operator": "Exists", "effect": "NoExecute"}])));
        assert!(!is_undeterred(&json!([{"key": CORDON, "value": "x"}])));
        assert!(is_undeterred(&json!([{"key": "other"}, {"operator": "Exists"}])));
        assert!(is_undeterred(&json!([{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}])));
        assert!(is_undeterred(&json!([{"key": CORDON}])));
    }
}
