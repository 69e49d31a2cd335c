//! The fields that an applied configuration sets.

use super::field_set::FieldSet;
use crate::types::{ListKind, TypeRef};
use serde_json::{Map, Value};

/// All fields of a configuration, as defined by server-side apply.
pub(super) fn fields_of(config: &Value, of: TypeRef<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    collect(config, of, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, of: TypeRef<'_>, path: &mut Vec<String>, set: &mut FieldSet) {
    match value {
        Value::Object(map) if !of.is_atomic_map() => collect_map(map, of, path, set),
        Value::Array(list) if of.list_kind() != ListKind::Atomic => {
            for item in list {
                path.push(item_element(item, of));
                set.insert(path);
                collect(item, of.items(), path, set);
                path.pop();
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => set.insert(path),
    }
}

fn collect_map(map: &Map<String, Value>, of: TypeRef<'_>, path: &mut Vec<String>, set: &mut FieldSet) {
    for (name, child) in map {
        path.push(field_element(name));
        let is_declared = of.properties().is_some_and(|properties| properties.contains_key(name));
        let is_empty = child.is_null() || child.as_object().is_some_and(Map::is_empty);
        // A key of a free-form map is a member, besides everything below it.
        if is_empty || !is_declared {
            set.insert(path);
        }
        if !is_empty {
            collect(child, of.field_or_unknown(name), path, set);
        }
        path.pop();
    }
}

/// The path element of a field.
pub(super) fn field_element(name: &str) -> String {
    format!("f:{name}")
}

/// The path element of an item of a set or of a list that merges by key.
pub(super) fn item_element(item: &Value, list: TypeRef<'_>) -> String {
    match list.list_kind() {
        ListKind::Map(keys) => {
            let mut identity = Map::new();
            // Keys are sorted alphabetically, independent of the schema.
            let mut keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
            keys.sort_unstable();
            for key in keys {
                let value =
                    item.get(key).or_else(|| list.items().field(key).and_then(TypeRef::default_value));
                if let Some(value) = value {
                    identity.insert(key.to_owned(), value.clone());
                }
            }
            format!("k:{}", Value::Object(identity))
        }
        ListKind::Set | ListKind::Atomic => format!("v:{item}"),
    }
}
