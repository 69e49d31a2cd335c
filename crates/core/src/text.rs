//! Bounded text. Every string that others can write passes through [`bounded`] before it enters a status, an event, a log
//! line or a metric.
//!
//! An annotation can hold 256 kB, an error body megabytes, and a name escape sequences. None of these may make a status too
//! large to write, suppress an event, or forge a log line.

use std::borrow::Cow;

/// The maximum length, in bytes, of a text from outside in a single field of the status, such as the reason of a blocked pod.
pub const MAX_FIELD: usize = 256;

/// The maximum length, in bytes, of the message of an error or a log line. It is far below the limit of the API server for a
/// condition (32,768 bytes) and sufficient for the messages that an API server writes itself.
pub const MAX_MESSAGE: usize = 1000;

/// The maximum length of the note of an event, in bytes. The API server rejects longer ones.
pub const MAX_NOTE: usize = 1024;

/// The mark at the end of a truncated text.
const CUT: &str = "…";

/// Returns `text` truncated to at most `max` bytes at a character boundary. Control characters and characters that change the
/// writing direction are replaced by visible escapes (`\n`, `\u{1b}`).
pub fn bounded(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len().min(max));
    // The last length at which the mark still fits.
    let mut fits = 0;
    for character in text.chars() {
        let escaped = Escaped(character);
        if result.len() + escaped.len() > max {
            result.truncate(fits);
            if max >= CUT.len() {
                result.push_str(CUT);
            }
            return Cow::Owned(result);
        }
        escaped.push_to(&mut result);
        if result.len() + CUT.len() <= max {
            fits = result.len();
        }
    }
    Cow::Owned(result)
}

/// A count and its noun: `1 pod`, `2 pods`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns true for a character that a terminal or a log viewer would interpret instead of showing it.
pub fn is_unprintable(character: char) -> bool {
    let turns_writing =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let separates_lines = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || turns_writing || separates_lines
}

/// A character, escaped if it is unprintable.
struct Escaped(char);

impl Escaped {
    fn len(&self) -> usize {
        if is_unprintable(self.0) { self.0.escape_default().len() } else { self.0.len_utf8() }
    }

    fn push_to(&self, text: &mut String) {
        if is_unprintable(self.0) {
            text.extend(self.0.escape_default());
        } else {
            text.push(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_plain_text_is_not_copied() {
        assert!(matches!(bounded("process-match: java, größer", MAX_FIELD), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut_at_a_character_boundary_and_marked() {
        assert_eq!(bounded("abcdef", 6), "abcdef");
        assert_eq!(bounded("abcdefg", 6), "abc…");
        assert_eq!(bounded("ééééé", 8), "éé…");
        assert_eq!(bounded("abc", 2), "");
        assert_eq!(bounded("é", 0), "");
    }

    #[test]
    fn characters_that_a_terminal_interprets_are_escaped() {
        assert_eq!(bounded("a\nb\u{1b}[31mc\u{7f}", 64), r"a\nb\u{1b}[31mc\u{7f}");
        assert_eq!(bounded("abc\u{202e}def\u{2028}", 64), r"abc\u{202e}def\u{2028}");
        assert_eq!(bounded("ab\u{1b}", 6), "ab…", "an escape is never cut in two");
    }

    proptest! {
        #[test]
        fn every_result_is_bounded_and_printable(text in any::<String>(), max in 0..64_usize) {
            let result = bounded(&text, max);
            prop_assert!(result.len() <= max);
            prop_assert!(!result.chars().any(is_unprintable));
            prop_assert_eq!(bounded(&result, max), result.clone(), "bounding twice changes nothing");
        }
    }
}
