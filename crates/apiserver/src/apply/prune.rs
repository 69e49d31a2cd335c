//! Removal of fields that a manager applied before and no longer applies.

use super::extract::{field_element, item_element};
use super::field_set::FieldSet;
use crate::types::{ListKind, TypeRef};
use serde_json::Value;

/// Removes from `merged` what `last` contains, unless `claimed` (the current fields of all managers) contains
/// it or something below it.
pub(super) fn prune(merged: &mut Value, last: &FieldSet, claimed: &FieldSet, of: TypeRef<'_>) {
    // The server sets metadata too, so it stays, with any owner.
    let metadata = field_element("metadata");
    if let (Some(value), Some(last)) = (merged.get_mut("metadata"), last.child(&metadata)) {
        prune_inside(value, last, claimed.child(&metadata), of.field_or_unknown("metadata"));
    }
    if let Value::Object(map) = merged {
        map.retain(|name, child| {
            let element = field_element(name);
            name == "metadata"
                || keep(child, last.child(&element), claimed.child(&element), of.field_or_unknown(name))
        });
    }
}

fn prune_inside(value: &mut Value, last: &FieldSet, claimed: Option<&FieldSet>, of: TypeRef<'_>) {
    match value {
        Value::Object(map) if !of.is_atomic_map() => map.retain(|name, child| {
            let element = field_element(name);
            keep(
                child,
                last.child(&element),
                claimed.and_then(|set| set.child(&element)),
                of.field_or_unknown(name),
            )
        }),
        Value::Array(items) if of.list_kind() != ListKind::Atomic => items.retain_mut(|item| {
            let element = item_element(item, of);
            keep(item, last.child(&element), claimed.and_then(|set| set.child(&element)), of.items())
        }),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {}
    }
}

/// Removes fields that the manager no longer applies, unless another manager owns them or something in them.
/// It also removes content without an owner, such as defaults that were set below such a field.
fn keep(child: &mut Value, last: Option<&FieldSet>, claimed: Option<&FieldSet>, of: TypeRef<'_>) -> bool {
    let Some(last) = last else { return true };
    if claimed.is_some() {
        prune_inside(child, last, claimed, of);
    }
    claimed.is_some()
}
