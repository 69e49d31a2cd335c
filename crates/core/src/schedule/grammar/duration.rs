//! Durations: `90s`, `5m`, `2h`.

use super::Found;
use crate::FieldError;
use jiff::SignedDuration;

/// The longest duration of any field.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// Which durations a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationBounds {
    /// The longest that is allowed.
    pub max: SignedDuration,
    /// Whether `0s` is allowed.
    pub zero: bool,
}

impl DurationBounds {
    /// From `1s` to `24h`.
    pub const POSITIVE: Self = Self {
        max: LONGEST,
        zero: false,
    };
    /// `0s`, or up to `24h`.
    pub const OR_ZERO: Self = Self {
        max: LONGEST,
        zero: true,
    };

    /// The same, with another longest duration.
    #[must_use]
    pub const fn at_most(self, max: SignedDuration) -> Self {
        Self { max, ..self }
    }
}

/// Reads a duration of a whole number of seconds, minutes or hours.
pub fn parse_duration(text: &str, path: &str, bounds: DurationBounds) -> Result<SignedDuration, FieldError> {
    seconds(text).map(SignedDuration::from_secs).filter(|&duration| allowed(duration, bounds)).ok_or_else(|| {
        let least = if bounds.zero { "0s" } else { "1s" };
        let message = format!(
            "found {}; must be a whole number of seconds, minutes or hours from {least} to {}, such as 90s, 5m or 2h",
            Found(text),
            written(bounds.max)
        );
        FieldError::new(path, message)
    })
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
    plain
        .then(|| digits.parse::<i64>().ok()?.checked_mul(unit))
        .flatten()
}

/// A duration the way it is written in a spec.
fn written(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds % 3_600 == 0 {
        format!("{}h", seconds / 3_600)
    } else if seconds % 60 == 0 {
        format!("{}m", seconds / 60)
    } else {
        format!("{seconds}s")
    }
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
            assert!(
                parse_duration(text, "d", DurationBounds::OR_ZERO).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn bounds_are_kept_and_named() {
        let grace = DurationBounds::OR_ZERO.at_most(SignedDuration::from_secs(45));
        assert!(parse_duration("45s", "d", grace).is_ok());
        let too_long = parse_duration("1m", "spec.reclaim.podGracePeriod", grace).unwrap_err();
        assert_eq!(
            too_long.to_string(),
            "spec.reclaim.podGracePeriod: found \"1m\"; must be a whole number of seconds, minutes or hours \
             from 0s to 45s, such as 90s, 5m or 2h"
        );
        let zero = parse_duration("0s", "d", DurationBounds::POSITIVE).unwrap_err();
        assert!(zero.message.contains("from 1s to 24h"), "{zero}");
        let minutes = DurationBounds::POSITIVE.at_most(SignedDuration::from_mins(90));
        assert!(
            parse_duration("2h", "d", minutes)
                .unwrap_err()
                .message
                .contains("to 90m")
        );
    }
}
