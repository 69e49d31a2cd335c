//! The ends of `windows`.

use super::days::weekday;
use super::two_digits;
use crate::FieldError;
use crate::schedule::clock::{MINUTES_PER_DAY, MINUTES_PER_HOUR};
use five_spot_api::rules;

/// Reads `fri 21:30` as minutes since Monday 00:00.
pub(in crate::schedule) fn parse_minute_of_week(text: &str, path: &str) -> Result<i64, FieldError> {
    minute_of_week(text).ok_or_else(|| FieldError::refused(path, text, &rules::MINUTE_OF_WEEK))
}

fn minute_of_week(text: &str) -> Option<i64> {
    let (day, time) = text.split_once(' ')?;
    let (hour, minute) = time.split_once(':')?;
    let day = i64::try_from(weekday(day)?).ok()?;
    Some(day * MINUTES_PER_DAY + padded(hour, 24)? * MINUTES_PER_HOUR + padded(minute, 60)?)
}

/// Exactly two digits, below a bound.
fn padded(text: &str, bound: u8) -> Option<i64> {
    two_digits(text).filter(|&number| text.len() == 2 && number < bound).map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_a_time() {
        for (text, minute) in [
            ("mon 00:00", 0),
            ("mon 00:59", 59),
            ("tue 01:00", 1_500),
            ("fri 21:30", 4 * 1_440 + 21 * 60 + 30),
            ("sun 23:59", 10_079),
        ] {
            assert_eq!(parse_minute_of_week(text, "from"), Ok(minute), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "fri",
            "21:30",
            "fri 24:00",
            "fri 21:60",
            "fri 9:30",
            "fri 21:5",
            "fri  21:30",
            "friday 21:30",
            "Fri 21:30",
            "fri,21:30",
            "fri 21.30",
            "fri 21:30:00",
            "fri +1:30",
            "fri 021:30",
            " fri 21:30",
            "fri 21:30 ",
            "fri-sat 21:30",
        ] {
            assert!(parse_minute_of_week(text, "from").is_err(), "{text}");
        }
    }
}
