//! Tables, as `kubectl get` prints them.

mod columns;
mod custom;
mod duration;
mod path;
mod workloads;

use crate::frontend::metadata_only;
use crate::kinds::Resource;
use jiff::Timestamp;
use serde_json::{Value, json};

/// An object or a list as a `meta.k8s.io/v1` Table.
pub(crate) fn table(value: &Value, resource: &Resource, include_object: &str, now: Timestamp) -> Value {
    if value["kind"] == "Status" {
        return value.clone();
    }
    let is_list = value["kind"] == resource.list_kind.as_str();
    let single = [value.clone()];
    let items = if is_list { value["items"].as_array().map_or(&[][..], Vec::as_slice) } else { &single[..] };
    let columns = match resource.custom() {
        Some(custom) => custom::columns(&custom.version),
        None => columns::columns(resource),
    };
    let rows: Vec<Value> = items
        .iter()
        .map(|item| {
            let cells: Vec<Value> = columns.iter().map(|column| (column.cell)(item, now)).collect();
            let mut row = json!({"cells": cells});
            match include_object {
                "None" => row["object"] = Value::Null,
                "Object" => row["object"] = item.clone(),
                _ => row["object"] = metadata_only(item),
            }
            row
        })
        .collect();
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        })
        .collect();
    let metadata = if is_list {
        value["metadata"].clone()
    } else {
        json!({"resourceVersion": value["metadata"]["resourceVersion"]})
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// One column: its header, and the function that fills a cell.
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    cell: Cell,
}

/// The value of a column for an object at an instant.
type Cell = Box<dyn Fn(&Value, Timestamp) -> Value>;
