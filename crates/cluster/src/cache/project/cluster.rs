//! CAPI Clusters and namespaces.

use super::pause;
use five_spot_core::world::{ClusterView, PauseLevel, Uid};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{DynamicObject, PartialObjectMeta};

/// The facts that are kept of a CAPI Cluster.
pub(crate) type ClusterFacts = ClusterView;

/// A CAPI Cluster, in either version.
pub(crate) fn cluster(object: &DynamicObject) -> ClusterFacts {
    ClusterView {
        uid: Uid::from(object.uid().unwrap_or_default()),
        paused: object.data["spec"]["paused"].as_bool().unwrap_or(false),
        terminating: object.metadata.deletion_timestamp.is_some(),
    }
}

/// The fact that is kept of a namespace: our pause annotation.
pub(crate) fn namespace_pause(object: &PartialObjectMeta<Namespace>) -> Option<PauseLevel> {
    pause(object)
}
