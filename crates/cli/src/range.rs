//! The range of instants that a preview covers, to whole seconds.

use jiff::{SignedDuration, Timestamp};

/// The default length: two weeks show every weekly pattern twice.
pub const DEFAULT_DAYS: u16 = 14;

/// The longest range: ten years and a week. A longer one is probably a typing error, and would take long to
/// print.
pub const MAX_DAYS: u16 = 3660;

/// A half-open range of instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Range {
    /// A range of `days` times 24 hours.
    pub fn of_days(from: Timestamp, days: u16) -> Result<Self, String> {
        let to = from
            .checked_add(SignedDuration::from_hours(24 * i64::from(days)))
            .map_err(|_| format!("{days} days after --from {from} is out of range: {ALLOWED_YEARS}"))?;
        Self::between(from, to)
    }

    /// Creates a range from both ends. Fractions of a second are dropped.
    pub fn between(from: Timestamp, to: Timestamp) -> Result<Self, String> {
        let range = Self { from: whole_seconds(from), to: whole_seconds(to) };
        if range.to <= range.from {
            return Err(format!("the range is empty: --to {} is not after --from {}", range.to, range.from));
        }
        if range.from < FIRST_INSTANT || range.to > LAST_INSTANT {
            return Err(format!(
                "the range from {} to {} is out of range: {ALLOWED_YEARS}",
                range.from, range.to
            ));
        }
        if range.duration() > SignedDuration::from_hours(24 * i64::from(MAX_DAYS)) {
            return Err(format!(
                "the range from {} to {} is too long: at most {MAX_DAYS} days are shown",
                range.from, range.to
            ));
        }
        Ok(range)
    }

    pub fn duration(&self) -> SignedDuration {
        self.to.duration_since(self.from)
    }
}

const ALLOWED_YEARS: &str = "--from and --to must be between the years 1970 and 9998";

/// The first allowed instant. Local times before 1970 are not reliable in time zone data.
const FIRST_INSTANT: Timestamp = Timestamp::UNIX_EPOCH;

/// The last allowed instant: every earlier local time and its next boundary are still in the calendar.
const LAST_INSTANT: Timestamp = Timestamp::constant(253_370_764_800, 0);

fn whole_seconds(instant: Timestamp) -> Timestamp {
    // `FIRST_INSTANT` rules out the instants that dropping the fraction would move forward.
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

/// Parses an instant from the command line. A zone is required, because the objects can be in different
/// zones.
pub fn parse_instant(text: &str) -> Result<Timestamp, String> {
    const EXPECTED: &str =
        "expected RFC 3339 with a zone, such as 2026-11-15T09:00:00Z or 2026-11-15T09:00:00-05:00";
    if !has_rfc3339_shape(text) {
        return Err(EXPECTED.to_owned());
    }
    text.parse().map_err(|_| format!("no such time; {EXPECTED}"))
}

/// Checks the format more strictly than the parser, which accepts other formats too.
fn has_rfc3339_shape(text: &str) -> bool {
    let Some((date_time, rest)) = text.split_at_checked("2026-11-15T09:00:00".len()) else {
        return false;
    };
    let is_date_time =
        has_shape(date_time, "0000-00-00T00:00:00") || has_shape(date_time, "0000-00-00t00:00:00");
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    is_date_time && (matches!(zone, "Z" | "z") || has_shape(zone, "+00:00") || has_shape(zone, "-00:00"))
}

/// Compares text with a pattern in which `0` matches any digit.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(found, wanted)| match wanted {
            b'0' => found.is_ascii_digit(),
            literal => found == literal,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        parse_instant(text).expect("an instant")
    }

    #[test]
    fn instants_have_a_zone() {
        for (text, utc) in [
            ("2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z"),
            ("2026-11-15t09:00:00z", "2026-11-15T09:00:00Z"),
            ("2026-11-15T09:00:00-05:00", "2026-11-15T14:00:00Z"),
            ("2026-11-15T09:00:00.25+10:30", "2026-11-14T22:30:00.25Z"),
        ] {
            assert_eq!(instant(text).to_string(), utc);
        }
        for text in [
            "",
            "now",
            "2026-11-15",
            "2026-11-15T09:00:00",
            "2026-11-15 09:00:00Z",
            "2026-11-15T09:00Z",
            "20261115T090000Z",
            "2026-11-15T09:00:00.Z",
            "2026-11-15T09:00:00+0100",
            "2026-11-15T09:00:00+01",
            "2026-11-15T09:00:00[Europe/Berlin]",
            "2026-11-15T09:00:00Z[UTC]",
            "+2026-11-15T09:00:00Z",
            "2026-13-15T09:00:00Z",
            "2026-02-30T09:00:00Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T09:00:00+99:00",
            "２026-11-15T09:00:00Z",
        ] {
            let message = parse_instant(text).expect_err(text);
            assert!(message.contains("RFC 3339 with a zone"), "{message}");
        }
    }

    #[test]
    fn a_range_is_neither_empty_nor_absurd() {
        let at = instant("2026-11-15T09:00:00Z");
        assert_eq!(Range::of_days(at, 1).expect("valid").duration(), SignedDuration::from_hours(24));
        for (from, to, message) in [
            ("2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z", "not after"),
            ("2026-11-15T09:00:00Z", "2026-11-15T09:00:00.9Z", "not after"),
            ("2026-11-15T09:00:00Z", "2026-11-15T09:00:00+01:00", "not after"),
            ("2026-11-15T09:00:00Z", "2036-12-01T09:00:00Z", "at most 3660 days"),
            ("1969-12-31T23:59:59Z", "1970-01-02T00:00:00Z", "1970 and 9998"),
            ("9998-12-31T00:00:00Z", "9999-01-01T00:00:01Z", "1970 and 9998"),
        ] {
            let refused = Range::between(instant(from), instant(to)).expect_err(message);
            assert!(refused.contains(message), "{refused}");
        }
        let refused = Range::of_days(instant("9999-12-30T00:00:00Z"), 3660).expect_err("too late");
        assert!(refused.contains("1970 and 9998"), "{refused}");
    }

    #[test]
    fn fractions_are_dropped() {
        let range = Range::between(instant("2026-11-15T09:00:00.9Z"), instant("2026-11-15T09:00:01.1Z"))
            .expect("valid");
        assert_eq!(
            (range.from.to_string(), range.to.to_string()),
            ("2026-11-15T09:00:00Z".into(), "2026-11-15T09:00:01Z".into())
        );
    }
}
