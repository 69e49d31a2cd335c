//! Overrides and their end.

use crate::FieldError;
use five_spot_api::{OverrideSpec, OverrideState, rules};
use jiff::Timestamp;

/// A temporary override of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The effect.
    pub state: OverrideState,
    /// The first instant at which it is no longer in effect.
    pub until: Timestamp,
}

impl Override {
    /// Parses the override at `path`.
    pub fn parse(spec: &OverrideSpec, path: &str) -> Result<Self, FieldError> {
        let until = instant(&spec.until)
            .ok_or_else(|| FieldError::refused(&format!("{path}.until"), &spec.until, &rules::UNTIL))?;
        Ok(Self { state: spec.state, until })
    }
}

/// Parses an RFC 3339 time. The underlying parser accepts more (dates alone, leap seconds, zones in brackets), which the API
/// server would reject, so the format is checked first.
fn instant(text: &str) -> Option<Timestamp> {
    let (local, rest) = text.split_at_checked("2026-12-24T18:00:00".len())?;
    let offset = rest.strip_prefix('.').map_or(Some(rest), after_fraction)?;
    let well_formed = has_shape(local, "dddd-dd-ddTdd:dd:dd")
        && !local.ends_with("60")
        && (offset == "Z" || is_offset(offset));
    well_formed.then(|| text.parse().ok()).flatten()
}

/// Returns true for an offset of hours and minutes below a day.
fn is_offset(text: &str) -> bool {
    (has_shape(text, "+dd:dd") || has_shape(text, "-dd:dd")) && text[1..] < *"24"
}

/// Returns the rest after the one to nine digits of a fraction.
fn after_fraction(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|character: char| character.is_ascii_digit());
    matches!(text.len() - rest.len(), 1..=9).then_some(rest)
}

/// Returns true if a text has digits where the shape has a `d`, and equals the shape elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(found, expected)| match expected {
            b'd' => found.is_ascii_digit(),
            other => found == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(until: &str) -> Result<Override, FieldError> {
        let spec = OverrideSpec { state: OverrideState::Up, until: until.to_owned(), reason: None };
        Override::parse(&spec, "spec.override")
    }

    #[test]
    fn a_time_with_its_offset() {
        for (text, utc) in [
            ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
            ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
            ("2026-12-24T18:00:00-05:30", "2026-12-24T23:30:00Z"),
            ("2026-12-24T18:00:00.5Z", "2026-12-24T18:00:00.5Z"),
            ("2026-12-24T18:00:00.123456789+00:00", "2026-12-24T18:00:00.123456789Z"),
            ("2026-12-31T23:59:59Z", "2026-12-31T23:59:59Z"),
        ] {
            let expected = Override { state: OverrideState::Up, until: utc.parse().unwrap() };
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "2026-12-24",
            "18:00",
            "2026-12-24T18:00:00",
            "2026-12-24T18:00Z",
            "2026-12-24 18:00:00Z",
            "2026-12-24t18:00:00z",
            "2026-12-24T18:00:00+01",
            "2026-12-24T18:00:00+0100",
            "2026-12-24T18:00:00 Z",
            "2026-12-24T18:00:00.Z",
            "2026-12-24T18:00:00.1234567890Z",
            "2026-12-24T18:00:00Z[UTC]",
            "2026-12-24T18:00:00+01:00[Europe/Berlin]",
            "2026-02-30T00:00:00Z",
            "2026-12-24T24:00:00Z",
            "2026-12-31T23:59:60Z",
            "2026-12-24T18:60:00Z",
            "12026-12-24T18:00:00Z",
            "+002026-12-24T18:00:00Z",
            "2026-12-24T18:00:00+24:00",
            "2026-12-24T18:00:00-01:60",
            "2026-12-24T18:00:00+99:00",
            "2026-12-24T18:00:00-24:00",
            "tomorrow",
            "2026-12-24T18:00:0é",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.field, "spec.override.until", "{text}");
            assert!(error.message.contains("must be an RFC 3339 time with an offset"), "{error}");
        }
    }
}
