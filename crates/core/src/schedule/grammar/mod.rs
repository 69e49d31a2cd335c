//! The grammar of schedules. The parsers accept exactly what the rules of the CRD accept.

mod date;
mod days;
mod duration;
mod hours;
mod minute_of_week;
mod until;

pub(super) use date::parse_date;
pub(super) use days::Weekdays;
pub use duration::{DurationBounds, parse_duration};
pub(super) use hours::{HourMask, Hours};
pub(super) use minute_of_week::parse_minute_of_week;
pub use until::Override;

use std::ops::BitOr;

/// The maximum length of an entry of days or hours. All 24 hours, separated by commas, fit.
const MAX_COMBINATION_CHARACTERS: usize = 64;

/// Parses an entry such as `mon-wed,fri`: ranges and single values, separated by commas.
fn combination<T, Set>(entry: &str, value: fn(&str) -> Option<T>, range: fn(T, T) -> Set) -> Option<Set>
where
    T: Copy,
    Set: Default + BitOr<Output = Set>,
{
    if entry.chars().count() > MAX_COMBINATION_CHARACTERS {
        return None;
    }
    entry.split(',').try_fold(Set::default(), |set, part| {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (value(first)?, value(last)?),
            None => (value(part)?, value(part)?),
        };
        Some(set | range(first, last))
    })
}

/// A number of one or two digits without anything around it.
fn two_digits(text: &str) -> Option<u8> {
    let digits = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
