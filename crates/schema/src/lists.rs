//! Lists with unique items: `x-kubernetes-list-type` `set` and `map`.

use super::cause::StatusCause;
use super::path::Path;
use super::structural::{ListKind, Schema};
use serde_json::{Map, Value};

/// Reports every duplicate item.
pub(super) fn check(value: &Value, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(value, property, &path.field(name), causes);
                } else if let Some(entries) = &schema.entries {
                    check(value, entries, &path.key(name), causes);
                }
            }
        }
        Value::Array(values) => {
            check_items(values, schema, path, causes);
            if let Some(items) = &schema.items {
                for (index, value) in values.iter().enumerate() {
                    check(value, items, &path.index(index), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns true if [`check`] would report anything.
pub(super) fn has_duplicates(value: &Value, schema: &Schema) -> bool {
    let mut causes = Vec::new();
    check(value, schema, &Path::ROOT, &mut causes);
    !causes.is_empty()
}

fn check_items(values: &[Value], schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    let identities = match &schema.list {
        ListKind::Atomic => return,
        ListKind::Set => values.to_vec(),
        ListKind::Map(keys) => {
            let odd = values.iter().position(|value| !value.is_object() && !value.is_null());
            if let Some(index) = odd {
                let detail = "must be an object for an array of list-type map";
                causes.push(StatusCause::invalid(path.index(index).bracketed(), &values[index], detail));
                return;
            }
            values.iter().map(|value| identity(value, keys)).collect()
        }
    };
    for (index, identity) in identities.iter().enumerate() {
        // The second of several equal items is reported, not the third, as in the API server.
        if identities[..index].iter().filter(|earlier| *earlier == identity).count() == 1 {
            causes.push(StatusCause::duplicate(path.index(index).bracketed(), identity));
        }
    }
}

/// The identity of an item: the values of its key fields.
pub(super) fn identity(item: &Value, keys: &[String]) -> Value {
    let fields: Map<String, Value> =
        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
    Value::Object(fields)
}
