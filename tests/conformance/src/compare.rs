//! The differences between two responses.

use serde_json::{Map, Value};
use std::fmt;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// A JSON pointer into the responses of a case: `/2/body/metadata/labels`.
    pub at: String,
    /// The recorded value.
    pub expected: Option<Value>,
    /// The value in the response.
    pub found: Option<Value>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        write!(f, "{}: expected {}, found {}", self.at, show(&self.expected), show(&self.found))
    }
}

/// All differences between two values.
pub fn compare(expected: &Value, found: &Value) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    walk(Some(expected), Some(found), "", &mut mismatches);
    mismatches
}

fn walk(expected: Option<&Value>, found: Option<&Value>, at: &str, mismatches: &mut Vec<Mismatch>) {
    match (expected, found) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            for name in names(left, right) {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                walk(left.get(name), right.get(name), &format!("{at}/{escaped}"), mismatches);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                walk(left.get(index), right.get(index), &format!("{at}/{index}"), mismatches);
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            mismatches.push(Mismatch { at: at.to_owned(), expected: left.cloned(), found: right.cloned() });
        }
    }
}

fn names<'a>(left: &'a Map<String, Value>, right: &'a Map<String, Value>) -> Vec<&'a String> {
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
