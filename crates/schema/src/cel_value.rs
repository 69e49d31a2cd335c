//! The values of an object as CEL rules see them.

use super::structural::Schema;
use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Reserved words of CEL, which rules cannot use as field names.
const RESERVED: [&str; 20] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "while",
];

/// Converts a value to the `self` of a rule: only the fields of the schema, with names that are valid in CEL.
pub(super) fn to_cel(value: &Value, schema: &Schema) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema.types != ["number"] => CelValue::Int(whole),
            _ => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => string_to_cel(text, schema),
        Value::Array(values) => {
            let items = schema.items.as_deref();
            let values = values.iter().filter_map(|value| Some(to_cel(value, items?)));
            CelValue::List(Arc::new(values.collect()))
        }
        Value::Object(fields) => {
            let visible = fields.iter().filter_map(|(name, value)| match schema.properties.get(name) {
                Some(property) => Some((escaped(name), to_cel(value, property))),
                None => schema.entries.as_ref().map(|entries| (name.clone(), to_cel(value, entries))),
            });
            let map: HashMap<Key, CelValue> =
                visible.map(|(name, value)| (Key::String(Arc::new(name)), value)).collect();
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Times and durations have their own types in rules.
fn string_to_cel(text: &str, schema: &Schema) -> CelValue {
    let time = match schema.format.as_deref() {
        Some("date-time" | "datetime") => chrono::DateTime::parse_from_rfc3339(text).ok(),
        Some("date") => chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).ok(),
        Some(_) | None => None,
    };
    time.map_or_else(|| CelValue::String(Arc::new(text.to_owned())), CelValue::Timestamp)
}

/// The name of a field in a rule: `x-y` becomes `x__dash__y`.
fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
