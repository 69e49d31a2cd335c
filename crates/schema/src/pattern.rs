//! Translates Go regular expressions for the `regex` crate, whose syntax differs in a few points.

use regex::Regex;
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// A pattern of a schema or a rule. It is displayed as written.
#[derive(Debug)]
pub(super) struct Pattern {
    written: String,
    regex: Regex,
}

impl Pattern {
    pub(super) fn new(written: &str) -> Result<Self, regex::Error> {
        Ok(Self { regex: Regex::new(&translated(written))?, written: written.to_owned() })
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// In Go, `\d`, `\w`, `\s` and `\b` match only ASCII, and a bracket inside a class is a literal.
fn translated(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut translated),
            '[' => class(&mut rest, &mut translated),
            c => translated.push(c),
        }
    }
    translated
}

fn class(rest: &mut Peekable<Chars<'_>>, translated: &mut String) {
    translated.push('[');
    if rest.next_if_eq(&'^').is_some() {
        translated.push('^');
    }
    // A class that starts with a closing bracket contains it.
    if rest.next_if_eq(&']').is_some() {
        translated.push_str("\\]");
    }
    while let Some(c) = rest.next() {
        match c {
            ']' => {
                translated.push(']');
                return;
            }
            '\\' => escape(rest, translated),
            '[' if rest.peek() == Some(&':') => named_class(rest, translated),
            '[' | '&' | '~' => translated.extend(['\\', c]),
            c => translated.push(c),
        }
    }
}

/// A class such as `[:alpha:]`, which has the same meaning in both.
fn named_class(rest: &mut Peekable<Chars<'_>>, translated: &mut String) {
    translated.push('[');
    for c in rest.by_ref() {
        translated.push(c);
        if c == ']' {
            return;
        }
    }
}

fn escape(rest: &mut Peekable<Chars<'_>>, translated: &mut String) {
    match rest.next() {
        Some('d') => translated.push_str("[0-9]"),
        Some('D') => translated.push_str("[^0-9]"),
        Some('w') => translated.push_str("[0-9A-Za-z_]"),
        Some('W') => translated.push_str("[^0-9A-Za-z_]"),
        Some('s') => translated.push_str("[\\t\\n\\f\\r ]"),
        Some('S') => translated.push_str("[^\\t\\n\\f\\r ]"),
        Some('b') => translated.push_str("(?-u:\\b)"),
        Some(c) => translated.extend(['\\', c]),
        None => translated.push('\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_patterns_as_go_does() {
        for (pattern, text, matches) in [
            ("^\\d+$", "123", true),
            ("^\\d+$", "\u{663}", false),
            ("^[\\w.]+$", "a.b_c", true),
            ("^[\\w.]+$", "ü", false),
            ("^[^\\s]+$", "a\u{a0}b", true),
            ("^[[]$", "[", true),
            ("^[]a]+$", "]a", true),
            ("^[&&]$", "&", true),
            ("^[[:alpha:]-]+$", "a-b", true),
            ("^a\\.b$", "a.b", true),
            ("^a\\.b$", "axb", false),
            ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "desk-17", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
        }
    }
}
