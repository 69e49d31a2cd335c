//! The days of exceptions.

use crate::FieldError;
use crate::schedule::clock::LocalDay;
use five_spot_api::rules;
use jiff::civil::Date;

/// Reads `2026-12-24`.
pub(in crate::schedule) fn parse_date(text: &str, path: &str) -> Result<LocalDay, FieldError> {
    date(text).map(LocalDay::of).ok_or_else(|| FieldError::refused(path, text, &rules::DATE))
}

fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Date::new(digits(year, 4)?, i8::try_from(digits(month, 2)?).ok()?, i8::try_from(digits(day, 2)?).ok()?)
        .ok()
}

fn digits(text: &str, count: usize) -> Option<i16> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_the_calendar() {
        for (text, day) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2024-02-29", 19_782),
            ("2026-12-24", 20_811),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_date(text, "date"), Ok(LocalDay(day)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "2026-02-30",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-1-1",
            "26-01-01",
            "20260101",
            "-001-01-01",
            "+2026-01-01",
            "12026-01-01",
            "2026/01/01",
            "2026-01-01Z",
            "2026-01-01T00:00:00Z",
            " 2026-01-01",
            "2026-01-01-01",
            "24.12.2026",
            "tomorrow",
            "２０２６-01-01",
        ] {
            assert!(parse_date(text, "date").is_err(), "{text}");
        }
    }

    #[test]
    fn weekdays_count_from_monday() {
        for (text, weekday) in
            [("1970-01-05", 0), ("1970-01-01", 3), ("1969-12-28", 6), ("2026-11-15", 6), ("2026-11-16", 0)]
        {
            assert_eq!(parse_date(text, "date").unwrap().weekday(), weekday, "{text}");
        }
    }
}
