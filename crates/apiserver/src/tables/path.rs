//! The subset of Kubernetes' `JSONPath` that printer columns use: fields, indices, `[*]`, and filters such as
//! `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, PartialEq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    Where { field: Vec<String>, equals: String },
}

impl JsonPath {
    /// Parses a path; returns `None` if it uses other features.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = end_of_bracket(inner)?;
                steps.push(bracket(&inner[..end])?);
                rest = &inner[end + 1..];
            } else {
                let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest));
                if name.is_empty() {
                    return None;
                }
                steps.push(if name == "*" { Step::All } else { Step::Field(name) });
                rest = after;
            }
        }
        Some(Self { steps })
    }

    /// All values that the path selects.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Step::Field(name) => value.get(name).filter(|one| !one.is_null()).into_iter().collect(),
            Step::Index(index) => value.get(index).into_iter().collect(),
            Step::All => match value {
                Value::Array(list) => list.iter().collect(),
                Value::Object(map) => map.values().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            },
            Step::Where { field, equals } => value
                .as_array()
                .into_iter()
                .flatten()
                .filter(|item| field.iter().fold(*item, |item, name| &item[name]).as_str() == Some(equals))
                .collect(),
        }
    }
}

/// A field name up to the next unescaped dot or bracket; `\.` is a dot within the name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => {
                if let Some((_, escaped)) = characters.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[index..]),
            other => name.push(other),
        }
    }
    (name, "")
}

fn end_of_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ']') => return Some(index),
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = inner.parse() {
        return Some(Step::Index(index));
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (left, right) = condition.split_once("==")?;
        let field = left.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
        return Some(Step::Where { field, equals: unquoted(right.trim())?.to_owned() });
    }
    unquoted(inner).map(|name| Step::Field(name.to_owned()))
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_printer_columns() {
        let object = json!({
            "metadata": {"annotations": {"example.org/x": "y"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        let cases = [
            (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".status.conditions[1].type", vec![json!("Other")]),
            (".status.conditions[*].status", vec![json!("True"), json!("False")]),
            (".metadata.annotations['example.org/x']", vec![json!("y")]),
            (".metadata.annotations.example\\.org/x", vec![json!("y")]),
            (".spec.nothing", vec![]),
        ];
        for (path, expected) in cases {
            let parsed = JsonPath::parse(path).expect(path);
            let found: Vec<Value> = parsed.find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
