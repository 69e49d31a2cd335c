//! The status of a decision: the phase, the conditions and the recorded facts.

mod conditions;
pub(super) mod messages;

use super::demand::{Demand, UnwantedBy};
use super::draft::{Draft, Stage};
use super::situation::Situation;
use super::upkeep;
use crate::text;
use crate::world::{FormerNode, NodeFact, NodeName, ProviderView, Slot, Uid};
pub(super) use conditions::was_wanted;
use five_spot_api::condition::Reason;
use five_spot_api::names;
use five_spot_api::{JoinStatus, ObjectRef, Phase, ScheduledMachineStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Returns the status of a draft.
pub(super) fn compose(situation: &Situation<'_>, demand: Demand, draft: &Draft) -> ScheduledMachineStatus {
    let world = situation.world;
    let phase = phase(situation, demand, draft);
    let message = messages::message(situation, phase, demand, draft);
    let plan = situation.plan().filter(|_| follows_plan(demand));
    let next_activation = plan.and_then(|plan| plan.next_activation(situation.now));
    let next_cleanup = plan.and_then(|plan| plan.next_cleanup(situation.now));
    let name = &world.object.name;
    ScheduledMachineStatus {
        phase: Some(phase),
        conditions: conditions::all(situation, phase, demand, draft, &message),
        message: Some(message),
        observed_generation: Some(world.object.generation),
        in_schedule: situation.plan().map(|plan| plan.schedule().is_open(situation.now)),
        next_activation: next_activation.map(Time),
        next_cleanup: next_cleanup.map(Time),
        next_change: [next_activation, next_cleanup].into_iter().flatten().min().map(|time| time.to_string()),
        last_scheduled_time: last_scheduled_time(situation, demand),
        machine_ref: machine_ref(situation),
        bootstrap_ref: provider_ref(
            &world.bootstrap,
            situation.prior().bootstrap_ref.as_ref(),
            situation,
            names::bootstrap(name),
        ),
        infrastructure_ref: provider_ref(
            &world.infrastructure,
            situation.prior().infrastructure_ref.as_ref(),
            situation,
            names::infrastructure(name),
        ),
        node_ref: node_ref(situation),
        provider_id: provider_id(situation),
        workload_cluster: draft.facts.workload_cluster.clone(),
        applied_node_taints: upkeep::applied_taints(situation),
        shutdown_started_at: draft.facts.shutdown_started_at.clone(),
        drain: draft.facts.drain.clone(),
        unplanned_removal: draft.removal.record.clone(),
        reclaims: draft.facts.reclaims.clone(),
        join: draft.facts.join.clone().filter(|join| *join != JoinStatus::default()),
    }
}

/// True if the object is where it should be.
pub(super) fn is_settled(situation: &Situation<'_>, demand: Demand, draft: &Draft) -> bool {
    conditions::is_ready(situation, phase(situation, demand, draft), draft)
}

/// True if the machine has a Ready Node in its cluster.
pub(super) fn is_lent(situation: &Situation<'_>, draft: &Draft) -> bool {
    conditions::is_machine_ready(situation, draft)
}

/// The reason why a machine is wanted or not.
pub(super) fn demand_reason(situation: &Situation<'_>, demand: Demand) -> Reason {
    conditions::demand_reason(situation, demand)
}

/// Returns the phase, which does not depend on the previous phase.
fn phase(situation: &Situation<'_>, demand: Demand, draft: &Draft) -> Phase {
    let reclaiming = draft.facts.reclaims.iter().any(|record| record.finished_at.is_none());
    if reclaiming || demand == Demand::Unwanted(UnwantedBy::Reclaim) {
        return Phase::EmergencyRemove;
    }
    if draft.fault.is_some() {
        return Phase::Error;
    }
    match demand {
        Demand::Unclear => Phase::Error,
        Demand::Wanted(_) => match draft.stage {
            Stage::Running => Phase::Active,
            Stage::TakingDown(_) => Phase::ShuttingDown,
            Stage::Idle
            | Stage::Creating
            | Stage::WaitingForOldMachine
            | Stage::WaitingForMachine
            | Stage::WaitingToJoinAgain
            | Stage::Removing
            | Stage::Ejecting => Phase::Pending,
        },
        Demand::Unwanted(_) if situation.anything_left() => Phase::ShuttingDown,
        Demand::Unwanted(UnwantedBy::Deletion) => Phase::ShuttingDown,
        Demand::Unwanted(UnwantedBy::KillSwitch) => Phase::Terminated,
        Demand::Unwanted(
            UnwantedBy::AwaitingResume | UnwantedBy::Disabled | UnwantedBy::DisabledByReclaim,
        ) => Phase::Disabled,
        Demand::Unwanted(UnwantedBy::OutsideWindow | UnwantedBy::OverrideDown) => Phase::Inactive,
        Demand::Unwanted(UnwantedBy::Reclaim) => Phase::EmergencyRemove,
    }
}

/// Returns true if the schedule determines the next change. Under a deletion, kill switch or reclaim nothing is scheduled.
const fn follows_plan(demand: Demand) -> bool {
    match demand {
        Demand::Wanted(_)
        | Demand::Unwanted(
            UnwantedBy::OverrideDown
            | UnwantedBy::Disabled
            | UnwantedBy::DisabledByReclaim
            | UnwantedBy::OutsideWindow,
        ) => true,
        Demand::Unwanted(
            UnwantedBy::Deletion | UnwantedBy::KillSwitch | UnwantedBy::Reclaim | UnwantedBy::AwaitingResume,
        )
        | Demand::Unclear => false,
    }
}

/// Returns the start of the latest period in which a machine was wanted. An override has no start, so the time at which it
/// was first seen counts.
fn last_scheduled_time(situation: &Situation<'_>, demand: Demand) -> Option<Time> {
    let prior = situation.prior().last_scheduled_time.clone();
    if !demand.wanted() {
        return prior;
    }
    let since: Option<Timestamp> = situation.plan().and_then(|plan| plan.wanted_since(situation.now));
    match (since, prior) {
        (Some(since), _) => Some(Time(since)),
        (None, Some(prior)) if was_wanted(situation) => Some(prior),
        (None, _) => Some(Time(situation.second)),
    }
}

/// Returns the Machine. One whose state is unknown stays recorded.
fn machine_ref(situation: &Situation<'_>) -> Option<ObjectRef> {
    let object = &situation.world.object;
    let machine = match &situation.world.machine {
        Slot::Ours(machine) => machine,
        Slot::Unknown => return situation.prior().machine_ref.clone(),
        Slot::Absent | Slot::Foreign { .. } => return None,
    };
    Some(ObjectRef {
        api_version: machine.api_version.clone(),
        kind: "Machine".to_owned(),
        namespace: Some(object.namespace.clone()),
        name: names::machine(&object.name),
        uid: Some(machine.uid.as_str().to_owned()),
    })
}

/// Returns the provider ID of the Machine. That of a Machine whose state is unknown stays recorded.
fn provider_id(situation: &Situation<'_>) -> Option<String> {
    match &situation.world.machine {
        Slot::Ours(machine) => {
            let id = machine.provider_id.as_deref()?;
            Some(text::bounded(id, text::MAX_MESSAGE).into_owned())
        }
        Slot::Unknown => situation.prior().provider_id.clone(),
        Slot::Absent | Slot::Foreign { .. } => None,
    }
}

/// Returns the Node of the Machine. A Node whose state is unknown, or that has outlived its Machine, stays recorded.
fn node_ref(situation: &Situation<'_>) -> Option<ObjectRef> {
    let world = situation.world;
    let recorded = situation.prior().node_ref.clone();
    if world.machine.is_unknown() {
        return recorded;
    }
    if world.machine.ours().is_none() {
        return recorded.filter(|_| world.former_node != FormerNode::Gone);
    }
    match &world.node {
        NodeFact::Found(node) => Some(reference_to(&node.name, &node.uid)),
        // Cluster API deletes the Node that it names, not this one: it may outlive its Machine.
        NodeFact::Renamed(node) => Some(reference_to(&node.name, &node.uid)),
        NodeFact::Unknown => recorded,
        NodeFact::NotYet | NodeFact::Gone | NodeFact::Mismatch { .. } => None,
    }
}

fn reference_to(node: &NodeName, uid: &Uid) -> ObjectRef {
    ObjectRef {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        namespace: None,
        name: node.as_str().to_owned(),
        uid: Some(uid.as_str().to_owned()),
    }
}

fn provider_ref(
    slot: &Slot<ProviderView>,
    recorded: Option<&ObjectRef>,
    situation: &Situation<'_>,
    name: String,
) -> Option<ObjectRef> {
    let object = match slot {
        Slot::Ours(object) => object,
        Slot::Unknown => return recorded.cloned(),
        Slot::Absent | Slot::Foreign { .. } => return None,
    };
    Some(ObjectRef {
        api_version: object.kind.api_version.clone(),
        kind: object.kind.kind.clone(),
        namespace: Some(situation.world.object.namespace.clone()),
        name,
        uid: Some(object.uid.as_str().to_owned()),
    })
}
