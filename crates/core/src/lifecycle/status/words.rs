//! The same in sentences, for people. They name no durations and no counts that change by themselves:
//! status is written only when something has changed.

use super::super::demand::{Demand, UnwantedBy, WantedBy};
use super::super::draft::{Draft, Parting, Stage};
use super::super::situation::Situation;
use crate::world::NodeFact;
use five_spot_api::Phase;

/// The phase in a sentence.
pub(super) fn message(situation: &Situation<'_>, phase: Phase, cause: Demand, draft: &Draft) -> String {
    if let Some(fault) = &draft.fault {
        return fault.message.clone();
    }
    let what = match phase {
        Phase::Pending => pending(draft),
        Phase::Active => active(situation),
        Phase::ShuttingDown => shutting_down(situation, draft),
        Phase::Inactive => "no machine".to_owned(),
        Phase::Disabled => "the schedule is disabled, no machine".to_owned(),
        Phase::Terminated => "terminated by the kill switch, no machine".to_owned(),
        Phase::EmergencyRemove => "the machine is given back to its owner at once".to_owned(),
        Phase::Error => "something needs attention".to_owned(),
    };
    let paused = if draft.held_back.is_empty() { "" } else { "paused: " };
    match phase {
        Phase::Pending | Phase::Active | Phase::ShuttingDown | Phase::Inactive => {
            format!("{paused}{what}; {}", demand(cause))
        }
        Phase::Disabled | Phase::Terminated | Phase::EmergencyRemove | Phase::Error => {
            format!("{paused}{what}")
        }
    }
}

/// Why a machine is wanted or not.
pub(super) const fn demand(demand: Demand) -> &'static str {
    match demand {
        Demand::Wanted(WantedBy::Window) => "wanted by the schedule",
        Demand::Wanted(WantedBy::LeadTime) => "wanted ahead of the window by leadTime",
        Demand::Wanted(WantedBy::Override) => "wanted by the override",
        Demand::Unwanted(UnwantedBy::Deletion) => "the object is being deleted",
        Demand::Unwanted(UnwantedBy::KillSwitch) => "the kill switch is on",
        Demand::Unwanted(UnwantedBy::Reclaim) => "the owner wants the machine back",
        Demand::Unwanted(UnwantedBy::OverrideDown) => "the override wants no machine",
        Demand::Unwanted(UnwantedBy::Disabled) => "the schedule is disabled",
        Demand::Unwanted(UnwantedBy::DisabledByReclaim) => "the schedule was disabled by a reclaim",
        Demand::Unwanted(UnwantedBy::OutsideWindow) => "outside the schedule",
        Demand::Unclear => "the spec is not valid",
    }
}

fn pending(draft: &Draft) -> String {
    match draft.stage {
        Stage::WaitingForOldMachine => "waiting until the last machine is gone",
        Stage::Resting
        | Stage::Creating
        | Stage::WaitingToJoinAgain
        | Stage::Running
        | Stage::Parting(_)
        | Stage::Removing
        | Stage::Ejecting => "the machine is being made",
    }
    .to_owned()
}

fn active(situation: &Situation<'_>) -> String {
    match &situation.world.node {
        NodeFact::Found(node) => format!("the machine is lent as node {}", node.name),
        NodeFact::NotYet | NodeFact::Gone | NodeFact::Unknown | NodeFact::Mismatch { .. } => {
            "the machine is there, its node is not".to_owned()
        }
    }
}

fn shutting_down(situation: &Situation<'_>, draft: &Draft) -> String {
    match draft.stage {
        Stage::Parting(Parting::SpecChanged) => "the machine is being replaced because the spec changed",
        Stage::Parting(Parting::PartDeleted) => {
            "the machine is being replaced because a part of it was deleted"
        }
        Stage::Parting(Parting::ClusterDeleted) => {
            "the machine is being drained because its Cluster is being deleted"
        }
        Stage::Resting
        | Stage::Creating
        | Stage::WaitingForOldMachine
        | Stage::WaitingToJoinAgain
        | Stage::Running
        | Stage::Removing => {
            if situation.living_machine().is_some() {
                "the machine is being drained"
            } else {
                "the machine is being deleted"
            }
        }
        Stage::Ejecting => "the machine is being deleted without a drain",
    }
    .to_owned()
}
