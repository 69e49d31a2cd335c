//! The two ways in which the owner of a field changes: an update and an apply.

use super::compare::{Comparison, compare};
use super::extract::fields_of;
use super::field_set::FieldSet;
use super::managers::{Managed, ManagerId, Managers, Operation};
use super::merge::merge;
use super::prune::prune;
use crate::object;
use crate::types::TypeRef;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The manager of a write, its time, and the fields that the request cannot change.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub id: ManagerId,
    pub time: String,
    /// The `FieldsV1` of the fields that the endpoint ignores: `status` on the main one, the rest on
    /// `/status`.
    pub ignored: Value,
}

/// A refused apply: the conflicting fields and their managers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConflictingFields(pub Vec<(ManagerId, Vec<String>)>);

impl ConflictingFields {
    /// The conflicting fields of all managers.
    pub(super) fn paths(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(|(_, paths)| paths)
    }
}

/// The result of an apply.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub object: Value,
}

/// Fields that belong to the server and never have an owner.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::from_fields_v1(&json!({
        "f:apiVersion": {}, "f:kind": {},
        "f:metadata": {
            ".": {}, "f:name": {}, "f:namespace": {}, "f:creationTimestamp": {}, "f:selfLink": {}, "f:uid": {},
            "f:clusterName": {}, "f:generation": {}, "f:managedFields": {}, "f:resourceVersion": {},
        },
    }));
    set.insert(&["f:metadata".to_owned()]);
    set
});

/// The same, for differences: includes everything below a path.
static UNOWNED_BELOW: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::from_fields_v1(&json!({
        "f:apiVersion": {}, "f:kind": {},
        "f:metadata": {
            "f:name": {}, "f:namespace": {}, "f:creationTimestamp": {}, "f:selfLink": {}, "f:uid": {},
            "f:clusterName": {}, "f:generation": {}, "f:managedFields": {}, "f:resourceVersion": {},
        },
    }))
});

/// Writes the owners of all fields into `new`, after an update that changed `live` to it.
///
/// An object whose managers were removed by hand is not tracked again until the next apply.
pub(crate) fn track_update(live: &Value, new: &mut Value, of: TypeRef<'_>, owner: &Owner, is_create: bool) {
    let sent = new["metadata"]["managedFields"].clone();
    let is_reset = sent.as_array().is_some_and(|list| {
        list.iter().all(|entry| entry.as_object().is_some_and(serde_json::Map::is_empty))
    });
    if is_reset && !is_create {
        object::remove_meta(new, "managedFields");
        return;
    }
    let mut managers = if sent.is_array() { Managers::of(new) } else { Managers::of(live) };
    if managers.0.is_empty() && !is_create {
        object::remove_meta(new, "managedFields");
        return;
    }
    let ignored = FieldSet::from_fields_v1(&owner.ignored);
    let comparison = compare(&without_managers(live), &without_managers(new), of).without(&ignored);
    let comparison = strip(comparison);
    take_from_others(&mut managers, &owner.id, &comparison);
    let before = managers.0.get(&owner.id).cloned();
    let base = before.as_ref().map(|managed| managed.fields.clone()).unwrap_or_default();
    let fields = base.difference(&comparison.removed).union(&comparison.modified).union(&comparison.added);
    let time = match before {
        Some(managed) if managed.fields == fields => managed.time,
        _ => owner.time.clone(),
    };
    managers.0.insert(owner.id.clone(), Managed { fields, time });
    managers.drop_empty();
    managers.write_to(new);
}

/// Applies a configuration to the live object (null: there is none yet), with `force` also to fields of other
/// managers.
pub(crate) fn apply(
    live: &Value,
    config: &Value,
    of: TypeRef<'_>,
    owner: &Owner,
    force: bool,
) -> Result<Applied, ConflictingFields> {
    let mut managers = Managers::of(live);
    if managers.0.is_empty() && !object::uid(live).is_empty() {
        adopt_untracked(&mut managers, live, of, owner);
    }
    let ignored = FieldSet::from_fields_v1(&owner.ignored);
    let config = without_managers(config);
    let live_plain = without_managers(live);
    let set = fields_of(&config, of)
        .recursive_difference(&ignored)
        .recursive_difference(&UNOWNED_BELOW)
        .difference(&UNOWNED);
    let last = managers.0.remove(&owner.id);
    let mut merged = merge(&live_plain, &config, of);
    let claimed = managers.owned_fields().union(&set);
    if let Some(last) = &last {
        prune(&mut merged, &last.fields, &claimed, of);
    }
    let comparison = strip(compare(&live_plain, &merged, of).without(&ignored));
    if !force {
        refuse_conflicts(&managers, &comparison)?;
    }
    take_from_others(&mut managers, &owner.id, &comparison);
    // The time is that of the last change to the object: an apply that changes nothing does not change it,
    // even if it is unset.
    let time = if merged == live_plain {
        last.map(|managed| managed.time).unwrap_or_default()
    } else {
        owner.time.clone()
    };
    managers.0.insert(owner.id.clone(), Managed { fields: set, time });
    managers.drop_empty();
    managers.write_to(&mut merged);
    Ok(Applied { object: merged })
}

/// Assigns fields that existed before the first apply to a manager with a fixed name, as the server does.
fn adopt_untracked(managers: &mut Managers, live: &Value, of: TypeRef<'_>, owner: &Owner) {
    let ignored = FieldSet::from_fields_v1(&owner.ignored);
    let id = ManagerId {
        operation: Operation::Update,
        manager: "before-first-apply".to_owned(),
        api_version: owner.id.api_version.clone(),
        subresource: String::new(),
    };
    let fields = strip(compare(&json!({}), &without_managers(live), of).without(&ignored)).added;
    managers.0.insert(id, Managed { fields, time: owner.time.clone() });
}

fn refuse_conflicts(managers: &Managers, comparison: &Comparison) -> Result<(), ConflictingFields> {
    let touched = comparison.modified.union(&comparison.added);
    let conflicts: Vec<(ManagerId, Vec<String>)> = managers
        .0
        .iter()
        .filter_map(|(id, managed)| {
            let both = managed.fields.intersection(&touched);
            (!both.is_empty()).then(|| (id.clone(), both.paths()))
        })
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(ConflictingFields(conflicts)) }
}

fn take_from_others(managers: &mut Managers, taker: &ManagerId, comparison: &Comparison) {
    let touched = comparison.modified.union(&comparison.added);
    for (id, managed) in &mut managers.0 {
        if id != taker {
            managed.fields = managed.fields.difference(&touched).difference(&comparison.removed);
        }
    }
    managers.drop_empty();
}

fn strip(comparison: Comparison) -> Comparison {
    let clean = |set: FieldSet| set.recursive_difference(&UNOWNED_BELOW).difference(&UNOWNED);
    Comparison {
        added: clean(comparison.added),
        modified: clean(comparison.modified),
        removed: clean(comparison.removed),
    }
}

fn without_managers(value: &Value) -> Value {
    let mut plain = value.clone();
    if let Some(metadata) = plain.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    plain
}
