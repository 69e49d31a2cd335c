//! CAPI Machines, in either version.

use super::{capi_paused, has_owner, terminating};
use crate::cache::managed_fields::Digest;
use crate::transport::valid_name::is_subdomain;
use five_spot_api::names::annotation;
use five_spot_core::Fingerprint;
use five_spot_core::world::{NodeName, Uid};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;

/// The facts that are kept of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineFacts {
    pub(crate) api_version: String,
    pub(crate) made_for: Option<String>,
    pub(crate) uid: Uid,
    pub(crate) created_at: Timestamp,
    pub(crate) terminating: bool,
    pub(crate) has_owner: bool,
    pub(crate) machine_hash: Option<Fingerprint>,
    pub(crate) applied_hash: Option<Fingerprint>,
    pub(crate) digest: Digest,
    pub(crate) capi_paused: bool,
    pub(crate) provider_id: Option<String>,
    pub(crate) node: Option<NodeName>,
    pub(crate) drain_excluded: bool,
    pub(crate) volume_wait_excluded: bool,
    /// Cluster API says that the Node is there and healthy.
    pub(crate) node_healthy: bool,
}

pub(crate) fn machine(object: &DynamicObject) -> MachineFacts {
    let annotations = object.annotations();
    let text = |pointer: &str| object.data.pointer(pointer).and_then(|value| value.as_str());
    let hash = |key: &str| annotations.get(key).map(|hash| Fingerprint::read(hash));
    MachineFacts {
        api_version: object.types.as_ref().map(|types| types.api_version.clone()).unwrap_or_default(),
        made_for: super::made_for(object),
        uid: Uid::from(object.uid().unwrap_or_default()),
        created_at: object.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        terminating: terminating(object),
        has_owner: has_owner(object),
        machine_hash: hash(annotation::MACHINE_HASH),
        applied_hash: hash(annotation::APPLIED_HASH),
        digest: Digest::of(object),
        capi_paused: capi_paused(object),
        provider_id: text("/spec/providerID").filter(|id| !id.is_empty()).map(str::to_owned),
        node: text("/status/nodeRef/name").filter(|name| is_subdomain(name)).map(NodeName::from),
        drain_excluded: annotations.contains_key(annotation::EXCLUDE_NODE_DRAINING),
        volume_wait_excluded: annotations.contains_key(annotation::EXCLUDE_WAIT_FOR_VOLUME_DETACH),
        node_healthy: has_condition(object, "NodeHealthy"),
    }
}

/// True if a condition is true, in either version of the API.
fn has_condition(object: &DynamicObject, kind: &str) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(|list| list.as_array());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}
