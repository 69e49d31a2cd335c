//! Merges an applied configuration into a live object.

use super::extract::item_element;
use crate::types::{ListKind, TypeRef};
use serde_json::{Map, Value};

/// Returns the live object with every field of the configuration.
pub(super) fn merge(live: &Value, config: &Value, of: TypeRef<'_>) -> Value {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if !of.is_atomic_map() => {
            Value::Object(merge_maps(live, config, of))
        }
        (Value::Array(live), Value::Array(config)) if of.list_kind() != ListKind::Atomic => {
            Value::Array(merge_lists(live, config, of))
        }
        _ => config.clone(),
    }
}

fn merge_maps(live: &Map<String, Value>, config: &Map<String, Value>, of: TypeRef<'_>) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, value) in config {
        let result = match live.get(name) {
            Some(current) => merge(current, value, of.field_or_unknown(name)),
            None => value.clone(),
        };
        merged.insert(name.clone(), result);
    }
    merged
}

/// Items of the configuration keep their order; items that only the live list has stay close to their
/// position.
fn merge_lists(live: &[Value], config: &[Value], of: TypeRef<'_>) -> Vec<Value> {
    let elements = |list: &[Value]| list.iter().map(|item| item_element(item, of)).collect::<Vec<_>>();
    let (live_elements, config_elements) = (elements(live), elements(config));
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let mut next_live = 0;
    for (item, element) in config.iter().zip(&config_elements) {
        let position = live_elements.iter().position(|one| one == element);
        if let Some(position) = position {
            // Live-only items up to this shared item come first.
            while next_live < position {
                if !config_elements.contains(&live_elements[next_live]) {
                    merged.push(live[next_live].clone());
                }
                next_live += 1;
            }
            next_live = next_live.max(position + 1);
            merged.push(merge(&live[position], item, of.items()));
        } else {
            // A new item comes after the live-only items before the next shared one.
            while next_live < live.len() && !config_elements.contains(&live_elements[next_live]) {
                merged.push(live[next_live].clone());
                next_live += 1;
            }
            merged.push(item.clone());
        }
    }
    for index in next_live..live.len() {
        if !config_elements.contains(&live_elements[index]) {
            merged.push(live[index].clone());
        }
    }
    merged
}
