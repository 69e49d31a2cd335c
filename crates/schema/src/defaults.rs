//! Defaults, which the API server sets before validation.

use super::structural::Schema;
use serde_json::Value;

/// Removes every `null` that the schema does not allow and that has no default.
pub(super) fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(child) = schema.child(name) else {
                    return true;
                };
                if value.is_null() && !child.nullable && child.default.is_none() {
                    return false;
                }
                drop_nulls(value, child);
                true
            });
        }
        Value::Array(values) => {
            if let Some(items) = &schema.items {
                for value in values {
                    drop_nulls(value, items);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sets defaults from the outside in, so that a default can be completed by further defaults.
pub(super) fn fill_in(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                let missing = fields.get(name).is_none_or(|value| value.is_null() && !property.nullable);
                if missing {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(child) = schema.child(name) {
                    replace_null(value, child);
                    fill_in(value, child);
                }
            }
        }
        Value::Array(values) => {
            if let Some(items) = &schema.items {
                for value in values {
                    replace_null(value, items);
                    fill_in(value, items);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
