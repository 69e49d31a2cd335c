//! The deletion of a Machine, step by step, in the order of Cluster API.

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

/// The state of a deletion: the next step, or what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionStep {
    /// A pre-drain hook annotation has not been removed yet.
    PreDrainHook,
    /// The Node is cordoned, and its pods are evicted.
    Drain,
    /// No pod blocks the drain, but volumes are still attached to the Node.
    VolumeDetach,
    /// A pre-terminate hook annotation has not been removed yet.
    PreTerminateHook,
    /// The infrastructure object is being deleted.
    Infrastructure,
    /// The infrastructure object is gone; the bootstrap object is being deleted.
    Bootstrap,
    /// Only the Node is left.
    Node,
    /// Nothing is left.
    Finalizer,
}

impl DeletionStep {
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

impl DeletionStep {
    /// The message of the condition. A drain adds the results of each pass.
    pub(super) fn message(self, facts: &Facts, now: Timestamp) -> String {
        let status = &facts.machine.data["status"]["deletion"];
        let since = |field: &str| {
            status[field]
                .as_str()
                .map_or_else(|| five_spot_apiserver::clock::whole_seconds(now), str::to_owned)
        };
        let kind = |part: &Option<std::sync::Arc<DynamicObject>>| {
            let types = part.as_ref().and_then(|part| part.types.as_ref());
            types.map(|types| types.kind.clone()).unwrap_or_default()
        };
        match self {
            Self::PreDrainHook => waiting_for(&facts.machine, "pre-drain", PRE_DRAIN_HOOK),
            Self::Drain => format!("Drain not completed yet (started at {}):", since("nodeDrainStartTime")),
            Self::VolumeDetach => format!(
                "Waiting for Node volumes to be detached (started at {})\n\
                 * Node with .status.volumesAttached entries not matching a PersistentVolume: {}",
                since("waitForNodeVolumeDetachStartTime"),
                attached(facts).join(", ")
            ),
            Self::PreTerminateHook => waiting_for(&facts.machine, "pre-terminate", PRE_TERMINATE_HOOK),
            Self::Infrastructure => format!("Waiting for {} to be deleted", kind(&facts.infrastructure)),
            Self::Bootstrap => format!("Waiting for {} to be deleted", kind(&facts.bootstrap)),
            Self::Node => "Deletion started".to_owned(),
            Self::Finalizer => "Deletion completed".to_owned(),
        }
    }
}

fn waiting_for(machine: &DynamicObject, which: &str, hook: &str) -> String {
    let hooks: Vec<&str> =
        machine.annotations().keys().map(String::as_str).filter(|key| is_hook(key, hook)).collect();
    format!("Waiting for {which} hooks to succeed (hooks: {})", hooks.join(","))
}

/// The volumes that are attached to the Node.
fn attached(facts: &Facts) -> Vec<&str> {
    let node = facts.node.as_ref().map(|node| &node.data["status"]["volumesAttached"]);
    let mut names: Vec<&str> = node
        .and_then(serde_json::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str())
        .collect();
    names.sort_unstable();
    names
}

/// The next step. `is_drained` is true after a drain pass that found no more pods to evict.
pub(super) fn next(facts: &Facts, contract: Contract, is_drained: bool, now: Timestamp) -> DeletionStep {
    if has_hook(&facts.machine, PRE_DRAIN_HOOK) && has_node(facts) && may_touch_node(facts) {
        DeletionStep::PreDrainHook
    } else if !is_drained && drains(facts, contract, now) {
        DeletionStep::Drain
    } else if waits_for_volumes(facts, contract, now) {
        DeletionStep::VolumeDetach
    } else if has_hook(&facts.machine, PRE_TERMINATE_HOOK) {
        DeletionStep::PreTerminateHook
    } else if facts.infrastructure.is_some() {
        DeletionStep::Infrastructure
    } else if facts.bootstrap.is_some() {
        DeletionStep::Bootstrap
    } else if facts.node.is_some() && may_touch_node(facts) {
        DeletionStep::Node
    } else {
        DeletionStep::Finalizer
    }
}

/// Returns true if the Machine has a hook of a kind: an annotation with this prefix, alone or before a slash.
fn has_hook(machine: &DynamicObject, hook: &str) -> bool {
    machine.annotations().keys().any(|key| is_hook(key, hook))
}

fn is_hook(key: &str, hook: &str) -> bool {
    key.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if the Machine ever had a Node, even if it is gone by now.
fn has_node(facts: &Facts) -> bool {
    facts.node.is_some() || !facts.machine.data["status"]["nodeRef"].is_null()
}

/// Cluster API keeps the Node if the Cluster or its control plane is being deleted. It also keeps it if there
/// is no externally managed control plane and no control plane Machine is left, because it then regards every
/// Node as the last one.
fn may_touch_node(facts: &Facts) -> bool {
    let stays = |object: &DynamicObject| object.metadata.deletion_timestamp.is_none();
    let Some(cluster) = &facts.cluster else {
        return false;
    };
    match &facts.control_plane {
        Some(control_plane) if !stays(control_plane) => return false,
        Some(control_plane) if control_plane.data["status"]["externalManagedControlPlane"] == true => {}
        Some(_) | None if facts.has_control_plane_machine => {}
        Some(_) | None => return false,
    }
    stays(cluster)
}

/// The steps before a pre-terminate hook are not repeated.
fn waited_for_end(facts: &Facts) -> bool {
    !facts.machine.data["status"]["deletion"]["waitForPreTerminateHookStartTime"].is_null()
}

fn drains(facts: &Facts, contract: Contract, now: Timestamp) -> bool {
    let is_kept =
        facts.infrastructure.as_ref().is_some_and(|object| object.metadata.deletion_timestamp.is_none());
    let began = &facts.machine.data["status"]["deletion"]["nodeDrainStartTime"];
    facts.node.is_some()
        && may_touch_node(facts)
        && is_kept
        && !waited_for_end(facts)
        && !facts.machine.annotations().contains_key(EXCLUDE_DRAINING)
        && !is_over(began.as_str(), contract.drain_timeout(&facts.machine), now)
}

fn waits_for_volumes(facts: &Facts, contract: Contract, now: Timestamp) -> bool {
    let Some(node) = facts.node.as_ref().filter(|_| may_touch_node(facts)) else {
        return false;
    };
    let is_kept =
        facts.infrastructure.as_ref().is_some_and(|object| object.metadata.deletion_timestamp.is_none());
    let began = &facts.machine.data["status"]["deletion"]["waitForNodeVolumeDetachStartTime"];
    !attached(facts).is_empty()
        && is_kept
        && !waited_for_end(facts)
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
            control_plane: Some(object(
                json!({"metadata": {"name": "p"}, "status": {"externalManagedControlPlane": true}}),
            )),
            bootstrap: Some(plain("b")),
            infrastructure: Some(plain("i")),
            node: Some(plain("n")),
            ..Facts::of_nothing()
        }
    }

    fn step(facts: &Facts, is_drained: bool) -> DeletionStep {
        next(facts, Contract::V1Beta2, is_drained, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn parts_go_in_order() {
        let mut facts = facts(&json!({}));
        assert_eq!(step(&facts, false), DeletionStep::Drain);
        assert_eq!(step(&facts, true), DeletionStep::Infrastructure);
        facts.infrastructure = None;
        assert_eq!(step(&facts, false), DeletionStep::Bootstrap, "without infrastructure nothing is drained");
        facts.bootstrap = None;
        assert_eq!(step(&facts, false), DeletionStep::Node);
        facts.node = None;
        assert_eq!(step(&facts, false), DeletionStep::Finalizer);
    }

    #[test]
    fn annotations_hold_or_skip_steps() {
        let hook = facts(&json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/test": ""}));
        assert_eq!(step(&hook, false), DeletionStep::PreDrainHook);
        let hook = facts(&json!({"pre-terminate.delete.hook.machine.cluster.x-k8s.io/test": ""}));
        assert_eq!(step(&hook, false), DeletionStep::Drain);
        assert_eq!(step(&hook, true), DeletionStep::PreTerminateHook);
        assert_eq!(step(&facts(&json!({EXCLUDE_DRAINING: ""})), false), DeletionStep::Infrastructure);
    }

    #[test]
    fn attached_volumes_are_waited_for_unless_excluded() {
        let node = object(json!({"metadata": {"name": "n"}, "status": {"volumesAttached": [{"name": "v"}]}}));
        let waiting = Facts { node: Some(node.clone()), ..facts(&json!({})) };
        assert_eq!(step(&waiting, true), DeletionStep::VolumeDetach);
        let excluded = Facts { node: Some(node), ..facts(&json!({EXCLUDE_VOLUMES: ""})) };
        assert_eq!(step(&excluded, true), DeletionStep::Infrastructure);
    }

    #[test]
    fn a_control_plane_of_its_own_leaves_the_node_alone() {
        let own =
            object(json!({"metadata": {"name": "p"}, "status": {"externalManagedControlPlane": false}}));
        let mut facts = Facts { control_plane: Some(own), ..facts(&json!({})) };
        assert_eq!(step(&facts, false), DeletionStep::Infrastructure);
        (facts.infrastructure, facts.bootstrap) = (None, None);
        assert_eq!(step(&facts, false), DeletionStep::Finalizer);
        let hook = json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/test": ""});
        let unknown = Facts { control_plane: None, ..self::facts(&hook) };
        assert_eq!(
            step(&unknown, false),
            DeletionStep::Infrastructure,
            "it is not known to be externally managed"
        );
        let with_machine = Facts { has_control_plane_machine: true, ..unknown };
        assert_eq!(step(&with_machine, false), DeletionStep::PreDrainHook);
    }

    #[test]
    fn steps_before_the_last_hook_are_not_repeated() {
        let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/test";
        let machine = object(json!({
            "metadata": {"name": "m", "annotations": {hook: ""}},
            "status": {"deletion": {"waitForPreTerminateHookStartTime": "1970-01-01T00:00:00Z"}},
        }));
        assert_eq!(step(&Facts { machine, ..facts(&json!({})) }, false), DeletionStep::PreTerminateHook);
    }

    #[test]
    fn each_step_reports_what_it_waits_for() {
        let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
        let mut facts = facts(&json!({format!("{hook}/a"): "", format!("{hook}/b"): ""}));
        let says = |step: DeletionStep, facts: &Facts| step.message(facts, Timestamp::UNIX_EPOCH);
        assert_eq!(
            says(DeletionStep::PreDrainHook, &facts),
            format!("Waiting for pre-drain hooks to succeed (hooks: {hook}/a,{hook}/b)")
        );
        facts.node = Some(object(json!({
            "metadata": {"name": "n"}, "status": {"volumesAttached": [{"name": "w"}, {"name": "v"}]},
        })));
        assert_eq!(
            says(DeletionStep::VolumeDetach, &facts),
            "Waiting for Node volumes to be detached (started at 1970-01-01T00:00:00Z)\n\
             * Node with .status.volumesAttached entries not matching a PersistentVolume: v, w"
        );
        facts.infrastructure =
            Some(object(json!({"apiVersion": "g/v1", "kind": "RemoteMachine", "metadata": {"name": "i"}})));
        assert_eq!(says(DeletionStep::Infrastructure, &facts), "Waiting for RemoteMachine to be deleted");
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
        assert_eq!(step(&facts, false), DeletionStep::Drain);
        facts.machine = machine("1969-12-31T23:59:50Z");
        assert_eq!(step(&facts, false), DeletionStep::Infrastructure);
    }
}
