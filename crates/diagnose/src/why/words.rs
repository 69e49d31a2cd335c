//! Times, conditions and lists in words.

use super::live::Condition;
use five_spot_core::text::bounded;
use jiff::{SignedDuration, Timestamp};

/// The maximum length of one piece of evidence, in bytes. The messages of a namespace controller fit.
const MAX_EVIDENCE: usize = 1000;

/// Text from an object, made harmless for a terminal.
pub(super) fn quoted(text: &str) -> String {
    bounded(text.trim(), MAX_EVIDENCE).into_owned()
}

/// `4d 13h`, `3m 20s`: the two largest units.
pub(crate) fn duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let units =
        [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown =
        units[first..].iter().take(2).enumerate().filter(|(index, (count, _))| *index == 0 || *count > 0);
    shown.map(|(_, (count, unit))| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// `2026-11-17T01:55:16Z, 4d 13h ago`.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(at);
    if passed.is_negative() {
        format!("{at}, in {}", duration(-passed))
    } else {
        format!("{at}, {} ago", duration(passed))
    }
}

/// `Ready=False (KubeletNotReady): container runtime is down`.
pub(super) fn condition(condition: &Condition<'_>) -> String {
    let reason = if condition.reason.is_empty() { String::new() } else { format!(" ({})", condition.reason) };
    let message =
        if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
    quoted(&format!("{}={}{reason}{message}", condition.kind, condition.status))
}

/// `1 pod`, `3 pods`.
pub(super) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_two_units() {
        for (seconds, words) in [
            (-5, "0s"),
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (61, "1m 1s"),
            (3605, "1h"),
            (4 * 86_400 + 13 * 3600 + 59, "4d 13h"),
        ] {
            assert_eq!(duration(SignedDuration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn times_are_before_or_after_now() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let now = at("2026-11-17T12:00:00Z");
        assert_eq!(ago(at("2026-11-17T11:58:00Z"), now), "2026-11-17T11:58:00Z, 2m ago");
        assert_eq!(ago(at("2026-11-17T12:00:30Z"), now), "2026-11-17T12:00:30Z, in 30s");
    }
}
