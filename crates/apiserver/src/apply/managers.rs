//! `metadata.managedFields`, decoded.

use super::field_set::FieldSet;
use crate::object;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The operation by which a manager owns its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// The identity of an entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    pub operation: Operation,
    pub manager: String,
    pub api_version: String,
    pub subresource: String,
}

#[derive(Clone, Debug)]
pub(super) struct Managed {
    pub fields: FieldSet,
    pub time: String,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(pub BTreeMap<ManagerId, Managed>);

impl Managers {
    pub(super) fn of(value: &Value) -> Self {
        let entries = value["metadata"]["managedFields"].as_array().into_iter().flatten();
        Self(entries.filter_map(decode).collect())
    }

    /// All fields that managers other than `except` own.
    pub(super) fn owned_fields(&self) -> FieldSet {
        self.0.values().fold(FieldSet::default(), |all, managed| all.union(&managed.fields))
    }

    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, managed| !managed.fields.is_empty());
    }

    /// Writes the entries into the object, in the server's order.
    pub(super) fn write_to(&self, value: &mut Value) {
        let mut entries: Vec<(&ManagerId, &Managed)> = self.0.iter().collect();
        entries.sort_by(|(left, left_managed), (right, right_managed)| {
            let key = |id: &ManagerId, managed: &Managed| {
                (
                    id.operation,
                    managed.time.clone(),
                    id.manager.clone(),
                    id.api_version.clone(),
                    id.subresource.clone(),
                )
            };
            key(left, left_managed).cmp(&key(right, right_managed))
        });
        if entries.is_empty() {
            object::remove_meta(value, "managedFields");
        } else {
            let encoded: Vec<Value> = entries.into_iter().map(|(id, managed)| encode(id, managed)).collect();
            object::set_meta(value, "managedFields", encoded);
        }
    }
}

fn decode(entry: &Value) -> Option<(ManagerId, Managed)> {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let operation = match entry["operation"].as_str()? {
        "Apply" => Operation::Apply,
        _ => Operation::Update,
    };
    let id = ManagerId {
        operation,
        manager: text("manager"),
        api_version: text("apiVersion"),
        subresource: text("subresource"),
    };
    Some((id, Managed { fields: FieldSet::from_fields_v1(&entry["fieldsV1"]), time: text("time") }))
}

fn encode(id: &ManagerId, managed: &Managed) -> Value {
    let operation = match id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut entry = json!({
        "manager": id.manager, "operation": operation, "apiVersion": id.api_version,
        "time": managed.time, "fieldsType": "FieldsV1", "fieldsV1": managed.fields.to_fields_v1(),
    });
    if managed.time.is_empty()
        && let Some(map) = entry.as_object_mut()
    {
        map.remove("time");
    }
    if !id.subresource.is_empty() {
        entry["subresource"] = id.subresource.clone().into();
    }
    entry
}
