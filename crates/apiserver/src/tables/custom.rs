//! The columns of custom resources.

use super::Column;
use super::duration::age;
use super::path::JsonPath;
use crate::object;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The name, and the columns of the CRD's version; the age if it has none.
pub(super) fn columns(version: &Value) -> Vec<Column> {
    let mut columns = vec![Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: String::new(),
        priority: 0,
        cell: Box::new(|value, _| object::name(value).into()),
    }];
    let listed = version["additionalPrinterColumns"].as_array().map_or(&[][..], Vec::as_slice);
    if listed.is_empty() {
        columns
            .push(column(&json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})));
    }
    columns.extend(listed.iter().map(column));
    columns
}

fn column(definition: &Value) -> Column {
    let text = |field: &str| definition[field].as_str().unwrap_or_default().to_owned();
    let path = JsonPath::parse(&text("jsonPath"));
    let kind = text("type");
    let cell_kind = kind.clone();
    Column {
        name: text("name"),
        format: text("format"),
        description: text("description"),
        priority: definition["priority"].as_i64().unwrap_or(0),
        cell: Box::new(move |value, now| cell(path.as_ref(), &cell_kind, value, now)),
        kind,
    }
}

fn cell(path: Option<&JsonPath>, kind: &str, value: &Value, now: Timestamp) -> Value {
    let found = path.map(|path| path.find(value)).unwrap_or_default();
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match (kind, first) {
        ("integer", Value::Number(number)) => json!(number.as_i64().unwrap_or_default()),
        ("number" | "boolean", scalar) if !scalar.is_object() && !scalar.is_array() => (*scalar).clone(),
        ("date", Value::String(time)) => age(time, now).into(),
        ("string", Value::String(text)) if found.len() == 1 => text.clone().into(),
        ("string", Value::Array(_) | Value::Object(_)) => first.to_string().into(),
        ("string", _) => {
            let parts: Vec<String> =
                found.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
            parts.join(" ").into()
        }
        _ => Value::Null,
    }
}
