//! The status of a Machine, in both contract versions.

use super::conditions::{Condition, merged};
use super::deletion::DeletionStep;
use super::provisioning;
use super::shape::Contract;
use super::{Facts, condition_status};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The step of a deletion, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) deletion: DeletionStep,
    pub(super) message: String,
}

/// The status of a Machine, as a merge patch.
pub(super) fn status(facts: &Facts, contract: Contract, leaving: Option<&Leaving>, now: Timestamp) -> Value {
    let machine = &facts.machine;
    let has_data = !machine.data["spec"]["bootstrap"]["dataSecretName"].is_null();
    let is_provisioned = !machine.data["spec"]["providerID"].is_null();
    let mut status = contract.readiness(has_data, is_provisioned);
    status["phase"] = phase(facts, has_data, is_provisioned).into();
    if let Some(node) = facts.node.as_ref() {
        // Cluster API names a Node once. One that joins later under another name does not replace it.
        if machine.data["status"]["nodeRef"].is_null() {
            status["nodeRef"] = contract.node_reference(node);
        }
        status["nodeInfo"] = node.data["status"]["nodeInfo"].clone();
    }
    if let Some(addresses) = facts.infrastructure.as_ref().map(|object| &object.data["status"]["addresses"]) {
        status["addresses"] = addresses.clone();
    }
    if let Some(leaving) = leaving {
        status["deletion"] = deletion(&machine.data["status"]["deletion"], leaving, now);
    }
    let conditions = match contract {
        Contract::V1Beta1 => old_conditions(facts, has_data, is_provisioned, leaving),
        Contract::V1Beta2 => new_conditions(facts, has_data, is_provisioned, leaving),
    };
    status["conditions"] = merged(&machine.data["status"]["conditions"], &conditions, now);
    status
}

/// The status of a paused Machine.
pub(super) fn paused(facts: &Facts, contract: Contract, now: Timestamp) -> Option<Value> {
    match contract {
        Contract::V1Beta1 => None,
        Contract::V1Beta2 => {
            let conditions = [Condition::new("Paused", "True", "Paused")];
            Some(json!({"conditions": merged(&facts.machine.data["status"]["conditions"], &conditions, now)}))
        }
    }
}

fn phase(facts: &Facts, has_data: bool, is_provisioned: bool) -> &'static str {
    if facts.machine.metadata.deletion_timestamp.is_some() {
        "Deleting"
    } else if is_provisioned && facts.node.is_some() {
        "Running"
    } else if is_provisioned {
        "Provisioned"
    } else if has_data {
        "Provisioning"
    } else {
        "Pending"
    }
}

/// The start times of the drain and of each wait.
fn deletion(existing: &Value, leaving: &Leaving, now: Timestamp) -> Value {
    let mut deletion = if existing.is_object() { existing.clone() } else { json!({}) };
    let field = match leaving.deletion {
        DeletionStep::Drain => "nodeDrainStartTime",
        DeletionStep::VolumeDetach => "waitForNodeVolumeDetachStartTime",
        DeletionStep::PreDrainHook => "waitForPreDrainHookStartTime",
        DeletionStep::PreTerminateHook => "waitForPreTerminateHookStartTime",
        DeletionStep::Infrastructure
        | DeletionStep::Bootstrap
        | DeletionStep::Node
        | DeletionStep::Finalizer => {
            return deletion;
        }
    };
    if deletion[field].is_null() {
        deletion[field] = five_spot_apiserver::clock::whole_seconds(now).into();
    }
    deletion
}

fn new_conditions(
    facts: &Facts,
    has_data: bool,
    is_provisioned: bool,
    leaving: Option<&Leaving>,
) -> Vec<Condition> {
    let mut conditions = vec![
        part("BootstrapConfigReady", facts.bootstrap.as_deref(), has_data),
        part("InfrastructureReady", facts.infrastructure.as_deref(), is_provisioned),
        Condition::new("Paused", "False", "NotPaused"),
        Condition::new("Updating", "False", "NotUpdating"),
        match leaving {
            Some(leaving) => {
                Condition::new("Deleting", "True", leaving.deletion.reason()).with_message(&leaving.message)
            }
            None => Condition::new("Deleting", "False", "NotDeleting"),
        },
    ];
    conditions.extend(node_conditions(facts));
    let failing = conditions
        .iter()
        .find(|one| one.status != "True" && !matches!(one.kind, "Paused" | "Updating" | "Deleting"));
    let (ready, available) = match (leaving, failing) {
        (Some(leaving), _) => {
            let message = format!("* Deleting: {}", leaving.message);
            (Condition::new("Ready", "False", "NotReady").with_message(message), "False")
        }
        (None, Some(one)) => {
            let message = format!("* {}: {}", one.kind, one.message);
            (Condition::new("Ready", "False", "NotReady").with_message(message), "False")
        }
        (None, None) => (Condition::new("Ready", "True", "Ready"), "True"),
    };
    let reason = if available == "True" { "Available" } else { "NotReady" };
    conditions.push(ready);
    conditions.push(Condition::new("Available", available, reason));
    conditions
}

/// The Machine's condition that mirrors the `Ready` condition of a part.
fn part(kind: &'static str, part: Option<&DynamicObject>, is_ready: bool) -> Condition {
    let Some(part) = part else {
        let (status, reason) = if is_ready { ("False", "Deleted") } else { ("False", "DoesNotExist") };
        return Condition::new(kind, status, reason);
    };
    let mut conditions = part.data["status"]["conditions"].as_array().into_iter().flatten();
    let own = conditions.find(|one| one["type"] == "Ready" && one["status"] == "False");
    let text = |field: &str| own.and_then(|one| one[field].as_str()).unwrap_or_default().to_owned();
    if own.is_some() {
        Condition::new(kind, "False", text("reason")).with_message(text("message"))
    } else if is_ready {
        Condition::new(kind, "True", "Ready")
    } else {
        Condition::new(kind, "False", "NotReady").with_message(format!("{} is not ready", part.name_any()))
    }
}

fn node_conditions(facts: &Facts) -> [Condition; 2] {
    let known = !facts.machine.data["status"]["nodeRef"].is_null();
    let Some(node) = &facts.node else {
        let reason = if known { "NodeDeleted" } else { "NodeInspectionFailed" };
        let status = if known { "False" } else { "Unknown" };
        let waiting = "Waiting for a Node with matching ProviderID to exist";
        return ["NodeReady", "NodeHealthy"]
            .map(|kind| Condition::new(kind, status, reason).with_message(waiting));
    };
    match condition_status(node, "Ready") {
        "True" => [
            Condition::new("NodeReady", "True", "NodeReady"),
            Condition::new("NodeHealthy", "True", "NodeHealthy"),
        ],
        "False" => [
            Condition::new("NodeReady", "False", "NodeNotReady"),
            Condition::new("NodeHealthy", "False", "NodeNotHealthy")
                .with_message("* Node.Ready: the kubelet is not ready"),
        ],
        _ => [
            Condition::new("NodeReady", "Unknown", "NodeReadyUnknown"),
            Condition::new("NodeHealthy", "Unknown", "NodeHealthUnknown")
                .with_message("* Node.Ready: Condition not yet reported"),
        ],
    }
}

fn old_conditions(
    facts: &Facts,
    has_data: bool,
    is_provisioned: bool,
    leaving: Option<&Leaving>,
) -> Vec<Condition> {
    let of_part = |kind: &'static str, object: Option<&DynamicObject>, is_ready: bool, waiting: &str| {
        let found = part(kind, object, is_ready);
        if found.reason == "NotReady" { Condition { reason: waiting.to_owned(), ..found } } else { found }
    };
    let bootstrap = of_part("BootstrapReady", facts.bootstrap.as_deref(), has_data, "WaitingForDataSecret");
    let infrastructure = of_part(
        "InfrastructureReady",
        facts.infrastructure.as_deref(),
        is_provisioned,
        "WaitingForInfrastructure",
    );
    let [_, healthy] = node_conditions(facts);
    let is_ready =
        leaving.is_none() && [&bootstrap, &infrastructure, &healthy].iter().all(|one| one.status == "True");
    let ready = match (is_ready, leaving) {
        (true, _) => Condition::new("Ready", "True", ""),
        (false, Some(leaving)) => Condition::new("Ready", "False", "Deleting").with_message(&leaving.message),
        (false, None) => Condition::new("Ready", "False", "NotReady"),
    };
    let mut conditions = vec![bootstrap, infrastructure, healthy, ready];
    match leaving.map(|leaving| (leaving.deletion, &leaving.message)) {
        Some((DeletionStep::PreDrainHook, _)) => {
            conditions.push(Condition::new("PreDrainDeleteHookSucceeded", "False", "WaitingExternalHook"));
        }
        Some((DeletionStep::Drain, message)) => {
            conditions.push(Condition::new("DrainingSucceeded", "False", "Draining").with_message(message));
        }
        Some((DeletionStep::VolumeDetach, _)) => {
            conditions.push(Condition::new("VolumeDetachSucceeded", "False", "WaitingForVolumeDetach"));
        }
        Some((DeletionStep::PreTerminateHook, _)) => {
            conditions.push(Condition::new(
                "PreTerminateDeleteHookSucceeded",
                "False",
                "WaitingExternalHook",
            ));
        }
        Some((
            DeletionStep::Infrastructure
            | DeletionStep::Bootstrap
            | DeletionStep::Node
            | DeletionStep::Finalizer,
            _,
        ))
        | None => {}
    }
    conditions
}

/// Returns true if the Machine has a status: one without a finalizer has none.
pub(super) fn is_taken_on(facts: &Facts) -> bool {
    facts.machine.finalizers().iter().any(|one| one == provisioning::FINALIZER)
}
