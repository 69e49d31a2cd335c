//! The brake: when many machines would be removed at once for a reason other than their own schedule and spec, the first few
//! go and the others are held until a person has looked.
//!
//! A removal is *planned* if the recorded `nextCleanup` has come by a clock that is trusted, or if the spec has changed
//! since. Otherwise time-zone data, a calendar or the clock has moved the boundary, and it is *unplanned*. This is decided
//! once, when the schedule closes; an unplanned removal is recorded in the status.
//!
//! A person's wish is never held: a deletion, the kill switch, a reclaim, `enabled: false`, an override.

use super::demand::{Demand, UnwantedBy};
use super::draft::Draft;
use super::situation::{Situation, instant};
use super::status::was_wanted;
use crate::action::{Event, EventCause};
use crate::world::RemovalGate;
use five_spot_api::UnplannedRemoval;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::event::EventReason;
use five_spot_api::names::annotation;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::fmt;
use std::str::FromStr;

/// The time in which the number of unplanned removals is limited.
pub const UNPLANNED_REMOVALS_WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// The time after which a removal that was held because of the clock may begin, if the clock is trusted by then. Someone
/// could look meanwhile.
const AFTER_WRONG_CLOCK: SignedDuration = SignedDuration::from_hours(1);

/// The smallest limit that a percentage gives: a small fleet must not be held up by one or two machines.
const SMALLEST_SHARE: usize = 5;

/// `--max-unplanned-removals`: how many unplanned removals may begin within [`UNPLANNED_REMOVALS_WINDOW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalLimit {
    /// This many.
    Count(u32),
    /// This share of the lent machines, from 0 to 99 percent, but never below five machines.
    Percent(u8),
    /// Any number: `100%`.
    Unlimited,
}

impl Default for RemovalLimit {
    fn default() -> Self {
        Self::Percent(20)
    }
}

impl RemovalLimit {
    /// Returns the limit for a fleet with this many lent machines. `None` if there is none.
    pub fn of(self, lent: usize) -> Option<usize> {
        match self {
            Self::Count(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            Self::Percent(percent) => Some((lent * usize::from(percent) / 100).max(SMALLEST_SHARE)),
            Self::Unlimited => None,
        }
    }
}

impl fmt::Display for RemovalLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Unlimited => f.write_str("100%"),
        }
    }
}

/// The error of a limit that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovalLimitError;

impl fmt::Display for RemovalLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it must be a number of machines, as in 10, or a percentage from 0% to 100%, as in 20%")
    }
}

impl std::error::Error for RemovalLimitError {}

impl FromStr for RemovalLimit {
    type Err = RemovalLimitError;

    fn from_str(text: &str) -> Result<Self, RemovalLimitError> {
        let (digits, is_percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RemovalLimitError);
        }
        match (digits.parse::<u32>().map_err(|_| RemovalLimitError)?, is_percent) {
            (count, false) => Ok(Self::Count(count)),
            (100, true) => Ok(Self::Unlimited),
            (percent, true) => u8::try_from(percent)
                .ok()
                .filter(|percent| *percent < 100)
                .map(Self::Percent)
                .ok_or(RemovalLimitError),
        }
    }
}

/// The unplanned removals of the objects that one instance works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnplannedRemovals {
    /// The number of lent machines.
    pub lent: usize,
    /// The number of removals that are held.
    pub held: usize,
    /// The number of removals that began within [`UNPLANNED_REMOVALS_WINDOW`].
    pub begun: usize,
}

/// Returns true if one more unplanned removal may begin. Once one is held, all further ones are: a fleet must not be emptied
/// slowly either.
pub fn may_begin(limit: RemovalLimit, removals: UnplannedRemovals) -> bool {
    limit.of(removals.lent).is_none_or(|limit| removals.held == 0 && removals.begun < limit)
}

/// The state of an unplanned removal, for the code that counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// It has to be asked for first: [`RemovalGate::Unasked`].
    Asks,
    /// It is held.
    Held,
    /// It has begun.
    Begun,
}

/// The removal of a machine whose schedule has closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Removal {
    /// Recorded in the status if it is unplanned.
    pub(super) record: Option<UnplannedRemoval>,
    pub(super) state: Option<Unplanned>,
}

impl Removal {
    /// Returns true if the removal must not begin now.
    pub(super) const fn is_held(&self) -> bool {
        match self.state {
            Some(Unplanned::Asks | Unplanned::Held) => true,
            Some(Unplanned::Begun) | None => false,
        }
    }

    fn begun(record: UnplannedRemoval) -> Self {
        Self { record: Some(record), state: Some(Unplanned::Begun) }
    }
}

/// Returns the removal that the situation asks for. `is_paused` is true if something else holds it back.
pub(super) fn examine(situation: &Situation<'_>, demand: Demand, is_paused: bool) -> Removal {
    let prior = situation.prior().unplanned_removal.clone();
    let record = match demand {
        Demand::Unwanted(UnwantedBy::OutsideWindow) => prior,
        // It counts for a while that it began. A hold is over.
        Demand::Unwanted(_) | Demand::Unclear => {
            return prior
                .filter(|record| record.begun_at.is_some())
                .map_or_else(Removal::default, Removal::begun);
        }
        Demand::Wanted(_) => return Removal::default(),
    };
    if let Some(record) = record.clone().filter(|record| record.begun_at.is_some()) {
        return Removal::begun(record);
    }
    if situation.living_machine().is_none() {
        return Removal::default();
    }
    let record = match record {
        Some(record) if has_become_planned(situation, &record) => None,
        Some(record) => Some(record),
        None => closed_unplanned(situation),
    };
    let Some(mut record) = record else { return Removal::default() };
    let state = match situation.world.brake.gate {
        _ if is_paused => Unplanned::Held,
        RemovalGate::Open => {
            record.begun_at = Some(Time(situation.second));
            Unplanned::Begun
        }
        RemovalGate::Unasked => Unplanned::Asks,
        RemovalGate::Closed => Unplanned::Held,
    };
    Removal { record: Some(record), state: Some(state) }
}

/// Returns the record of a removal that is unplanned, if the schedule has closed since the last decision.
fn closed_unplanned(situation: &Situation<'_>) -> Option<UnplannedRemoval> {
    let prior = situation.prior();
    let planned_for = prior.next_cleanup.clone();
    let is_new = was_wanted(situation);
    (is_new && !is_planned(situation, prior.observed_generation, planned_for.as_ref())).then_some({
        UnplannedRemoval {
            since: Time(situation.second),
            generation: situation.world.object.generation,
            planned_for,
            begun_at: None,
        }
    })
}

/// Returns true if a removal that is held has become planned: the spec has changed, or its recorded time has come. If that
/// had come already when the removal was held, the clock was not trusted then, and it has to be for a while first: a restart
/// does not know of a jump before it.
fn has_become_planned(situation: &Situation<'_>, record: &UnplannedRemoval) -> bool {
    let was_clock = record.planned_for.as_ref().is_some_and(|time| instant(time) <= instant(&record.since));
    let waited = situation.now.duration_since(instant(&record.since)) >= AFTER_WRONG_CLOCK;
    let planned_for = record.planned_for.as_ref().filter(|_| !was_clock || waited);
    is_planned(situation, Some(record.generation), planned_for)
}

/// Returns true if the spec of an object has changed, or if its recorded time has come.
fn is_planned(situation: &Situation<'_>, generation: Option<i64>, planned_for: Option<&Time>) -> bool {
    let is_edited = generation != Some(situation.world.object.generation);
    let has_come = planned_for.is_some_and(|time| instant(time) <= situation.now);
    is_edited || (has_come && situation.world.brake.clock_is_trusted)
}

/// The cause of the pause, for the condition.
pub(super) fn reason() -> String {
    format!(
        "the brake: too many machines would be removed although neither their schedule nor their spec \
         explains it; check the clock of the controller, its time-zone data and the calendars, then set the \
         annotation {} on the namespace of the controller to an RFC 3339 time until which these removals may \
         begin",
        annotation::ALLOW_REMOVALS
    )
}

/// Returns the event about a removal that is held from now on.
pub(super) fn announce(situation: &Situation<'_>, draft: &Draft) -> Option<Event> {
    let record = draft.removal.record.as_ref().filter(|_| draft.removal.state == Some(Unplanned::Held))?;
    let is_known = situation.prior_reason_is(ConditionType::Paused, Reason::TooManyRemovals);
    (!is_known).then(|| Event {
        reason: EventReason::TooManyRemovals,
        note: format!("The removal of Machine {} is held by {}", situation.machine_name(), reason()),
        cause: EventCause::Instant(instant(&record.since)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_percentage() {
        for (text, expected) in [
            ("0", RemovalLimit::Count(0)),
            ("12", RemovalLimit::Count(12)),
            ("0%", RemovalLimit::Percent(0)),
            ("20%", RemovalLimit::Percent(20)),
            ("100%", RemovalLimit::Unlimited),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        for text in ["", "%", "-1", "+1", "101%", "20 %", "a", "1.5%", "99999999999", "20%%"] {
            assert_eq!(text.parse::<RemovalLimit>(), Err(RemovalLimitError), "{text}");
        }
    }

    #[test]
    fn a_share_is_never_below_five_machines() {
        let shares: Vec<Option<usize>> =
            [0, 24, 25, 30, 1000].into_iter().map(|lent| RemovalLimit::default().of(lent)).collect();
        assert_eq!(shares, [5, 5, 5, 6, 200].map(Some));
        assert_eq!(RemovalLimit::Count(2).of(1000), Some(2));
        assert_eq!(RemovalLimit::Unlimited.of(1000), None);
    }

    #[test]
    fn once_one_is_held_all_further_ones_are() {
        let removals = |held, begun| UnplannedRemovals { lent: 10, held, begun };
        let limit = RemovalLimit::default();
        assert!(may_begin(limit, removals(0, 4)));
        assert!(!may_begin(limit, removals(0, 5)));
        assert!(!may_begin(limit, removals(1, 0)));
        assert!(may_begin(RemovalLimit::Unlimited, removals(1, 50)));
        assert!(!may_begin(RemovalLimit::Count(0), removals(0, 0)));
    }
}
