//! The messages of the status, for people. They contain no durations or counts that change by themselves, so that the status
//! is written only when something has changed.

use super::super::claim;
use super::super::demand::{Demand, UnwantedBy, WantedBy};
use super::super::draft::{Draft, Stage, TakedownReason};
use super::super::situation::Situation;
use crate::world::{NodeFact, Slot};
use five_spot_api::Phase;

/// Returns the description of the phase.
pub(super) fn message(situation: &Situation<'_>, phase: Phase, cause: Demand, draft: &Draft) -> String {
    if let Some(fault) = &draft.fault {
        return fault.message.clone();
    }
    let paused = if draft.held_back.is_empty() { "" } else { "paused: " };
    let cause = demand(cause);
    match phase {
        Phase::Pending => format!("{paused}{}; {cause}", pending(situation, draft)),
        Phase::Active => format!("{paused}{}; {cause}", active(situation)),
        Phase::ShuttingDown => format!("{paused}{}; {cause}", shutting_down(situation, draft)),
        Phase::Inactive | Phase::Disabled | Phase::Terminated => {
            format!("{paused}no machine is lent; {cause}")
        }
        Phase::EmergencyRemove => format!("{paused}{}", emergency(situation, draft)),
        Phase::Error => format!("{paused}reconciliation failed; see the condition Ready"),
    }
}

/// Returns the reason why a machine is wanted or not.
pub(in crate::lifecycle) const fn demand(demand: Demand) -> &'static str {
    match demand {
        Demand::Wanted(WantedBy::Window) => "the schedule is open",
        Demand::Wanted(WantedBy::LeadTime) => "the schedule opens within leadTime",
        Demand::Wanted(WantedBy::Override) => "spec.override.state is up",
        Demand::Unwanted(UnwantedBy::Deletion) => "the ScheduledMachine is being deleted",
        Demand::Unwanted(UnwantedBy::KillSwitch) => "spec.killSwitch is true",
        Demand::Unwanted(UnwantedBy::Reclaim) => "the owner has reclaimed the machine",
        Demand::Unwanted(UnwantedBy::AwaitingResume) => {
            "the owner has reclaimed the machine; set the annotation 5spot.finos.org/resume to the current time to lend it \
             again"
        }
        Demand::Unwanted(UnwantedBy::OverrideDown) => "spec.override.state is down",
        Demand::Unwanted(UnwantedBy::Disabled) => "spec.schedule.enabled is false",
        Demand::Unwanted(UnwantedBy::DisabledByReclaim) => {
            "an emergency reclaim disabled the schedule; set spec.schedule.enabled to true to lend the machine again"
        }
        Demand::Unwanted(UnwantedBy::OutsideWindow) => "the schedule is closed",
        Demand::Unclear => "the spec is invalid",
    }
}

fn pending(situation: &Situation<'_>, draft: &Draft) -> String {
    let machine = situation.machine_name();
    match draft.stage {
        Stage::WaitingForOldMachine => {
            format!("waiting for the objects of the previous Machine {machine} to be deleted")
        }
        Stage::WaitingForMachine => claim::describe(situation),
        Stage::Idle
        | Stage::Creating
        | Stage::WaitingToJoinAgain
        | Stage::Running
        | Stage::TakingDown(_)
        | Stage::Removing
        | Stage::Ejecting => format!("creating Machine {machine}"),
    }
}

fn active(situation: &Situation<'_>) -> String {
    let machine = situation.machine_name();
    match &situation.world.node {
        NodeFact::Found(node) => format!("Machine {machine} is lent as node {}", node.name),
        NodeFact::Unknown => format!("Machine {machine} exists, but the state of its node is unknown"),
        NodeFact::NotYet | NodeFact::Gone | NodeFact::Renamed(_) | NodeFact::Mismatch { .. } => {
            format!("Machine {machine} exists, but its node is not in the cluster")
        }
    }
}

fn shutting_down(situation: &Situation<'_>, draft: &Draft) -> String {
    let machine = situation.machine_name();
    match draft.stage {
        Stage::TakingDown(TakedownReason::SpecChanged) => {
            format!("replacing Machine {machine} because the spec changed")
        }
        Stage::TakingDown(TakedownReason::PartDeleted) => {
            format!("replacing Machine {machine} because its bootstrap or infrastructure object was deleted")
        }
        Stage::TakingDown(TakedownReason::ClusterDeleted) => {
            format!("shutting down Machine {machine} because its Cluster is being deleted")
        }
        Stage::Idle
        | Stage::Creating
        | Stage::WaitingForOldMachine
        | Stage::WaitingForMachine
        | Stage::WaitingToJoinAgain
        | Stage::Running
        | Stage::Removing => match &situation.world.machine {
            Slot::Ours(view) if !view.terminating => format!("draining the node of Machine {machine}"),
            Slot::Ours(_) => format!("deleting Machine {machine}"),
            Slot::Absent | Slot::Foreign { .. } | Slot::Unknown => without_machine(situation),
        },
        Stage::Ejecting if situation.world.machine.ours().is_none() => without_machine(situation),
        Stage::Ejecting => format!("deleting Machine {machine} without draining its node"),
    }
}

/// Describes a removal whose Machine is gone, or cannot be read.
fn without_machine(situation: &Situation<'_>) -> String {
    let machine = situation.machine_name();
    if situation.world.machine.is_unknown() {
        format!("waiting until Machine {machine} can be read")
    } else if situation.anything_may_be_left() {
        format!("Machine {machine} is gone; deleting its bootstrap and infrastructure objects")
    } else {
        format!("Machine {machine} is gone")
    }
}

fn emergency(situation: &Situation<'_>, draft: &Draft) -> String {
    let machine = situation.machine_name();
    match draft.facts.reclaims.first() {
        Some(record) => format!("emergency reclaim of node {}: removing Machine {machine}", record.node),
        None => format!("emergency reclaim: removing Machine {machine}"),
    }
}
