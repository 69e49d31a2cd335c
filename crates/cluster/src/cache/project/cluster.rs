//! CAPI Clusters and namespaces.

use super::pause;
use five_spot_api::names::annotation;
use five_spot_core::world::{ClusterView, PauseLevel, Uid};
use jiff::Timestamp;
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

/// The facts that are kept of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceFacts {
    /// Our pause annotation.
    pub(crate) pause: Option<PauseLevel>,
    /// The time until which the brake holds no removal, on the namespace of the controller.
    pub(crate) allow_removals: Option<Timestamp>,
}

/// The annotations of a namespace. A time that cannot be read allows nothing.
pub(crate) fn namespace(object: &PartialObjectMeta<Namespace>) -> NamespaceFacts {
    let allowed = object.annotations().get(annotation::ALLOW_REMOVALS);
    NamespaceFacts { pause: pause(object), allow_removals: allowed.and_then(|time| time.trim().parse().ok()) }
}
