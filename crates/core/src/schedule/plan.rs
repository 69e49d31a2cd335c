//! What the clock wants: the schedule with lead time, override and `enabled` on top.

use super::bridge::{Start, period_end, period_start};
use super::cause::{Cause, Causes};
use super::compiled::Schedule;
use super::grammar::Override;
use five_spot_api::OverrideState;
use jiff::{SignedDuration, Timestamp};

/// When a machine is wanted, as far as the clock can say. Kill switch, reclaim and deletion come before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    schedule: Schedule,
    lead_time: SignedDuration,
    enabled: bool,
    overriding: Option<Override>,
}

/// Why a machine is wanted at an instant, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
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

impl Standing {
    /// Every standing there is.
    pub const ALL: [Self; 6] = [
        Self::InWindow,
        Self::LeadTime,
        Self::OverrideUp,
        Self::OverrideDown,
        Self::Disabled,
        Self::OutsideWindow,
    ];

    /// Whether a machine is wanted.
    pub const fn wanted(self) -> bool {
        match self {
            Self::InWindow | Self::LeadTime | Self::OverrideUp => true,
            Self::OverrideDown | Self::Disabled | Self::OutsideWindow => false,
        }
    }
}

/// A half-open stretch of time during which a machine is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
    /// What makes it, taken over all of it.
    pub causes: Causes,
}

impl Plan {
    /// What a schedule amounts to with everything else that goes by the clock.
    pub const fn new(
        schedule: Schedule,
        lead_time: SignedDuration,
        enabled: bool,
        overriding: Option<Override>,
    ) -> Self {
        Self { schedule, lead_time, enabled, overriding }
    }

    /// The schedule underneath.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How an instant stands: override before `enabled` before the schedule.
    pub fn at(&self, now: Timestamp) -> Standing {
        match self.override_at(now) {
            Some(Override { state: OverrideState::Up, .. }) => Standing::OverrideUp,
            Some(Override { state: OverrideState::Down, .. }) => Standing::OverrideDown,
            None if !self.enabled => Standing::Disabled,
            None if self.schedule.is_open(now) => Standing::InWindow,
            None if self.is_lead_time(now) => Standing::LeadTime,
            None => Standing::OutsideWindow,
        }
    }

    /// The earliest instant after `now` at which a machine becomes wanted.
    pub fn next_activation(&self, now: Timestamp) -> Option<Timestamp> {
        let standing = self.at(now);
        let turn = self.next_turn(now, standing)?;
        if standing.wanted() { self.next_turn(turn, self.at(turn)) } else { Some(turn) }
    }

    /// The earliest instant after `now` at which a machine is no longer wanted.
    pub fn next_cleanup(&self, now: Timestamp) -> Option<Timestamp> {
        let standing = self.at(now);
        let turn = self.next_turn(now, standing)?;
        if standing.wanted() { Some(turn) } else { self.next_turn(turn, self.at(turn)) }
    }

    /// The earliest instant after `now` at which anything changes: how it stands, or whether the schedule
    /// is open.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let change = self.schedule.next_change(now);
        let sooner = match self.override_at(now) {
            Some(Override { until, .. }) => Some(until),
            None if !self.enabled || self.schedule.is_open(now) => None,
            None => change.map(|opens| self.lead_start(opens)).filter(|&start| now < start),
        };
        [sooner, change].into_iter().flatten().min()
    }

    /// If a machine is wanted: the start of the wanted period. None where that cannot be known, because an
    /// override made it wanted at some time before, or where it lies too far back to matter.
    pub fn wanted_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self.at(now) {
            Standing::InWindow | Standing::LeadTime => {}
            Standing::OverrideUp | Standing::OverrideDown | Standing::Disabled | Standing::OutsideWindow => {
                return None;
            }
        }
        let by_schedule = period_start(&self.schedule, self.lead_time, now);
        let since = match by_schedule {
            Start::At(since) | Start::Before(since) => since,
        };
        // The period may go back into the time that an override ruled.
        match (self.overriding.filter(|overriding| since <= overriding.until), by_schedule) {
            (Some(Override { state: OverrideState::Down, until }), _) => Some(until),
            (None, Start::At(start)) => Some(start),
            (Some(Override { state: OverrideState::Up, .. }), _) | (None, Start::Before(_)) => None,
        }
    }

    /// The periods in `[from, to)` in which a machine is wanted, in order; no two of them touch.
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

    /// The wanted part of a stretch over which the standing does not change.
    fn pieces(&self, start: Timestamp, end: Timestamp) -> Vec<Period> {
        let whole = |cause: Cause| vec![Period { start, end, causes: cause.into() }];
        match self.at(start) {
            Standing::InWindow => {
                let spans = self.schedule.spans(start, end).into_iter();
                spans.map(|span| Period { start: span.start, end: span.end, causes: span.causes }).collect()
            }
            Standing::LeadTime => whole(Cause::LeadTime),
            Standing::OverrideUp => whole(Cause::Override),
            Standing::OverrideDown | Standing::Disabled | Standing::OutsideWindow => Vec::new(),
        }
    }

    /// The override, if it counts at an instant.
    fn override_at(&self, now: Timestamp) -> Option<Override> {
        self.overriding.filter(|overriding| now < overriding.until)
    }

    /// Whether the schedule, which is closed, opens within the lead time.
    fn is_lead_time(&self, now: Timestamp) -> bool {
        let opens = || self.schedule.next_change(now);
        !self.lead_time.is_zero() && opens().is_some_and(|opens| self.lead_start(opens) <= now)
    }

    /// When the lead time of a window starts.
    fn lead_start(&self, opens: Timestamp) -> Timestamp {
        opens.checked_sub(self.lead_time).unwrap_or(Timestamp::MIN)
    }

    /// The earliest instant after `now` at which wanted turns into unwanted or the other way round.
    fn next_turn(&self, now: Timestamp, standing: Standing) -> Option<Timestamp> {
        let Some(Override { until, .. }) = self.override_at(now) else {
            return self.next_turn_of_schedule(now, standing);
        };
        let then = self.at(until);
        if then.wanted() == standing.wanted() { self.next_turn_of_schedule(until, then) } else { Some(until) }
    }

    /// The same, of an instant at which no override counts.
    fn next_turn_of_schedule(&self, now: Timestamp, standing: Standing) -> Option<Timestamp> {
        match standing {
            Standing::InWindow | Standing::LeadTime => period_end(&self.schedule, self.lead_time, now),
            Standing::OutsideWindow => self.schedule.next_change(now).map(|opens| self.lead_start(opens)),
            Standing::OverrideUp | Standing::OverrideDown | Standing::Disabled => None,
        }
    }
}

/// Adds a piece behind the periods before it, as a part of the last one if it touches that.
fn append(periods: &mut Vec<Period>, piece: Period) {
    match periods.last_mut() {
        Some(last) if last.end == piece.start => {
            last.end = piece.end;
            last.causes = last.causes.union(piece.causes);
        }
        Some(_) | None => periods.push(piece),
    }
}
