//! Nodes and Pods with the fields that the controller reads. The parser skips all others, which are most of an object: the
//! full types have several hundred fields, and their parsers alone would be a tenth of the program.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{self, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

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

/// Serves a type at the address of the full type.
macro_rules! resource_of {
    ($kind:ident) => {
        impl Resource for $kind {
            type DynamicType = ();
            type Scope = <v1::$kind as Resource>::Scope;

            fn kind((): &()) -> Cow<'_, str> {
                v1::$kind::kind(&())
            }

            fn group((): &()) -> Cow<'_, str> {
                v1::$kind::group(&())
            }

            fn version((): &()) -> Cow<'_, str> {
                v1::$kind::version(&())
            }

            fn plural((): &()) -> Cow<'_, str> {
                v1::$kind::plural(&())
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

resource_of!(Node);
resource_of!(Pod);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_those_of_the_full_types() {
        assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
        assert_eq!(Pod::url_path(&(), Some("shop")), "/api/v1/namespaces/shop/pods");
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
