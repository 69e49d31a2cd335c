//! The trust in the wall clock: it agrees with the API server, and has not jumped.

use crate::leader::LeaseClock;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The difference from which on a clock is wrong. Machines are lent by the minute, and clocks that are kept in step differ by
/// less than a second.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// The time for which a clock is not trusted after a jump. A jump may also be the correction of a wrong clock; after an hour
/// in which someone could look, a clock that the API server agrees with is the time.
const DISTRUST: Duration = Duration::from_hours(1);

/// The trust in the wall clock.
pub(super) struct ClockTrust {
    clock: Arc<dyn LeaseClock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The wall clock and the monotonic clock at the same moment.
    last: Option<(Timestamp, Duration)>,
    /// The end of the time in which the clock is not trusted because of a jump.
    distrusted_until: Option<Duration>,
    was_trusted: Option<bool>,
}

impl ClockTrust {
    pub(super) fn new(clock: Arc<dyn LeaseClock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Returns true if the wall clock can be trusted. `skew` is its difference from the clock of the API server.
    pub(super) fn is_trusted(&self, wall: Timestamp, skew: Option<SignedDuration>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.compare(wall, self.clock.now());
        let differs = skew.is_some_and(|skew| skew.abs() > TOLERANCE);
        let is_trusted = state.distrusted_until.is_none() && !differs;
        if let Some(was_trusted) = state.was_trusted.replace(is_trusted)
            && was_trusted != is_trusted
        {
            let skew_secs = skew.map(|skew| skew.as_secs());
            if is_trusted {
                tracing::info!(skew_secs, "The clock is trusted again");
            } else {
                tracing::warn!(
                    skew_secs,
                    "The clock is not trusted: it has jumped, or differs from that of the API server. \
                     Removals that depend on it are limited by --max-unplanned-removals"
                );
            }
        } else if state.was_trusted.is_none() {
            state.was_trusted = Some(is_trusted);
        }
        is_trusted
    }

    /// Returns true if the wall clock can be trusted and could not when it was last looked at.
    pub(super) fn has_recovered(&self, wall: Timestamp, skew: Option<SignedDuration>) -> bool {
        let before = self.state.lock().unwrap_or_else(PoisonError::into_inner).was_trusted;
        self.is_trusted(wall, skew) && before == Some(false)
    }
}

impl State {
    /// Finds jumps of the wall clock: the monotonic clock knows how much time has passed.
    fn compare(&mut self, wall: Timestamp, now: Duration) {
        if let Some((last_wall, last)) = self.last.replace((wall, now)) {
            let passed = SignedDuration::try_from(now.saturating_sub(last)).unwrap_or(SignedDuration::MAX);
            if (wall.duration_since(last_wall) - passed).abs() > TOLERANCE {
                self.distrusted_until = Some(now + DISTRUST);
            }
        }
        self.distrusted_until = self.distrusted_until.filter(|until| now < *until);
    }
}
