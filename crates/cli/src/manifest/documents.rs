//! The YAML documents of a file. Each is parsed on its own, so that an error in one does not hide the others.
//! JSON is parsed as YAML.

use serde_json::Value;
use serde_saphyr::{Error, Options, budget::BudgetBreach};

/// A document that is not empty.
#[derive(Debug)]
pub struct Document {
    /// The number of the document, counted from 1. Empty documents count too, so that the number matches the
    /// `---` lines.
    pub number: usize,
    /// The value, or a sentence that says why it cannot be parsed.
    pub value: Result<Value, String>,
}

/// Every document of `text` that is not empty.
pub fn parse(text: &str) -> Vec<Document> {
    split(text)
        .into_iter()
        .zip(1..)
        .filter_map(|(chunk, number)| {
            let value = match serde_saphyr::from_multiple_with_options::<Value>(chunk.text, options()) {
                Ok(values) => Ok(values.into_iter().next()?),
                Err(error) => Err(explain(&error, chunk.first_line)),
            };
            Some(Document { number, value })
        })
        .collect()
}

/// The part of the file that contains one document.
#[derive(Debug, PartialEq, Eq)]
struct Chunk<'a> {
    /// The line of the file on which it starts, counted from 0.
    first_line: u64,
    text: &'a str,
}

/// Splits at `---` and after `...`. At the start of a line, both are always document markers, even inside a
/// block scalar, so no parser is needed.
fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 0, 0);
    let mut has_content = false;
    for (line, number) in text.split_inclusive('\n').zip(0..) {
        let end = offset + line.len();
        if is_marker(line, "---") {
            // Comments and directives before a marker belong to the document that it starts.
            if has_content {
                chunks.push(Chunk { first_line: start_line, text: &text[start..offset] });
                (start, start_line) = (offset, number);
            }
            has_content = true;
        } else if is_marker(line, "...") {
            if has_content {
                chunks.push(Chunk { first_line: start_line, text: &text[start..end] });
            }
            (start, start_line, has_content) = (end, number + 1, false);
        } else {
            has_content |= !is_prologue(line);
        }
        offset = end;
    }
    if has_content {
        chunks.push(Chunk { first_line: start_line, text: &text[start..] });
    }
    chunks
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Returns true for empty lines, comments, and directives such as `%YAML 1.2`.
fn is_prologue(line: &str) -> bool {
    let content = line.trim();
    content.is_empty() || content.starts_with('#') || line.starts_with('%')
}

/// Limits that allow a `kind: List` of thousands of machines, but protect the stack from deep nesting and the
/// memory from aliases.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 2_000_000,
            max_nodes: 1_000_000,
            max_recorded_anchor_events: 100_000,
            max_depth: MAX_DEPTH,
        },
        with_snippet: false,
    }
}

/// The deepest nesting. A `ScheduledMachine` has 5 levels; a provider's spec inside it may have a few more.
const MAX_DEPTH: usize = 64;

/// Converts a parser error into a message without the parser's terms, with its location in the file.
fn explain(error: &Error, first_line: u64) -> String {
    let what = reason(error);
    match error.location() {
        Some(place) => format!("{what} (line {}, column {})", first_line + place.line(), place.column()),
        None => what,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the parser may add new errors")]
fn reason(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => reason(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} occurs twice in one object")
        }
        Error::DuplicateMappingKey { key: None, .. } => "a key occurs twice in one object".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large once its aliases are resolved; split it into several documents".to_owned()
        }
        other => match message(other).as_str() {
            // The scanner reads ahead of the budget and has its own limit for brackets.
            "recursion limit exceeded" => too_deep(),
            message => format!("it is not valid YAML: {message}"),
        },
    }
}

fn too_deep() -> String {
    format!("it is nested more than {MAX_DEPTH} levels deep")
}

/// The first line of the parser's message, without the location, which is relative to the document.
fn message(error: &Error) -> String {
    let rendered = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let first_line = rendered.lines().next().unwrap_or_default();
    match first_line.rfind(" at line ") {
        Some(place) => first_line[..place].to_owned(),
        None => first_line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(text: &str) -> Vec<(usize, Value)> {
        parse(text).into_iter().map(|d| (d.number, d.value.expect("valid"))).collect()
    }

    fn only_error(text: &str) -> String {
        let mut documents = parse(text);
        assert_eq!(documents.len(), 1, "{documents:?}");
        documents.remove(0).value.expect_err("invalid")
    }

    #[test]
    fn documents_are_counted_as_their_markers_suggest() {
        for (text, expected) in [
            ("", vec![]),
            ("# only a comment\n", vec![]),
            ("---\n", vec![]),
            ("---\n---\n# nothing\n", vec![]),
            ("a: 1", vec![(1, json!({"a": 1}))]),
            ("---\na: 1\n", vec![(1, json!({"a": 1}))]),
            ("# comment\n---\na: 1\n", vec![(1, json!({"a": 1}))]),
            ("%YAML 1.2\n---\na: 1\n", vec![(1, json!({"a": 1}))]),
            ("a: 1\n---\nb: 2\n", vec![(1, json!({"a": 1})), (2, json!({"b": 2}))]),
            ("a: 1\r\n---\r\nb: 2\r\n", vec![(1, json!({"a": 1})), (2, json!({"b": 2}))]),
            ("a: 1\n---\n---\nb: 2\n", vec![(1, json!({"a": 1})), (3, json!({"b": 2}))]),
            ("a: 1\n...\nb: 2\n", vec![(1, json!({"a": 1})), (2, json!({"b": 2}))]),
            ("a: 1\n...\n---\nb: 2\n", vec![(1, json!({"a": 1})), (2, json!({"b": 2}))]),
            ("--- {a: 1}\n--- {b: 2}\n", vec![(1, json!({"a": 1})), (2, json!({"b": 2}))]),
            ("a: ---x\n", vec![(1, json!({"a": "---x"}))]),
            ("a: |\n  text\n  --- more\n", vec![(1, json!({"a": "text\n--- more\n"}))]),
        ] {
            assert_eq!(values(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_is_read_with_any_indentation() {
        for text in ["{\"a\": [1, \"\\u00e9\"]}", "{\n\t\"a\": [\n\t\t1,\n\t\t\"\\u00e9\"\n\t]\n}\n"] {
            assert_eq!(values(text), vec![(1, json!({"a": [1, "é"]}))], "{text:?}");
        }
    }

    #[test]
    fn a_mistake_in_one_document_leaves_the_others_readable() {
        let documents = parse("a: [1\n---\nb: 2\n---\nc: {\n");
        let readable: Vec<bool> = documents.iter().map(|d| d.value.is_ok()).collect();
        assert_eq!(readable, [false, true, false]);
    }

    #[test]
    fn mistakes_are_placed_in_the_file_not_in_the_document() {
        let documents = parse("a: 1\n---\nb: 2\nb: 3\n");
        let message = documents[1].value.as_ref().expect_err("duplicate key");
        assert_eq!(message, "the key \"b\" occurs twice in one object (line 4, column 1)");
    }

    #[test]
    fn nothing_that_is_nested_or_aliased_without_end_is_followed() {
        assert!(only_error(&"[".repeat(100_000)).contains("nested more than 64 levels"));
        assert!(only_error(&"{a: ".repeat(100_000)).contains("nested more than 64 levels"));
        assert!(only_error(&"- ".repeat(100_000)).contains("nested more than 64 levels"));
        let level = |level: u32| {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            format!(
                "a{level}: &a{level} [{aliases}]
"
            )
        };
        let bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]
"
        .to_owned()
            + &(1..10).map(level).collect::<Vec<_>>().concat();
        assert!(only_error(&bomb).contains("aliases"), "{}", only_error(&bomb));
    }

    #[test]
    fn tabs_and_stray_brackets_say_where() {
        for text in ["a:\n\tb: 1\n", "a: ]\n", "a: 'open\n", "a: b: c\n", "@\n"] {
            let message = only_error(text);
            assert!(message.starts_with("it is not valid YAML: ") && message.contains("(line "), "{message}");
        }
    }
}
