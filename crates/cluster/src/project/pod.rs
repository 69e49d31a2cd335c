//! Pods on a node that is being emptied.

use crate::drain_rules::{Labels, by_label};
use crate::key::ObjectKey;
use five_spot_api::names::label;
use five_spot_core::world::{PodDrain, PodId, PodTermination, Uid};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// On a Pod: it mirrors a static pod of the kubelet.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What is kept of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFacts {
    pub(crate) id: PodId,
    pub(crate) mirror: bool,
    /// The DaemonSet that it belongs to, whether that still exists or not.
    pub(crate) daemon_set: Option<ObjectKey>,
    pub(crate) finished: bool,
    pub(crate) terminating: Option<PodTermination>,
    /// What its own label says of it; without one, rules may.
    pub(crate) drain: Option<PodDrain>,
    pub(crate) labels: Labels,
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
        daemon_set: owner.map(|owner| ObjectKey::new(namespace, owner.name.clone())),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
        terminating: object.metadata.deletion_timestamp.as_ref().map(|until| PodTermination {
            until: until.0,
            grace: SignedDuration::from_secs(object.metadata.deletion_grace_period_seconds.unwrap_or(0)),
        }),
        drain: object.labels().get(label::DRAIN).and_then(|value| by_label(value)),
        labels: object.labels().clone(),
    }
}
