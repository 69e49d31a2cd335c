//! Unknown fields: finds and removes the fields that are not in the schema.

use super::path::Path;
use super::structural::Schema;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The fields that every object has and schemas do not list.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The paths of all unknown fields, sorted. The object is not changed.
pub(super) fn find(object: &Value, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    visit(object, schema, true, &Path::ROOT, &mut found);
    found.sort();
    found
}

/// Removes all unknown fields.
pub(super) fn remove(object: &mut Value, schema: &Schema) {
    prune(object, schema, true);
}

/// The treatment of a field.
enum Fate<'a> {
    Unknown,
    KeptAsItIs,
    Known(&'a Schema),
}

fn fate<'a>(name: &str, schema: &'a Schema, is_object: bool) -> Fate<'a> {
    if is_object && OBJECT_FIELDS.contains(&name) {
        return Fate::KeptAsItIs;
    }
    match schema.child(name) {
        Some(child) => Fate::Known(child),
        None if schema.preserve_unknown_fields => Fate::KeptAsItIs,
        None => Fate::Unknown,
    }
}

/// The schema of a list's items. If the value should not be a list, all fields in it are unknown.
fn items(schema: &Schema) -> Option<&Schema> {
    static NOTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
    match &schema.items {
        Some(items) => Some(items),
        None if schema.preserve_unknown_fields => None,
        None => Some(&NOTHING),
    }
}

fn visit(value: &Value, schema: &Schema, is_object: bool, path: &Path<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path.field(name);
                match fate(name, schema, is_object) {
                    Fate::Unknown => found.push(path.dotted()),
                    Fate::KeptAsItIs => {}
                    Fate::Known(child) => visit(value, child, child.embedded_resource, &path, found),
                }
            }
        }
        Value::Array(values) => {
            if let Some(items) = items(schema) {
                for (index, value) in values.iter().enumerate() {
                    visit(value, items, items.embedded_resource, &path.index(index), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune(value: &mut Value, schema: &Schema, is_object: bool) {
    match value {
        Value::Object(fields) => prune_fields(fields, schema, is_object),
        Value::Array(values) => {
            if let Some(items) = items(schema) {
                for value in values {
                    prune(value, items, items.embedded_resource);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_fields(fields: &mut Map<String, Value>, schema: &Schema, is_object: bool) {
    fields.retain(|name, value| match fate(name, schema, is_object) {
        Fate::Unknown => false,
        Fate::KeptAsItIs => true,
        Fate::Known(child) => {
            prune(value, child, child.embedded_resource);
            true
        }
    });
}
