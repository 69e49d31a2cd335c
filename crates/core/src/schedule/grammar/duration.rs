//! Durations: `90s`, `5m`, `2h`.

use crate::FieldError;
use five_spot_api::rules::{self, Rule};
use jiff::SignedDuration;

/// The range of durations that a field accepts, and the corresponding rule of the CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationBounds {
    max: SignedDuration,
    zero: bool,
    rule: Rule,
}

impl DurationBounds {
    /// `1s` to `24h`.
    pub const POSITIVE: Self =
        Self { max: SignedDuration::from_hours(24), zero: false, rule: rules::DURATION };
    /// `0s`, or up to `24h`.
    pub const OR_ZERO: Self =
        Self { max: SignedDuration::from_hours(24), zero: true, rule: rules::DURATION_OR_ZERO };
    /// The grace period of pods in an emergency reclaim.
    pub const POD_GRACE: Self =
        Self { max: SignedDuration::from_secs(45), zero: true, rule: rules::POD_GRACE_PERIOD };
}

/// Reads a duration of a whole number of seconds, minutes or hours.
pub fn parse_duration(text: &str, path: &str, bounds: DurationBounds) -> Result<SignedDuration, FieldError> {
    seconds(text)
        .map(SignedDuration::from_secs)
        .filter(|&duration| allowed(duration, bounds))
        .ok_or_else(|| FieldError::refused(path, text, &bounds.rule))
}

fn allowed(duration: SignedDuration, bounds: DurationBounds) -> bool {
    duration <= bounds.max && (bounds.zero || !duration.is_zero())
}

fn seconds(text: &str) -> Option<i64> {
    if text == "0s" {
        return Some(0);
    }
    let unit = match text.bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    // What does not fit is out of every bound, too.
    plain.then(|| digits.parse::<i64>().ok()?.checked_mul(unit)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("1s", 1),
            ("90s", 90),
            ("5m", 300),
            ("2h", 7_200),
            ("24h", 86_400),
            ("1440m", 86_400),
            ("86400s", 86_400),
        ] {
            assert_eq!(
                parse_duration(text, "d", DurationBounds::OR_ZERO),
                Ok(SignedDuration::from_secs(seconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "s",
            "5",
            "m5",
            "0",
            "0m",
            "0h",
            "00s",
            "05m",
            "-5m",
            "+5m",
            "1.5h",
            "1h30m",
            "5 m",
            " 5m",
            "5m ",
            "5d",
            "5S",
            "25h",
            "1441m",
            "86401s",
            "9223372036854775807h",
            "99999999999999999999s",
            "٥m",
            "5µ",
            "P1D",
        ] {
            assert!(parse_duration(text, "d", DurationBounds::OR_ZERO).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_are_kept_and_named() {
        assert!(parse_duration("45s", "d", DurationBounds::POD_GRACE).is_ok());
        let too_long =
            parse_duration("46s", "spec.reclaim.podGracePeriod", DurationBounds::POD_GRACE).unwrap_err();
        assert_eq!(
            too_long.to_string(),
            "spec.reclaim.podGracePeriod: found \"46s\"; must be a whole number of seconds from 0s to 45s, such as 10s"
        );
        let zero = parse_duration("0s", "d", DurationBounds::POSITIVE).unwrap_err();
        assert!(zero.message.contains("from 1s to 24h"), "{zero}");
    }
}
