//! The conditions, each computed from the observed state.

use super::super::claim;
use super::super::demand::Demand;
use super::super::draft::{Draft, Stage, TaintStage};
use super::super::fault::{reference_reason, workload_reason};
use super::super::pause::{self, Pause};
use super::super::provision::cluster_problem;
use super::super::situation::{Situation, Spec};
use super::messages;
use crate::FieldError;
use crate::text;
use crate::world::{FormerNode, NodeFact, Readiness, Workload, WorkloadProblem};
use five_spot_api::Phase;
use five_spot_api::condition::{ConditionType, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The maximum length of the message of a condition, in bytes. The API server accepts 32,768.
const MAX_CONDITION: usize = 4096;

/// The value of a condition.
struct ConditionValue {
    status: Status,
    reason: Reason,
    message: String,
}

#[derive(Clone, Copy)]
enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl ConditionValue {
    fn new(holds: bool, reason: Reason, message: impl Into<String>) -> Self {
        Self { status: if holds { Status::True } else { Status::False }, reason, message: message.into() }
    }

    fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: Status::Unknown, reason, message: message.into() }
    }
}

/// Returns true if a machine was wanted at the last decision.
pub(in crate::lifecycle) fn was_wanted(situation: &Situation<'_>) -> bool {
    situation.prior_condition(ConditionType::Scheduled).is_some_and(|condition| condition.status == "True")
}

/// Returns all conditions that apply, in their order.
pub(super) fn all(
    situation: &Situation<'_>,
    phase: Phase,
    demand: Demand,
    draft: &Draft,
    message: &str,
) -> Vec<Condition> {
    let current = |kind| match kind {
        ConditionType::Ready => Some(ready(situation, phase, draft, message)),
        ConditionType::MachineReady => Some(machine_ready(situation, draft)),
        ConditionType::Scheduled => Some(scheduled(situation, demand)),
        ConditionType::ReferencesValid => Some(references_valid(situation)),
        ConditionType::NodeTainted => node_tainted(draft),
        ConditionType::Drained => drained(draft),
        ConditionType::Paused => Some(paused(situation, draft)),
    };
    ConditionType::ALL
        .into_iter()
        .filter_map(|kind| match current(kind) {
            Some(value) => Some(condition(situation, kind, &value)),
            None if keeps_previous(kind, draft) => situation.prior_condition(kind).cloned(),
            None => None,
        })
        .collect()
}

/// Returns true if a condition without a new value keeps its previous one; otherwise it is dropped.
fn keeps_previous(kind: ConditionType, draft: &Draft) -> bool {
    match kind {
        ConditionType::NodeTainted => draft.taints == TaintStage::Writing,
        ConditionType::Drained => draft.facts.drain.is_some(),
        ConditionType::Ready
        | ConditionType::MachineReady
        | ConditionType::Scheduled
        | ConditionType::ReferencesValid
        | ConditionType::Paused => false,
    }
}

/// Returns the condition with the time of its last change of status.
fn condition(situation: &Situation<'_>, kind: ConditionType, value: &ConditionValue) -> Condition {
    let status = value.status.as_str();
    let since = situation
        .prior_condition(kind)
        .filter(|prior| prior.status == status)
        .map_or(Time(situation.second), |prior| prior.last_transition_time.clone());
    Condition {
        type_: kind.as_str().to_owned(),
        status: status.to_owned(),
        reason: value.reason.as_str().to_owned(),
        message: text::bounded(&value.message, MAX_CONDITION).into_owned(),
        observed_generation: Some(situation.world.object.generation),
        last_transition_time: since,
    }
}

/// True if the condition `Ready` is true.
pub(super) fn is_ready(situation: &Situation<'_>, phase: Phase, draft: &Draft) -> bool {
    matches!(ready(situation, phase, draft, "").status, Status::True)
}

/// True if the condition `MachineReady` is true.
pub(super) fn is_machine_ready(situation: &Situation<'_>, draft: &Draft) -> bool {
    matches!(machine_ready(situation, draft).status, Status::True)
}

/// The reason of the condition `Scheduled`.
pub(super) fn demand_reason(situation: &Situation<'_>, demand: Demand) -> Reason {
    scheduled(situation, demand).reason
}

fn ready(situation: &Situation<'_>, phase: Phase, draft: &Draft, message: &str) -> ConditionValue {
    if let Some(fault) = &draft.fault {
        return ConditionValue::new(false, fault.kind.reason(), fault.message.clone());
    }
    if let Some(failure) = &situation.world.failures.last {
        return ConditionValue::new(false, Reason::ReconcileFailed, failure.message.clone());
    }
    if !draft.held_back.is_empty() {
        return ConditionValue::new(false, Reason::Paused, message);
    }
    match phase {
        Phase::Active => {
            let node = machine_ready(situation, draft);
            match node.status {
                Status::True => ConditionValue::new(true, Reason::NodeReady, message),
                Status::False | Status::Unknown => ConditionValue::new(false, node.reason, message),
            }
        }
        Phase::Pending if draft.stage == Stage::WaitingForOldMachine => {
            ConditionValue::new(false, Reason::WaitingForOldMachine, message)
        }
        Phase::Pending if draft.stage == Stage::WaitingForMachine => {
            ConditionValue::new(false, Reason::MachineInUse, message)
        }
        Phase::Pending => ConditionValue::new(false, Reason::Provisioning, message),
        Phase::ShuttingDown if draft.stage.is_replacing() => {
            ConditionValue::new(false, Reason::Replacing, message)
        }
        Phase::ShuttingDown => ConditionValue::new(false, Reason::ShuttingDown, message),
        Phase::EmergencyRemove => ConditionValue::new(false, Reason::EmergencyRemove, message),
        Phase::Inactive => ConditionValue::new(true, Reason::Inactive, message),
        Phase::Disabled => ConditionValue::new(true, Reason::Disabled, message),
        Phase::Terminated => ConditionValue::new(true, Reason::Terminated, message),
        Phase::Error => ConditionValue::new(false, Reason::ReconcileFailed, message),
    }
}

fn machine_ready(situation: &Situation<'_>, draft: &Draft) -> ConditionValue {
    if situation.world.machine.is_unknown() {
        return unknown_machine(situation);
    }
    let Some(machine) = situation.world.machine.ours() else {
        return without_machine(situation);
    };
    let is_lost = draft.stage == Stage::Running && situation.has_joined(machine);
    let name = situation.machine_name();
    match &situation.world.node {
        NodeFact::NotYet | NodeFact::Gone if is_lost => {
            // Without the name of the node: this decision removes it from status, so the next one would not know it.
            ConditionValue::new(
                false,
                Reason::NodeLost,
                format!(
                    "the node of Machine {name} had joined and is no longer in the cluster; the Machine is replaced unless its node returns within joinTimeout"
                ),
            )
        }
        NodeFact::NotYet => {
            ConditionValue::new(false, Reason::NoNodeYet, format!("Machine {name} has no node yet"))
        }
        NodeFact::Gone => ConditionValue::new(
            false,
            Reason::NoNodeYet,
            format!("the node of Machine {name} does not exist"),
        ),
        NodeFact::Renamed(node) => ConditionValue::new(
            false,
            if situation.has_joined(machine) { Reason::NodeLost } else { Reason::NoNodeYet },
            format!(
                "the node that Cluster API names for Machine {name} is gone; its machine is in the cluster as node {} now{}",
                node.name,
                if is_lost {
                    ", and the Machine is replaced unless its node returns within joinTimeout"
                } else {
                    ""
                }
            ),
        ),
        NodeFact::Mismatch { name: node } => ConditionValue::new(
            false,
            if is_lost { Reason::NodeLost } else { Reason::NoNodeYet },
            format!("node {node} does not belong to Machine {name}: their provider IDs differ"),
        ),
        NodeFact::Unknown => unknown_node(situation, machine.terminating),
        NodeFact::Found(node) => match node.readiness {
            Readiness::Ready => {
                ConditionValue::new(true, Reason::NodeReady, format!("node {} is Ready", node.name))
            }
            Readiness::NotReady => {
                ConditionValue::new(false, Reason::NodeNotReady, format!("node {} is not Ready", node.name))
            }
            Readiness::Unreachable => ConditionValue::new(
                false,
                Reason::NodeNotReady,
                format!("the kubelet of node {} has stopped reporting", node.name),
            ),
        },
    }
}

/// Returns the value while the Machine cannot be read. It may exist, and its Node with it.
fn unknown_machine(situation: &Situation<'_>) -> ConditionValue {
    let machine = situation.machine_name();
    let (reason, cause) = match situation.world.references.first() {
        Some(problem) => (reference_reason(problem.kind), format!(": {}", problem.message)),
        None => (Reason::Unreachable, String::new()),
    };
    ConditionValue::unknown(
        reason,
        format!("Machine {machine} cannot be read, so its state is unknown{cause}"),
    )
}

/// Returns the value while no Machine exists. Its Node should be gone as well.
fn without_machine(situation: &Situation<'_>) -> ConditionValue {
    let node = situation.prior().node_ref.as_ref().map_or("", |node| node.name.as_str());
    let machine = situation.machine_name();
    match situation.world.former_node {
        FormerNode::Gone => {
            ConditionValue::new(false, Reason::NoMachine, format!("Machine {machine} does not exist"))
        }
        FormerNode::LeftBehind => ConditionValue::new(
            false,
            Reason::NodeLeftBehind,
            format!(
                "node {node} is still in the workload cluster although Machine {machine} is gone; once its owner has the machine back, delete the Node in the workload cluster"
            ),
        ),
        FormerNode::Cached | FormerNode::Unknown => ConditionValue::new(
            false,
            Reason::NoMachine,
            format!(
                "Machine {machine} does not exist; the workload cluster is unreachable, so whether node {node} is gone is unknown"
            ),
        ),
    }
}

/// Returns the value while the workload cluster cannot be reached or contradicts Cluster API.
fn unknown_node(situation: &Situation<'_>, is_terminating: bool) -> ConditionValue {
    match &situation.world.workload {
        Workload::Unusable { problem, message, .. } => {
            ConditionValue::unknown(workload_reason(*problem), message.clone())
        }
        Workload::Pending(_) => {
            ConditionValue::unknown(Reason::Unreachable, "waiting for the workload cluster to respond")
        }
        // Nothing waits for the Node any more, and Cluster API has deleted it.
        Workload::Reachable(_) if is_terminating => ConditionValue::new(
            false,
            Reason::NoNodeYet,
            format!(
                "Machine {} is being deleted, and the workload cluster has no Node for it",
                situation.machine_name()
            ),
        ),
        Workload::Reachable(_) => ConditionValue::unknown(
            Reason::NodeLost,
            "the workload cluster has no Node for this Machine, but Cluster API reports the node as healthy, or the kubeconfig may not read the namespace kube-system, by which 5-Spot identifies the cluster; 5-Spot takes no action until it is certain that the Node is gone",
        ),
    }
}

fn scheduled(situation: &Situation<'_>, demand: Demand) -> ConditionValue {
    if demand != Demand::Unclear {
        return ConditionValue::new(demand.wanted(), demand.reason(), messages::demand(demand));
    }
    let invalid = invalid_fields(situation, in_schedule);
    if invalid.is_empty() {
        ConditionValue::unknown(Reason::InvalidSpec, messages::demand(demand))
    } else {
        ConditionValue::new(false, Reason::InvalidSchedule, invalid)
    }
}

fn references_valid(situation: &Situation<'_>) -> ConditionValue {
    let invalid = invalid_fields(situation, |error| !in_schedule(error));
    if !invalid.is_empty() {
        return ConditionValue::new(false, Reason::NotAllowed, invalid);
    }
    let world = situation.world;
    if let Some(first) = world.references.first() {
        let messages: Vec<String> = world
            .references
            .iter()
            .map(|problem| format!("{}: {}", problem.field, problem.message))
            .collect();
        return ConditionValue::new(false, reference_reason(first.kind), messages.join("; "));
    }
    if let Some(problem) = situation.valid().and_then(|spec| cluster_problem(world, spec)) {
        return ConditionValue::new(false, Reason::NotFound, problem);
    }
    if let Some(other) = claim::double_loan(situation) {
        return ConditionValue::new(
            false,
            Reason::MachineInUse,
            format!(
                "ScheduledMachine {other} is lent the same physical machine; both keep it until the window of \
                 one of them closes or its spec changes"
            ),
        );
    }
    match &world.workload {
        Workload::Unusable { problem, message, .. }
            if matches!(
                problem,
                WorkloadProblem::SecretMissing
                    | WorkloadProblem::SecretForbidden
                    | WorkloadProblem::TooManyClusters
            ) =>
        {
            ConditionValue::new(false, workload_reason(*problem), message.clone())
        }
        Workload::Unusable { .. } | Workload::Pending(_) | Workload::Reachable(_) => {
            ConditionValue::new(true, Reason::Resolved, "all objects that the spec refers to exist")
        }
    }
}

fn in_schedule(error: &FieldError) -> bool {
    error.field.starts_with("spec.schedule") || error.field.starts_with("spec.override")
}

fn invalid_fields(situation: &Situation<'_>, which: impl Fn(&FieldError) -> bool) -> String {
    match situation.spec {
        Spec::Valid(_) => String::new(),
        Spec::Invalid(spec) => {
            let errors: Vec<String> =
                spec.errors.iter().filter(|error| which(error)).map(ToString::to_string).collect();
            errors.join("; ")
        }
    }
}

fn node_tainted(draft: &Draft) -> Option<ConditionValue> {
    match &draft.taints {
        TaintStage::NotNeeded | TaintStage::Writing => None,
        TaintStage::NoNode => Some(ConditionValue::unknown(
            Reason::NoNodeYet,
            "waiting for the Node before applying the taints",
        )),
        TaintStage::NodeNotReady => Some(ConditionValue::new(
            false,
            Reason::NodeNotReady,
            "waiting for the Node to become Ready before applying the taints",
        )),
        TaintStage::Failed(error) => Some(ConditionValue::new(false, Reason::PatchFailed, error.clone())),
        TaintStage::Conflict(which) => {
            Some(ConditionValue::new(false, Reason::TaintOwnershipConflict, which.clone()))
        }
        TaintStage::Applied => {
            Some(ConditionValue::new(true, Reason::Applied, "all taints of spec.nodeTaints are on the Node"))
        }
    }
}

fn drained(draft: &Draft) -> Option<ConditionValue> {
    let drain = draft.facts.drain.as_ref()?;
    let count = format!("{} of {} pods have left the node", drain.evicted, drain.total);
    Some(if drain.evicted >= drain.total {
        ConditionValue::new(true, Reason::Drained, count)
    } else if drain.blocked.is_empty() {
        ConditionValue::new(false, Reason::Draining, count)
    } else {
        let names: Vec<&str> = drain.blocked.iter().map(|blocked| blocked.pod.as_str()).collect();
        ConditionValue::new(false, Reason::Blocked, format!("{count}; blocked by {}", names.join(", ")))
    })
}

fn paused(situation: &Situation<'_>, draft: &Draft) -> ConditionValue {
    if let Some(Pause { reason, by }) = pause::of_cluster_api(situation) {
        let machine = situation.machine_name();
        let message = format!(
            "Machine {machine} is being deleted, but Cluster API ignores the deletion because of {by}; remove the pause to let it continue"
        );
        return ConditionValue::new(true, reason, message);
    }
    let Some(Pause { reason, by }) = pause::cause(situation, draft) else {
        return ConditionValue::new(false, Reason::NotPaused, "not paused");
    };
    let message = if draft.held_back.is_empty() {
        format!("paused by {by}; no changes are held back at the moment")
    } else {
        let actions: Vec<String> = draft.held_back.iter().map(ToString::to_string).collect();
        format!("paused by {by}; held back: {}", actions.join(", "))
    };
    ConditionValue::new(true, reason, message)
}
