//! How a Machine goes: one step at a time, in Cluster API's order.

use super::shape::Contract;
use super::{Facts, condition_status};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use std::time::Duration;

const PRE_DRAIN_HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
const PRE_TERMINATE_HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
const EXCLUDE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
const EXCLUDE_VOLUMES: &str = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";

/// Where a deletion stands: what is to be done, or waited for, next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// Somebody wants to do something before pods are evicted, and has not taken the annotation off.
    PreDrainHook,
    /// The Node is cordoned; pods are asked to go.
    Drain,
    /// No pod holds the Node, but volumes are still attached to it.
    VolumeDetach,
    /// Somebody wants to do something before the machine is taken away.
    PreTerminateHook,
    /// The machine is being given back.
    Infrastructure,
    /// The machine is gone; its bootstrap data follow.
    Bootstrap,
    /// Nothing of the machine is left but its Node.
    Node,
    /// Nothing is left at all.
    Finalizer,
}

impl Departure {
    /// The reason of the condition `Deleting`.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::PreDrainHook => "WaitingForPreDrainHook",
            Self::Drain => "DrainingNode",
            Self::VolumeDetach => "WaitingForVolumeDetach",
            Self::PreTerminateHook => "WaitingForPreTerminateHook",
            Self::Infrastructure => "WaitingForInfrastructureDeletion",
            Self::Bootstrap => "WaitingForBootstrapDeletion",
            Self::Node => "DeletingNode",
            Self::Finalizer => "DeletionCompleted",
        }
    }
}

/// The next step. `is_drained` once a look at the Node found no pod that has to go.
pub(super) fn next(facts: &Facts, contract: Contract, is_drained: bool, now: Timestamp) -> Departure {
    if has_hook(&facts.machine, PRE_DRAIN_HOOK) {
        Departure::PreDrainHook
    } else if !is_drained && drains(facts, contract, now) {
        Departure::Drain
    } else if waits_for_volumes(facts, contract, now) {
        Departure::VolumeDetach
    } else if has_hook(&facts.machine, PRE_TERMINATE_HOOK) {
        Departure::PreTerminateHook
    } else if facts.infrastructure.is_some() {
        Departure::Infrastructure
    } else if facts.bootstrap.is_some() {
        Departure::Bootstrap
    } else if facts.node.is_some() && may_touch_node(facts) {
        Departure::Node
    } else {
        Departure::Finalizer
    }
}

/// The hooks of a kind are annotations with that prefix, before a slash or alone.
fn has_hook(machine: &DynamicObject, hook: &str) -> bool {
    machine
        .annotations()
        .keys()
        .any(|key| key.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Cluster API leaves the Node alone if the Cluster is going too, or if its control plane is Cluster API's own and has
/// no other machine.
fn may_touch_node(facts: &Facts) -> bool {
    let Some(cluster) = &facts.cluster else {
        return false;
    };
    let is_external = facts
        .control_plane
        .as_ref()
        .is_none_or(|control_plane| control_plane.data["status"]["externalManagedControlPlane"] == true);
    cluster.metadata.deletion_timestamp.is_none() && is_external
}

fn drains(facts: &Facts, contract: Contract, now: Timestamp) -> bool {
    let is_kept =
        facts.infrastructure.as_ref().is_some_and(|object| object.metadata.deletion_timestamp.is_none());
    let began = &facts.machine.data["status"]["deletion"]["nodeDrainStartTime"];
    facts.node.is_some()
        && may_touch_node(facts)
        && is_kept
        && !facts.machine.annotations().contains_key(EXCLUDE_DRAINING)
        && !is_over(began.as_str(), contract.drain_timeout(&facts.machine), now)
}

fn waits_for_volumes(facts: &Facts, contract: Contract, now: Timestamp) -> bool {
    let Some(node) = facts.node.as_ref().filter(|_| may_touch_node(facts)) else {
        return false;
    };
    let is_attached =
        node.data["status"]["volumesAttached"].as_array().is_some_and(|volumes| !volumes.is_empty());
    let is_kept =
        facts.infrastructure.as_ref().is_some_and(|object| object.metadata.deletion_timestamp.is_none());
    let began = &facts.machine.data["status"]["deletion"]["waitForNodeVolumeDetachStartTime"];
    is_attached
        && is_kept
        && condition_status(node, "Ready") != "Unknown"
        && !facts.machine.annotations().contains_key(EXCLUDE_VOLUMES)
        && !is_over(began.as_str(), contract.volume_timeout(&facts.machine), now)
}

fn is_over(began: Option<&str>, timeout: Option<Duration>, now: Timestamp) -> bool {
    let (Some(began), Some(timeout)) = (began.and_then(|text| text.parse::<Timestamp>().ok()), timeout)
    else {
        return false;
    };
    now.duration_since(began) >= SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn object(value: Value) -> Arc<DynamicObject> {
        Arc::new(serde_json::from_value(value).expect("an object"))
    }

    fn facts(annotations: &Value) -> Facts {
        let plain = |name: &str| object(json!({"metadata": {"name": name}}));
        Facts {
            machine: object(json!({"metadata": {"name": "m", "annotations": annotations}})),
            cluster: Some(plain("c")),
            control_plane: None,
            bootstrap: Some(plain("b")),
            infrastructure: Some(plain("i")),
            node: Some(plain("n")),
        }
    }

    fn step(facts: &Facts, is_drained: bool) -> Departure {
        next(facts, Contract::V1Beta2, is_drained, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn parts_go_in_order() {
        let mut facts = facts(&json!({}));
        assert_eq!(step(&facts, false), Departure::Drain);
        assert_eq!(step(&facts, true), Departure::Infrastructure);
        facts.infrastructure = None;
        assert_eq!(step(&facts, false), Departure::Bootstrap, "without infrastructure nothing is drained");
        facts.bootstrap = None;
        assert_eq!(step(&facts, false), Departure::Node);
        facts.node = None;
        assert_eq!(step(&facts, false), Departure::Finalizer);
    }

    #[test]
    fn annotations_hold_or_skip_steps() {
        let hook = facts(&json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/test": ""}));
        assert_eq!(step(&hook, false), Departure::PreDrainHook);
        let hook = facts(&json!({"pre-terminate.delete.hook.machine.cluster.x-k8s.io/test": ""}));
        assert_eq!(step(&hook, false), Departure::Drain);
        assert_eq!(step(&hook, true), Departure::PreTerminateHook);
        assert_eq!(step(&facts(&json!({EXCLUDE_DRAINING: ""})), false), Departure::Infrastructure);
    }

    #[test]
    fn attached_volumes_are_waited_for_unless_excluded() {
        let node = object(json!({"metadata": {"name": "n"}, "status": {"volumesAttached": [{"name": "v"}]}}));
        let waiting = Facts { node: Some(node.clone()), ..facts(&json!({})) };
        assert_eq!(step(&waiting, true), Departure::VolumeDetach);
        let excluded = Facts { node: Some(node), ..facts(&json!({EXCLUDE_VOLUMES: ""})) };
        assert_eq!(step(&excluded, true), Departure::Infrastructure);
    }

    #[test]
    fn a_control_plane_of_its_own_leaves_the_node_alone() {
        let own =
            object(json!({"metadata": {"name": "p"}, "status": {"externalManagedControlPlane": false}}));
        let mut facts = Facts { control_plane: Some(own), ..facts(&json!({})) };
        assert_eq!(step(&facts, false), Departure::Infrastructure);
        (facts.infrastructure, facts.bootstrap) = (None, None);
        assert_eq!(step(&facts, false), Departure::Finalizer);
    }

    #[test]
    fn a_drain_ends_at_its_timeout() {
        let mut facts = facts(&json!({}));
        let machine = |began: &str| {
            object(json!({
                "metadata": {"name": "m"}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 10}},
                "status": {"deletion": {"nodeDrainStartTime": began}},
            }))
        };
        facts.machine = machine("1969-12-31T23:59:51Z");
        assert_eq!(step(&facts, false), Departure::Drain);
        facts.machine = machine("1969-12-31T23:59:50Z");
        assert_eq!(step(&facts, false), Departure::Infrastructure);
    }
}
