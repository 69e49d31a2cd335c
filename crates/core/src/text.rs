//! Text from outside: one function that every string goes through before it enters status, an event, a log line or a
//! metric, if somebody else can write it.
//!
//! An annotation may hold 256 kB, an error body megabytes, a name escape sequences. None of that may make a status too
//! large to write, hide an event, or forge a line in a log.

use std::borrow::Cow;

/// The longest text, in bytes, that a single field of the status takes from outside, such as the reason of a reclaim.
pub const MAX_FIELD: usize = 256;

/// The longest message, in bytes, of a condition, an error or a log line. Well below the API server's limit for a
/// condition (32,768 bytes), and long enough for the longest message that an API server writes itself.
pub const MAX_MESSAGE: usize = 1000;

/// The longest note of an event, in bytes: the API server refuses more than 1,024.
pub const MAX_NOTE: usize = 1024;

/// Replaces what was cut off.
const CUT: &str = "…";

/// Returns `text` in at most `max` bytes, cut at a character boundary, and with every control character and every
/// character that changes the direction of writing replaced by a visible escape (`\n`, `\u{1b}`).
pub fn bounded(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len().min(max));
    // The last length at which the mark for what was cut off still fits.
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

/// A character that a terminal or a log reader would act upon instead of showing it.
fn is_unprintable(character: char) -> bool {
    let turns_writing =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let separates_lines = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || turns_writing || separates_lines
}

/// A character as it is written.
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
    fn long_text_is_cut_at_a_character_and_says_so() {
        assert_eq!(bounded("abcdef", 6), "abcdef");
        assert_eq!(bounded("abcdefg", 6), "abc…");
        assert_eq!(bounded("ééééé", 8), "éé…");
        assert_eq!(bounded("abc", 2), "");
        assert_eq!(bounded("é", 0), "");
    }

    #[test]
    fn what_a_terminal_would_act_upon_is_shown() {
        assert_eq!(bounded("a\nb\u{1b}[31mc\u{7f}", 64), r"a\nb\u{1b}[31mc\u{7f}");
        assert_eq!(bounded("abc\u{202e}def\u{2028}", 64), r"abc\u{202e}def\u{2028}");
        assert_eq!(bounded("ab\u{1b}", 6), "ab…", "an escape is never cut in two");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_is_bounded_and_printable(text in any::<String>(), max in 0..64_usize) {
            let result = bounded(&text, max);
            prop_assert!(result.len() <= max);
            prop_assert!(!result.chars().any(is_unprintable));
            prop_assert_eq!(bounded(&result, max), result.clone(), "bounding twice changes nothing");
        }
    }
}
