//! Parses the length of a run, such as `36h`, `7d` or `2w`.

use jiff::SignedDuration;

/// The longest run, a year and a day: every season occurs in it, and a longer one would take too long.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Parses a number and a unit.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    const EXPECTED: &str = "expected a number and m, h, d or w, such as 36h, 7d or 2w, from 1m to 366d";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        "w" => 7 * 24 * 60,
        _ => return Err(EXPECTED.to_owned()),
    };
    let number: i64 = number.parse().map_err(|_| EXPECTED.to_owned())?;
    let minutes = number.checked_mul(minutes).filter(|minutes| *minutes > 0);
    minutes
        .filter(|minutes| *minutes <= LONGEST.as_mins())
        .map(SignedDuration::from_mins)
        .ok_or_else(|| EXPECTED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        for (text, minutes) in
            [("1m", 1), ("36h", 36 * 60), ("7d", 7 * 1440), ("2w", 14 * 1440), ("366d", 366 * 1440)]
        {
            assert_eq!(parse(text), Ok(SignedDuration::from_mins(minutes)), "{text}");
        }
        for text in [
            "",
            "7",
            "d",
            "0d",
            "-1d",
            "1.5h",
            "7 d",
            "7D",
            "90s",
            "1d12h",
            "367d",
            "99999999999999999999w",
            "٧d",
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains("such as 36h, 7d or 2w"), "{refused}");
        }
    }
}
