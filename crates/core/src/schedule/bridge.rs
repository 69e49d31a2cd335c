//! Wanted periods that run through several windows.
//!
//! The lead time of a window may reach back to the end of the window before it: the machine stays. It may do
//! so day after day, and then the end of the period has to be sought far away, or does not exist. The search
//! goes from window to window, but leaps over weeks that are like the one it has just seen.

use super::compiled::{Schedule, TICK};
use jiff::{SignedDuration, Timestamp};

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How far from a step of the clock a window may feel it: no clock has ever been put forward or back by more
/// than a day, and windows that begin the day before may end in it.
const REACH_OF_A_STEP: SignedDuration = SignedDuration::from_hours(2 * 24);
/// Clocks are put forward and back by the rules of a year, and on the same weekday in every year. What no step of
/// the clock has interrupted in so many years will not be interrupted by one.
const YEARS_ENOUGH: SignedDuration = SignedDuration::from_hours(5 * 366 * 24);
/// How far back the start of a period is sought.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(400 * 24);

/// The end of the wanted period of which `now` is a part, in a window or in its lead time.
pub(super) fn period_end(
    schedule: &Schedule,
    lead_time: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut close = close_after(schedule, now)?;
    if lead_time.is_zero() {
        return Some(close);
    }
    // Since when the search has gone from window to window, and since when, leaps included, it knows that
    // every gap is bridged.
    let (mut seen_from, mut known_from) = (now, now);
    loop {
        let Some(open) = schedule.next_change(close) else {
            return Some(close);
        };
        if minus(open, lead_time) > close {
            return Some(close);
        }
        close = schedule.next_change(open)?;
        if close.duration_since(known_from) > YEARS_ENOUGH {
            let edge = schedule.without_exception_edge_around(close).until;
            if edge == Timestamp::MAX {
                return None;
            }
            let shortly_before = minus(edge, WEEK + REACH_OF_A_STEP);
            close = close_after(schedule, shortly_before.max(close))?;
            (seen_from, known_from) = (close, close);
        } else if let Some(later) = same_weeks_later(schedule, seen_from, close) {
            close = later;
            seen_from = later;
        }
    }
}

/// Where a wanted period starts, as far as it has been sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Then.
    At(Timestamp),
    /// Before then, if ever: since that time at least there has been no gap.
    Before(Timestamp),
}

/// The start of the wanted period of which `now` is a part, in a window or in its lead time.
pub(super) fn period_start(schedule: &Schedule, lead_time: SignedDuration, now: Timestamp) -> Start {
    let opened = if schedule.is_open(now) { schedule.open_since(now) } else { schedule.next_change(now) };
    let Some(mut open) = opened else { return Start::Before(Timestamp::MIN) };
    loop {
        let start = minus(open, lead_time);
        let Some(close) = schedule.last_change(before(open)).filter(|close| start <= *close) else {
            return Start::At(start);
        };
        if now.duration_since(close) > LOOK_BACK {
            return Start::Before(close);
        }
        let Some(opened) = schedule.last_change(before(close)) else {
            return Start::Before(Timestamp::MIN);
        };
        open = opened;
    }
}

/// The end of the window that an instant is in, or else of the next.
fn close_after(schedule: &Schedule, t: Timestamp) -> Option<Timestamp> {
    let change = schedule.next_change(t)?;
    if schedule.is_open(t) { Some(change) } else { schedule.next_change(change) }
}

/// The end of the same window as many weeks later as every week is like the one that has been seen. None
/// if not even the next one is, or if no whole week has been seen yet.
fn same_weeks_later(schedule: &Schedule, seen_from: Timestamp, close: Timestamp) -> Option<Timestamp> {
    let week_before = minus(close, WEEK);
    if week_before < seen_from {
        return None;
    }
    let regular = schedule.regular_around(close);
    if regular.since.checked_add(REACH_OF_A_STEP).ok()? > week_before {
        return None;
    }
    let weeks = minus(regular.until, REACH_OF_A_STEP).duration_since(close).as_secs() / WEEK.as_secs();
    (weeks > 0).then(|| close.checked_add(SignedDuration::from_secs(weeks * WEEK.as_secs())).ok()).flatten()
}

/// The last instant before another.
fn before(t: Timestamp) -> Timestamp {
    minus(t, TICK)
}

/// An instant earlier by a duration, or the first of all.
fn minus(t: Timestamp, duration: SignedDuration) -> Timestamp {
    t.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
