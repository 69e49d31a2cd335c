//! Is a machine wanted? The first rule that applies decides.

use super::reclaim::Reclaim;
use super::situation::{Situation, instant};
use crate::schedule::Standing;
use five_spot_api::condition::{ConditionType, Reason};
use jiff::{SignedDuration, Timestamp};

/// How far a clock may be put back without its being taken for another time: mistaken zones and daylight saving are
/// hours, and a machine that is kept or missing for so long is no disaster.
const LONGEST_STEP_BACK: SignedDuration = SignedDuration::from_hours(24);

/// Whether a machine is wanted, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Wanted(WantedBy),
    Unwanted(UnwantedBy),
    /// The spec is not valid: whatever there is stays.
    Unclear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedBy {
    Window,
    LeadTime,
    Override,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnwantedBy {
    Deletion,
    KillSwitch,
    Reclaim,
    OverrideDown,
    Disabled,
    /// Like `Disabled`, but it was a reclaim that switched the schedule off.
    DisabledByReclaim,
    OutsideWindow,
}

impl Demand {
    pub(super) const fn wanted(self) -> bool {
        matches!(self, Self::Wanted(_))
    }

    /// The reason of the condition `Scheduled`.
    pub(super) const fn reason(self) -> Reason {
        match self {
            Self::Wanted(WantedBy::Window) => Reason::InWindow,
            Self::Wanted(WantedBy::LeadTime) => Reason::LeadTime,
            Self::Wanted(WantedBy::Override) => Reason::Override,
            Self::Unwanted(UnwantedBy::Deletion) => Reason::Deleted,
            Self::Unwanted(UnwantedBy::KillSwitch) => Reason::KillSwitch,
            Self::Unwanted(UnwantedBy::Reclaim | UnwantedBy::DisabledByReclaim) => {
                Reason::EmergencyReclaimDisabledSchedule
            }
            Self::Unwanted(UnwantedBy::OverrideDown) => Reason::OverrideDown,
            Self::Unwanted(UnwantedBy::Disabled) => Reason::Disabled,
            Self::Unwanted(UnwantedBy::OutsideWindow) => Reason::OutsideWindow,
            Self::Unclear => Reason::InvalidSchedule,
        }
    }
}

pub(super) fn of(situation: &Situation<'_>, reclaim: Option<&Reclaim>) -> Demand {
    if situation.being_deleted() {
        return Demand::Unwanted(UnwantedBy::Deletion);
    }
    if situation.handling().kill_switch {
        return Demand::Unwanted(UnwantedBy::KillSwitch);
    }
    if reclaim.is_some_and(Reclaim::unfinished) {
        return Demand::Unwanted(UnwantedBy::Reclaim);
    }
    let Some(plan) = situation.plan() else {
        return Demand::Unclear;
    };
    match plan.at(lived_until(situation)) {
        Standing::InWindow => Demand::Wanted(WantedBy::Window),
        Standing::LeadTime => Demand::Wanted(WantedBy::LeadTime),
        Standing::OverrideUp => Demand::Wanted(WantedBy::Override),
        Standing::OverrideDown => Demand::Unwanted(UnwantedBy::OverrideDown),
        Standing::Disabled if switched_off_by_reclaim(situation, reclaim) => {
            Demand::Unwanted(UnwantedBy::DisabledByReclaim)
        }
        Standing::Disabled => Demand::Unwanted(UnwantedBy::Disabled),
        Standing::OutsideWindow => Demand::Unwanted(UnwantedBy::OutsideWindow),
    }
}

/// The moment that the schedule is asked about: now, or the moment of its last turn if the clock has been put back
/// since. A boundary that has been crossed is not crossed again, or a clock that goes back by a second would take a
/// machine away that has just come.
///
/// A turn that lies further ahead was made by a clock that was wrong, and does not count.
fn lived_until(situation: &Situation<'_>) -> Timestamp {
    let turn = situation
        .prior_condition(ConditionType::Scheduled)
        .filter(|prior| prior.observed_generation == Some(situation.world.object.generation))
        .map(|prior| instant(&prior.last_transition_time))
        .filter(|turn| turn.duration_since(situation.now) <= LONGEST_STEP_BACK);
    turn.map_or(situation.now, |turn| turn.max(situation.now))
}

/// A reclaim has just been finished, or was the last thing that happened to the schedule.
fn switched_off_by_reclaim(situation: &Situation<'_>, reclaim: Option<&Reclaim>) -> bool {
    reclaim.is_some()
        || situation.prior_reason_is(ConditionType::Scheduled, Reason::EmergencyReclaimDisabledSchedule)
}
