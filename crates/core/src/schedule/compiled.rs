//! The compiled schedule.

use super::cause::{Cause, Causes};
use super::clock::WallClock;
use super::constant::{ConstantInterval, constant_at, constant_intervals};
use super::exception::Layer;
use super::pattern::{Interval, Window};
use super::week::{Week, WholeHours};
use five_spot_api::ScheduleState;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// The resolution of timestamps: an instant minus this is the last one before it.
pub(super) const TICK: SignedDuration = SignedDuration::from_nanos(1);

/// A schedule of days, hours, windows and exceptions. It is cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    compiled: Arc<Compiled>,
}

#[derive(Debug, PartialEq)]
struct Compiled {
    zone_name: String,
    clock: WallClock,
    week: Week,
    /// The exceptions in their order; a later one takes precedence.
    layers: Vec<Layer>,
    constants: Vec<ConstantInterval>,
}

/// A half-open interval in which the schedule is open for the same causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
    /// The causes that make it open.
    pub causes: Causes,
}

/// An answer, and an interval in which it is certainly the same.
struct StableAnswer<T> {
    answer: T,
    interval: Interval,
}

impl Schedule {
    pub(super) fn compile(
        zone_name: String,
        clock: WallClock,
        schedule: Vec<Window>,
        windows: Vec<Window>,
        layers: Vec<Layer>,
    ) -> Self {
        let whole_hours = WholeHours::of_week([schedule.as_slice(), windows.as_slice()].concat());
        let constants = constant_intervals(&whole_hours, &layers, &clock);
        let week = Week::new(schedule, windows);
        Self { compiled: Arc::new(Compiled { zone_name, clock, week, layers, constants }) }
    }

    /// Returns the time zone.
    pub fn timezone(&self) -> &TimeZone {
        self.compiled.clock.timezone()
    }

    /// Returns the name of the time zone, as in the spec.
    pub fn timezone_name(&self) -> &str {
        &self.compiled.zone_name
    }

    /// Returns true if the schedule is open at an instant.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.compiled.openness(now).answer
    }

    /// Returns the earliest instant after `after` at which the schedule opens or closes; `None` if it never does.
    pub fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        let StableAnswer { answer: open, mut interval } = self.compiled.openness(after);
        let mut t = after;
        loop {
            // There is no change after the last timestamp.
            if interval.until <= t || interval.until == Timestamp::MAX {
                return None;
            }
            t = interval.until;
            let next = self.compiled.openness(t);
            if next.answer != open {
                return Some(t);
            }
            interval = next.interval;
        }
    }

    /// Returns the start of the current opening. Returns `None` if the schedule is closed, or has always been open.
    pub fn open_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.is_open(now).then(|| self.last_change(now)).flatten()
    }

    /// Returns the latest instant up to `before` at which the schedule opened or closed; `None` if it never did.
    pub(super) fn last_change(&self, before: Timestamp) -> Option<Timestamp> {
        let StableAnswer { answer: open, mut interval } = self.compiled.openness(before);
        loop {
            let since = interval.since;
            let earlier = self.compiled.openness(since.checked_sub(TICK).ok()?);
            if earlier.answer != open {
                return Some(since);
            }
            if earlier.interval.since >= since {
                return None;
            }
            interval = earlier.interval;
        }
    }

    /// Returns the intervals in `[from, to)` in which the schedule is open, in order. Adjacent ones have different causes.
    pub fn spans(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut t = from;
        while t < to {
            let StableAnswer { answer: causes, interval } = self.compiled.causes(t);
            let end = interval.until.min(to);
            match spans.last_mut() {
                Some(last) if last.end == t && last.causes == causes => last.end = end,
                Some(_) | None if !causes.is_empty() => spans.push(Span { start: t, end, causes }),
                Some(_) | None => {}
            }
            if end <= t {
                break;
            }
            t = end;
        }
        spans
    }

    /// Returns the interval around an instant in which no exception and no offset of the zone begins or ends. All weeks in it
    /// are identical.
    pub(super) fn regular_around(&self, t: Timestamp) -> Interval {
        let offset = Interval {
            since: self
                .timezone()
                .preceding(t)
                .next()
                .map_or(Timestamp::MIN, |transition| transition.timestamp()),
            until: self
                .timezone()
                .following(t)
                .next()
                .map_or(Timestamp::MAX, |transition| transition.timestamp()),
        };
        offset.within(self.without_exception_edge_around(t))
    }

    /// Returns the interval around an instant in which no exception begins or ends.
    pub(super) fn without_exception_edge_around(&self, t: Timestamp) -> Interval {
        let edges =
            self.compiled.layers.iter().flat_map(|layer| [layer.extent().since, layer.extent().until]);
        edges.fold(Interval::EVER, |interval, edge| {
            let side = if edge <= t {
                Interval { since: edge, until: Timestamp::MAX }
            } else {
                Interval { since: Timestamp::MIN, until: edge }
            };
            interval.within(side)
        })
    }
}

impl Compiled {
    fn openness(&self, t: Timestamp) -> StableAnswer<bool> {
        if let Some(ConstantInterval { open, interval }) = constant_at(&self.constants, t) {
            return StableAnswer { answer: open, interval };
        }
        let StableAnswer { answer: causes, interval } = self.causes(t);
        StableAnswer { answer: !causes.is_empty(), interval }
    }

    /// Returns the causes that make the schedule open at an instant. The last `closed` exception at the instant overrules all
    /// earlier ones, so the search goes backwards through the exceptions.
    fn causes(&self, t: Timestamp) -> StableAnswer<Causes> {
        let (mut causes, mut interval) = (Causes::NONE, Interval::EVER);
        for layer in self.layers.iter().rev() {
            let membership = layer.around(&self.clock, t);
            interval = interval.within(membership.interval);
            match (membership.inside, layer.state) {
                (true, ScheduleState::Open) => causes = causes.with(Cause::Exception),
                (true, ScheduleState::Closed) => {
                    return StableAnswer { answer: causes, interval };
                }
                (false, ScheduleState::Open | ScheduleState::Closed) => {}
            }
        }
        let (weekly, around) = self.week.around(&self.clock, t);
        StableAnswer { answer: causes.union(weekly), interval: interval.within(around) }
    }
}
