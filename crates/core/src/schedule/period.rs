//! Wanted periods that span several windows.
//!
//! The lead time of a window may reach back to the end of the previous window, so that the machine stays. If that happens day
//! after day, the end of the period is far away or does not exist. The search goes from window to window, but skips weeks that
//! are identical to the one before.

use super::compiled::{Schedule, TICK};
use jiff::{SignedDuration, Timestamp};

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The distance from a change of the offset within which it can affect a window. No zone has ever changed its offset by more
/// than a day, and a window that begins the day before may end within the change.
const OFFSET_CHANGE_REACH: SignedDuration = SignedDuration::from_hours(2 * 24);
/// The length of a period without a gap after which only exceptions can end it. Offsets change by annual rules, on the same
/// weekday every year, so a change that has not interrupted the period in so many years never will.
const OFFSET_CHANGES_COVERED: SignedDuration = SignedDuration::from_hours(5 * 366 * 24);
/// The limit of the search for the start of a period.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Returns the end of the wanted period that contains `now`, in a window or in its lead time.
pub(super) fn period_end(
    schedule: &Schedule,
    lead_time: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut close = close_after(schedule, now)?;
    if lead_time.is_zero() {
        return Some(close);
    }
    // The start of the range that was searched window by window, and the start of the range without gaps, skipped weeks
    // included.
    let (mut seen_from, mut known_from) = (now, now);
    loop {
        let Some(open) = schedule.next_change(close) else {
            return Some(close);
        };
        if minus(open, lead_time) > close {
            return Some(close);
        }
        close = schedule.next_change(open)?;
        if close.duration_since(known_from) > OFFSET_CHANGES_COVERED {
            let edge = schedule.without_exception_edge_around(close).until;
            if edge == Timestamp::MAX {
                return None;
            }
            let shortly_before = minus(edge, WEEK + OFFSET_CHANGE_REACH);
            close = close_after(schedule, shortly_before.max(close))?;
            (seen_from, known_from) = (close, close);
        } else if let Some(later) = same_weeks_later(schedule, seen_from, close) {
            close = later;
            seen_from = later;
        }
    }
}

/// The start of a wanted period, as far as it was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this time.
    At(Timestamp),
    /// Before this time, or never: there is no gap since.
    Before(Timestamp),
}

/// Returns the start of the wanted period that contains `now`, in a window or in its lead time.
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

/// Returns the end of the window that contains an instant, or else of the next window.
fn close_after(schedule: &Schedule, t: Timestamp) -> Option<Timestamp> {
    let change = schedule.next_change(t)?;
    if schedule.is_open(t) { Some(change) } else { schedule.next_change(change) }
}

/// Returns the end of the same window in the last week that is identical to the one that was searched. Returns `None` if not
/// even the next week is, or if no whole week was searched yet.
fn same_weeks_later(schedule: &Schedule, seen_from: Timestamp, close: Timestamp) -> Option<Timestamp> {
    let week_before = minus(close, WEEK);
    if week_before < seen_from {
        return None;
    }
    let regular = schedule.regular_around(close);
    if regular.since.checked_add(OFFSET_CHANGE_REACH).ok()? > week_before {
        return None;
    }
    let weeks = minus(regular.until, OFFSET_CHANGE_REACH).duration_since(close).as_secs() / WEEK.as_secs();
    (weeks > 0).then(|| close.checked_add(SignedDuration::from_secs(weeks * WEEK.as_secs())).ok()).flatten()
}

/// Returns the last instant before `t`.
fn before(t: Timestamp) -> Timestamp {
    minus(t, TICK)
}

/// Returns `t` minus a duration, or the first instant of all.
fn minus(t: Timestamp, duration: SignedDuration) -> Timestamp {
    t.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
