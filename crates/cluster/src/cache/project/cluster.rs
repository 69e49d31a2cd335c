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
    /// True if that annotation is set and is no time.
    pub(crate) is_allowance_unreadable: bool,
}

/// The annotations of a namespace. A time that cannot be read allows nothing.
pub(crate) fn namespace(object: &PartialObjectMeta<Namespace>) -> NamespaceFacts {
    let allowed = object.annotations().get(annotation::ALLOW_REMOVALS);
    let allow_removals: Option<Timestamp> = allowed.and_then(|time| time.trim().parse().ok());
    NamespaceFacts {
        pause: pause(object),
        allow_removals,
        is_allowance_unreadable: allowed.is_some() && allow_removals.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_allowance_of_removals_is_a_time_with_an_offset() {
        let facts = |allowed: &str| {
            let metadata =
                json!({"name": "5spot-system", "annotations": {annotation::ALLOW_REMOVALS: allowed}});
            namespace(&serde_json::from_value(json!({"metadata": metadata})).expect("a namespace"))
        };
        let until = facts(" 2026-11-18T20:00:00+01:00 ");
        assert_eq!(until.allow_removals, "2026-11-18T19:00:00Z".parse().ok());
        assert!(!until.is_allowance_unreadable);
        for garbage in ["", "true", "2026-11-18T20:00:00", "tomorrow", "10000-01-01T00:00:00Z"] {
            let read = facts(garbage);
            assert_eq!((read.allow_removals, read.is_allowance_unreadable), (None, true), "{garbage}");
        }
    }
}
