//! The field names of the two versions of Cluster API's kinds.

use super::super::kinds::{CORE_GROUP, Kind, ObjectKey};
use jiff::SignedDuration;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// A version of Cluster API's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// Deprecated, but still in wide use.
    V1Beta1,
    /// The version that current releases store.
    V1Beta2,
}

/// A reference of a Machine, always in its own namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl Contract {
    /// The version's name.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// The version in which a kind is watched.
    pub(in super::super) fn of(kind: &Kind) -> Self {
        debug_assert_eq!(kind.group(), CORE_GROUP);
        if kind.version() == Self::V1Beta1.version() { Self::V1Beta1 } else { Self::V1Beta2 }
    }

    /// The drain timeout; `None` if unlimited.
    pub(super) fn drain_timeout(self, machine: &DynamicObject) -> Option<Duration> {
        self.timeout(machine, "nodeDrainTimeout")
    }

    /// The timeout for volumes to be detached; `None` if unlimited.
    pub(super) fn volume_timeout(self, machine: &DynamicObject) -> Option<Duration> {
        self.timeout(machine, "nodeVolumeDetachTimeout")
    }

    fn timeout(self, machine: &DynamicObject, field: &str) -> Option<Duration> {
        let spec = &machine.data["spec"];
        let timeout = match self {
            Self::V1Beta1 => {
                let written: SignedDuration = spec[field].as_str()?.parse().ok()?;
                Duration::try_from(written).ok()?
            }
            Self::V1Beta2 => Duration::from_secs(spec["deletion"][format!("{field}Seconds")].as_u64()?),
        };
        // Zero means unlimited in both versions.
        Some(timeout).filter(|timeout| !timeout.is_zero())
    }

    /// The reference to this object from another one in the namespace.
    pub(in super::super) fn reference(self, key: &ObjectKey) -> Value {
        let (kind, name) = (key.kind.kind(), &key.name);
        match self {
            Self::V1Beta1 => {
                let (api_version, namespace) = (key.kind.api_version(), &key.namespace);
                json!({"apiVersion": api_version, "kind": kind, "name": name, "namespace": namespace})
            }
            Self::V1Beta2 => json!({"apiGroup": key.kind.group(), "kind": kind, "name": name}),
        }
    }

    /// `status.nodeRef`.
    pub(super) fn node_reference(self, node: &DynamicObject) -> Value {
        let name = &node.metadata.name;
        match self {
            Self::V1Beta1 => {
                json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid})
            }
            Self::V1Beta2 => json!({"name": name}),
        }
    }

    /// The part of the status that says whether bootstrap data and infrastructure are ready.
    pub(super) fn readiness(self, bootstrap: bool, infrastructure: bool) -> Value {
        match self {
            Self::V1Beta1 => json!({"bootstrapReady": bootstrap, "infrastructureReady": infrastructure}),
            Self::V1Beta2 => {
                let mut initialization = json!({});
                if bootstrap {
                    initialization["bootstrapDataSecretCreated"] = true.into();
                }
                if infrastructure {
                    initialization["infrastructureProvisioned"] = true.into();
                }
                json!({"initialization": initialization})
            }
        }
    }
}

/// `{apiGroup, kind, name}` or `{apiVersion, kind, name, namespace}`.
pub(super) fn reference(value: &Value) -> Option<Reference> {
    let text = |field: &str| value[field].as_str().map(str::to_owned);
    let group = text("apiGroup")
        .or_else(|| text("apiVersion")?.split_once('/').map(|(group, _)| group.to_owned()))?;
    Some(Reference { group, kind: text("kind")?, name: text("name")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": spec})).expect("a Machine")
    }

    #[test]
    fn timeouts_are_text_in_one_version_and_numbers_in_the_other() {
        let old = machine(&json!({"nodeDrainTimeout": "1m30s"}));
        let new = machine(&json!({"deletion": {"nodeDrainTimeoutSeconds": 90}}));
        let expected = Some(Duration::from_secs(90));
        assert_eq!(Contract::V1Beta1.drain_timeout(&old), expected);
        assert_eq!(Contract::V1Beta2.drain_timeout(&new), expected);
        assert_eq!(Contract::V1Beta1.drain_timeout(&machine(&json!({"nodeDrainTimeout": "0s"}))), None);
        assert_eq!(Contract::V1Beta2.drain_timeout(&machine(&json!({}))), None);
    }

    #[test]
    fn both_forms_of_a_reference_mean_the_same() {
        let new = json!({"apiGroup": "g.io", "kind": "K", "name": "n"});
        let old = json!({"apiVersion": "g.io/v1", "kind": "K", "name": "n", "namespace": "default"});
        assert_eq!(reference(&new), reference(&old));
        assert_eq!(reference(&json!({"kind": "K"})), None);
    }
}
