//! Nodes and Pods with the fields that the controller reads. The parser skips all others, which are most of an object: the
//! full types have several hundred fields, and their parsers alone would be a tenth of the program. Leases too, of which
//! every one has to be read, whatever somebody has written into it.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::coordination;
use k8s_openapi::api::core::v1::{self, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// A Node.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Node {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Option<NodeSpec>,
    pub(crate) status: Option<NodeStatus>,
}

/// The spec of a Node.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(crate) provider_id: Option<String>,
    pub(crate) unschedulable: Option<bool>,
    pub(crate) taints: Option<Vec<Taint>>,
}

/// The status of a Node.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeStatus {
    pub(crate) conditions: Option<Vec<Condition>>,
}

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Pod {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Option<PodSpec>,
    pub(crate) status: Option<PodStatus>,
}

/// The spec of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PodSpec {
    #[serde(rename = "nodeName")]
    pub(crate) node_name: Option<String>,
    pub(crate) tolerations: Option<Vec<Toleration>>,
}

/// The status of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PodStatus {
    pub(crate) phase: Option<String>,
    pub(crate) conditions: Option<Vec<Condition>>,
}

/// A condition of a Node or a Pod.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Condition {
    #[serde(rename = "type", default)]
    pub(crate) type_: String,
    #[serde(default)]
    pub(crate) status: String,
}

/// A Lease.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Lease {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Option<LeaseSpec>,
}

/// The spec of a Lease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    pub(crate) holder_identity: Option<String>,
    pub(crate) lease_duration_seconds: Option<i32>,
    #[serde(default, deserialize_with = "readable_time")]
    pub(crate) acquire_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "readable_time")]
    pub(crate) renew_time: Option<Timestamp>,
    pub(crate) lease_transitions: Option<i32>,
}

/// Reads a time. The API server accepts some that this program cannot represent, such as the end of the year 9999: they count
/// as absent, or one of them would make the whole list unreadable.
fn readable_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

impl From<coordination::v1::Lease> for Lease {
    fn from(lease: coordination::v1::Lease) -> Self {
        let spec = lease.spec.map(|spec| LeaseSpec {
            holder_identity: spec.holder_identity,
            lease_duration_seconds: spec.lease_duration_seconds,
            acquire_time: spec.acquire_time.map(|time| time.0),
            renew_time: spec.renew_time.map(|time| time.0),
            lease_transitions: spec.lease_transitions,
        });
        Self { metadata: lease.metadata, spec }
    }
}

/// Serves a type at the address of the full type.
macro_rules! resource_of {
    ($kind:ident, $full:ty) => {
        impl Resource for $kind {
            type DynamicType = ();
            type Scope = <$full as Resource>::Scope;

            fn kind((): &()) -> Cow<'_, str> {
                <$full as Resource>::kind(&())
            }

            fn group((): &()) -> Cow<'_, str> {
                <$full as Resource>::group(&())
            }

            fn version((): &()) -> Cow<'_, str> {
                <$full as Resource>::version(&())
            }

            fn plural((): &()) -> Cow<'_, str> {
                <$full as Resource>::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource_of!(Node, v1::Node);
resource_of!(Pod, v1::Pod);
resource_of!(Lease, coordination::v1::Lease);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_those_of_the_full_types() {
        assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
        assert_eq!(Pod::url_path(&(), Some("shop")), "/api/v1/namespaces/shop/pods");
        assert_eq!(
            Lease::url_path(&(), Some("5spot-system")),
            "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases"
        );
    }

    #[test]
    fn a_lease_is_read_whatever_times_are_in_it() {
        let lease = |time: &str| -> Lease {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "5spot-leader", "resourceVersion": "7"},
                "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "acquireTime": null, "renewTime": time},
            });
            serde_json::from_value(lease).expect("a Lease")
        };
        let renewed = |time| lease(time).spec.and_then(|spec| spec.renew_time);
        let time = "2026-11-18T18:00:00.000001Z";
        assert_eq!(renewed(time), time.parse().ok());
        for unreadable in ["9999-12-31T23:59:59.999999Z", "soon", ""] {
            assert_eq!(renewed(unreadable), None, "{unreadable}");
            let holder = lease(unreadable).spec.and_then(|spec| spec.holder_identity);
            assert_eq!(holder.as_deref(), Some("a_1"), "{unreadable}");
        }
    }

    #[test]
    fn other_fields_are_skipped_whatever_is_in_them() {
        let pod: Pod = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-0"},
            "spec": {"nodeName": "desk-1", "containers": [{"name": "web", "ports": "none"}], "volumes": 1},
            "status": {"phase": "Running", "conditions": null},
        }))
        .expect("a Pod");
        assert_eq!(pod.metadata.name.as_deref(), Some("web-0"));
        assert_eq!(pod.spec.and_then(|spec| spec.node_name).as_deref(), Some("desk-1"));
        assert_eq!(pod.status.and_then(|status| status.phase).as_deref(), Some("Running"));
        let node: Node = serde_json::from_value(json!({
            "spec": {"providerID": "metal://1", "taints": [{"key": "a", "effect": "NoSchedule"}], "podCIDR": 1},
            "status": {"images": [], "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": ""}]},
        }))
        .expect("a Node");
        assert_eq!(node.spec.and_then(|spec| spec.provider_id).as_deref(), Some("metal://1"));
        assert_eq!(node.status.and_then(|status| status.conditions).map_or(0, |all| all.len()), 1);
    }
}
