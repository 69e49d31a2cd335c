//! The compiled schedule: what is open, since when and until when.

use super::cause::{Cause, Causes};
use super::clock::WallClock;
use super::exception::Layer;
use super::pattern::{Stretch, Window};
use super::quiet::{Quiet, quiet_at, quiet_stretches};
use super::week::{Week, WholeHours};
use five_spot_api::ScheduleState;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// The shortest time there is: an instant minus this is the last one before it.
pub(super) const TICK: SignedDuration = SignedDuration::from_nanos(1);

/// When it is open, by days, hours, windows and exceptions alone. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    compiled: Arc<Compiled>,
}

#[derive(Debug, PartialEq)]
struct Compiled {
    zone_name: String,
    clock: WallClock,
    week: Week,
    /// The exceptions in their order: a later one wins over an earlier.
    layers: Vec<Layer>,
    quiet: Vec<Quiet>,
}

/// A half-open stretch of time during which the schedule is open for the same causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
    /// What makes it open.
    pub causes: Causes,
}

/// An answer and a stretch of time over which it holds at least.
struct Steady<T> {
    answer: T,
    stretch: Stretch,
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
        let quiet = quiet_stretches(&whole_hours, &layers, &clock);
        let week = Week::new(schedule, windows);
        Self { compiled: Arc::new(Compiled { zone_name, clock, week, layers, quiet }) }
    }

    /// The zone of its local times.
    pub fn timezone(&self) -> &TimeZone {
        self.compiled.clock.timezone()
    }

    /// The name of the zone, as in the spec.
    pub fn timezone_name(&self) -> &str {
        &self.compiled.zone_name
    }

    /// Whether it is open at an instant.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.compiled.openness(now).answer
    }

    /// The earliest instant after `after` at which it opens or closes; none if it never does.
    pub fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        let Steady { answer: open, mut stretch } = self.compiled.openness(after);
        let mut t = after;
        loop {
            // No answer holds beyond the end of time.
            if stretch.until <= t || stretch.until == Timestamp::MAX {
                return None;
            }
            t = stretch.until;
            let next = self.compiled.openness(t);
            if next.answer != open {
                return Some(t);
            }
            stretch = next.stretch;
        }
    }

    /// If it is open: since when. None if it is closed, or open for ever back.
    pub fn open_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.is_open(now).then(|| self.last_change(now)).flatten()
    }

    /// The latest instant up to `before` at which it opened or closed; none if it never did.
    pub(super) fn last_change(&self, before: Timestamp) -> Option<Timestamp> {
        let Steady { answer: open, mut stretch } = self.compiled.openness(before);
        loop {
            let since = stretch.since;
            let earlier = self.compiled.openness(since.checked_sub(TICK).ok()?);
            if earlier.answer != open {
                return Some(since);
            }
            if earlier.stretch.since >= since {
                return None;
            }
            stretch = earlier.stretch;
        }
    }

    /// The stretches in `[from, to)` in which it is open, in order. Two that touch have different causes.
    pub fn spans(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut t = from;
        while t < to {
            let Steady { answer: causes, stretch } = self.compiled.causes(t);
            let end = stretch.until.min(to);
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

    /// The stretch around an instant in which neither an exception nor another offset of the zone begins
    /// or ends: a week in it is like the next.
    pub(super) fn regular_around(&self, t: Timestamp) -> Stretch {
        let offset = Stretch {
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

    /// The stretch around an instant in which no exception begins or ends.
    pub(super) fn without_exception_edge_around(&self, t: Timestamp) -> Stretch {
        let edges =
            self.compiled.layers.iter().flat_map(|layer| [layer.extent().since, layer.extent().until]);
        edges.fold(Stretch::EVER, |stretch, edge| {
            let side = if edge <= t {
                Stretch { since: edge, until: Timestamp::MAX }
            } else {
                Stretch { since: Timestamp::MIN, until: edge }
            };
            stretch.within(side)
        })
    }
}

impl Compiled {
    fn openness(&self, t: Timestamp) -> Steady<bool> {
        if let Some(Quiet { open, stretch }) = quiet_at(&self.quiet, t) {
            return Steady { answer: open, stretch };
        }
        let Steady { answer: causes, stretch } = self.causes(t);
        Steady { answer: !causes.is_empty(), stretch }
    }

    /// What makes it open at an instant. The last `closed` that rules the instant takes out whatever was
    /// there before, so the search goes backwards from the end of the exceptions to it.
    fn causes(&self, t: Timestamp) -> Steady<Causes> {
        let (mut causes, mut stretch) = (Causes::NONE, Stretch::EVER);
        for layer in self.layers.iter().rev() {
            let membership = layer.around(&self.clock, t);
            stretch = stretch.within(membership.stretch);
            match (membership.inside, layer.state) {
                (true, ScheduleState::Open) => causes = causes.with(Cause::Exception),
                (true, ScheduleState::Closed) => {
                    return Steady { answer: causes, stretch };
                }
                (false, ScheduleState::Open | ScheduleState::Closed) => {}
            }
        }
        let (weekly, around) = self.week.around(&self.clock, t);
        Steady { answer: causes.union(weekly), stretch: stretch.within(around) }
    }
}
