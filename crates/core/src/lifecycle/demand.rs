//! The demand for a machine. The first rule that applies decides.

use super::reclaim::{self, Reclaim};
use super::situation::{Situation, instant};
use crate::schedule::PlanState;
use five_spot_api::ReclaimResume;
use five_spot_api::condition::{ConditionType, Reason};
use jiff::{SignedDuration, Timestamp};

/// The longest step back of the clock that is recognized as such. Wrong time zones and daylight saving are a matter of hours,
/// and a machine may be kept or missing for that long.
const MAX_CLOCK_STEP_BACK: SignedDuration = SignedDuration::from_hours(24);

/// The demand for a machine, and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Wanted(WantedBy),
    Unwanted(UnwantedBy),
    /// The spec is invalid: the current state stays as it is.
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
    /// A reclaim has finished, and no person has allowed the machine to be lent again yet.
    AwaitingResume,
    OverrideDown,
    Disabled,
    /// Like `Disabled`, but a reclaim disabled the schedule.
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
            Self::Unwanted(UnwantedBy::AwaitingResume) => Reason::AwaitingResume,
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
    if awaits_resume(situation, reclaim) {
        return Demand::Unwanted(UnwantedBy::AwaitingResume);
    }
    let Some(plan) = situation.plan() else {
        return Demand::Unclear;
    };
    match plan.at(evaluation_time(situation)) {
        PlanState::InWindow => Demand::Wanted(WantedBy::Window),
        PlanState::LeadTime => Demand::Wanted(WantedBy::LeadTime),
        PlanState::OverrideUp => Demand::Wanted(WantedBy::Override),
        PlanState::OverrideDown => Demand::Unwanted(UnwantedBy::OverrideDown),
        PlanState::Disabled if disabled_by_reclaim(situation, reclaim) => {
            Demand::Unwanted(UnwantedBy::DisabledByReclaim)
        }
        PlanState::Disabled => Demand::Unwanted(UnwantedBy::Disabled),
        PlanState::OutsideWindow => Demand::Unwanted(UnwantedBy::OutsideWindow),
    }
}

/// Returns the time at which the schedule is evaluated: now, or the time of the last transition if the clock was set back
/// since. A boundary is never crossed twice; otherwise a clock that steps back by a second would remove a machine that has
/// just been created.
///
/// A transition further in the future was made by a wrong clock and does not count.
fn evaluation_time(situation: &Situation<'_>) -> Timestamp {
    // A removal that is held has crossed no boundary yet: once a wrong clock is right again, its machine is wanted as before.
    if situation.prior().unplanned_removal.as_ref().is_some_and(|removal| removal.begun_at.is_none()) {
        return situation.now;
    }
    let transition = situation
        .prior_condition(ConditionType::Scheduled)
        .filter(|prior| prior.observed_generation == Some(situation.world.object.generation))
        .map(|prior| instant(&prior.last_transition_time))
        .filter(|transition| transition.duration_since(situation.now) <= MAX_CLOCK_STEP_BACK);
    transition.map_or(situation.now, |transition| transition.max(situation.now))
}

/// Returns true if the machine was reclaimed and only the annotation `5spot.finos.org/resume` allows it to be lent again.
/// A machine that was created after the reclaim stays: it was allowed, or the spec did not require the annotation yet.
fn awaits_resume(situation: &Situation<'_>, reclaim: Option<&Reclaim>) -> bool {
    if situation.handling().resume == ReclaimResume::OnEnable {
        return false;
    }
    let records = reclaim.map_or(situation.prior().reclaims.as_slice(), Reclaim::records);
    let Some(newest) = records.iter().map(reclaim::noticed_at).max() else {
        return false;
    };
    let resumed = situation.world.object.resume.is_some_and(|at| newest <= at && at <= situation.now);
    let lent_since = situation.living_machine().is_some_and(|machine| machine.created_at > newest);
    !resumed && !lent_since
}

/// Returns true if a reclaim disabled the schedule, now or earlier.
fn disabled_by_reclaim(situation: &Situation<'_>, reclaim: Option<&Reclaim>) -> bool {
    reclaim.is_some()
        || situation.prior_reason_is(ConditionType::Scheduled, Reason::EmergencyReclaimDisabledSchedule)
        || situation.prior_reason_is(ConditionType::Scheduled, Reason::AwaitingResume)
}
