//! The plan: the schedule with its lead time, override and `enabled`.

use super::cause::{Cause, Causes};
use super::compiled::Schedule;
use super::grammar::Override;
use super::period::{Start, period_end, period_start};
use five_spot_api::OverrideState;
use jiff::{SignedDuration, Timestamp};

/// The times at which a machine is wanted, as far as they depend on the clock. The kill switch, a reclaim and a deletion take
/// precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    schedule: Schedule,
    lead_time: SignedDuration,
    enabled: bool,
    overriding: Option<Override>,
}

/// The state of a plan at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanState {
    /// Wanted: the schedule is open.
    InWindow,
    /// Wanted: the schedule opens within the lead time.
    LeadTime,
    /// Wanted: an override says so.
    OverrideUp,
    /// Not wanted: an override says so.
    OverrideDown,
    /// Not wanted: the schedule is disabled.
    Disabled,
    /// Not wanted: the schedule is closed.
    OutsideWindow,
}

impl PlanState {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::InWindow,
        Self::LeadTime,
        Self::OverrideUp,
        Self::OverrideDown,
        Self::Disabled,
        Self::OutsideWindow,
    ];

    /// Returns true if a machine is wanted.
    pub const fn wanted(self) -> bool {
        match self {
            Self::InWindow | Self::LeadTime | Self::OverrideUp => true,
            Self::OverrideDown | Self::Disabled | Self::OutsideWindow => false,
        }
    }
}

/// A half-open interval in which a machine is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
    /// The causes in the whole period.
    pub causes: Causes,
}

impl Plan {
    /// Returns the plan of a schedule with its lead time, `enabled` and override.
    pub const fn new(
        schedule: Schedule,
        lead_time: SignedDuration,
        enabled: bool,
        overriding: Option<Override>,
    ) -> Self {
        Self { schedule, lead_time, enabled, overriding }
    }

    /// Returns the schedule.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the state at an instant. The override takes precedence over `enabled`, and `enabled` over the schedule.
    pub fn at(&self, now: Timestamp) -> PlanState {
        match self.override_at(now) {
            Some(Override { state: OverrideState::Up, .. }) => PlanState::OverrideUp,
            Some(Override { state: OverrideState::Down, .. }) => PlanState::OverrideDown,
            None if !self.enabled => PlanState::Disabled,
            None if self.schedule.is_open(now) => PlanState::InWindow,
            None if self.is_lead_time(now) => PlanState::LeadTime,
            None => PlanState::OutsideWindow,
        }
    }

    /// Returns the earliest instant after `now` at which a machine becomes wanted.
    pub fn next_activation(&self, now: Timestamp) -> Option<Timestamp> {
        let state = self.at(now);
        let change = self.next_demand_change(now, state)?;
        if state.wanted() { self.next_demand_change(change, self.at(change)) } else { Some(change) }
    }

    /// Returns the earliest instant after `now` at which a machine is no longer wanted.
    pub fn next_cleanup(&self, now: Timestamp) -> Option<Timestamp> {
        let state = self.at(now);
        let change = self.next_demand_change(now, state)?;
        if state.wanted() { Some(change) } else { self.next_demand_change(change, self.at(change)) }
    }

    /// Returns the earliest instant after `now` at which the state of the plan or of the schedule changes.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let change = self.schedule.next_change(now);
        let sooner = match self.override_at(now) {
            Some(Override { until, .. }) => Some(until),
            None if !self.enabled || self.schedule.is_open(now) => None,
            None => change.map(|opens| self.lead_start(opens)).filter(|&start| now < start),
        };
        [sooner, change].into_iter().flatten().min()
    }

    /// Returns the start of the current wanted period. Returns `None` if no machine is wanted, if the start is unknown because
    /// of an override, or if it is too long ago to matter.
    pub fn wanted_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self.at(now) {
            PlanState::InWindow | PlanState::LeadTime => {}
            PlanState::OverrideUp
            | PlanState::OverrideDown
            | PlanState::Disabled
            | PlanState::OutsideWindow => {
                return None;
            }
        }
        let by_schedule = period_start(&self.schedule, self.lead_time, now);
        let since = match by_schedule {
            Start::At(since) | Start::Before(since) => since,
        };
        // The period may extend back into the time of an override.
        match (self.overriding.filter(|overriding| since <= overriding.until), by_schedule) {
            (Some(Override { state: OverrideState::Down, until }), _) => Some(until),
            (None, Start::At(start)) => Some(start),
            (Some(Override { state: OverrideState::Up, .. }), _) | (None, Start::Before(_)) => None,
        }
    }

    /// Returns the periods in `[from, to)` in which a machine is wanted, in order. No two of them are adjacent.
    pub fn periods(&self, from: Timestamp, to: Timestamp) -> Vec<Period> {
        let mut periods = Vec::new();
        let mut t = from;
        while t < to {
            let end = self.next_boundary(t).map_or(to, |boundary| boundary.min(to));
            for piece in self.pieces(t, end) {
                append(&mut periods, piece);
            }
            t = end;
        }
        periods
    }

    /// Returns the wanted parts of an interval in which the state does not change.
    fn pieces(&self, start: Timestamp, end: Timestamp) -> Vec<Period> {
        let whole = |cause: Cause| vec![Period { start, end, causes: cause.into() }];
        match self.at(start) {
            PlanState::InWindow => {
                let spans = self.schedule.spans(start, end).into_iter();
                spans.map(|span| Period { start: span.start, end: span.end, causes: span.causes }).collect()
            }
            PlanState::LeadTime => whole(Cause::LeadTime),
            PlanState::OverrideUp => whole(Cause::Override),
            PlanState::OverrideDown | PlanState::Disabled | PlanState::OutsideWindow => Vec::new(),
        }
    }

    /// Returns the override if it is in effect at an instant.
    fn override_at(&self, now: Timestamp) -> Option<Override> {
        self.overriding.filter(|overriding| now < overriding.until)
    }

    /// Returns true if the schedule, which is closed, opens within the lead time.
    fn is_lead_time(&self, now: Timestamp) -> bool {
        let opens = || self.schedule.next_change(now);
        !self.lead_time.is_zero() && opens().is_some_and(|opens| self.lead_start(opens) <= now)
    }

    /// Returns the start of the lead time of a window.
    fn lead_start(&self, opens: Timestamp) -> Timestamp {
        opens.checked_sub(self.lead_time).unwrap_or(Timestamp::MIN)
    }

    /// Returns the earliest instant after `now` at which a machine becomes wanted or unwanted.
    fn next_demand_change(&self, now: Timestamp, state: PlanState) -> Option<Timestamp> {
        let Some(Override { until, .. }) = self.override_at(now) else {
            return self.next_schedule_change(now, state);
        };
        let then = self.at(until);
        if then.wanted() == state.wanted() { self.next_schedule_change(until, then) } else { Some(until) }
    }

    /// Returns the same for an instant at which no override is in effect.
    fn next_schedule_change(&self, now: Timestamp, state: PlanState) -> Option<Timestamp> {
        match state {
            PlanState::InWindow | PlanState::LeadTime => period_end(&self.schedule, self.lead_time, now),
            PlanState::OutsideWindow => self.schedule.next_change(now).map(|opens| self.lead_start(opens)),
            PlanState::OverrideUp | PlanState::OverrideDown | PlanState::Disabled => None,
        }
    }
}

/// Appends a period, merged with the last one if they are adjacent.
fn append(periods: &mut Vec<Period>, piece: Period) {
    match periods.last_mut() {
        Some(last) if last.end == piece.start => {
            last.end = piece.end;
            last.causes = last.causes.union(piece.causes);
        }
        Some(_) | None => periods.push(piece),
    }
}
