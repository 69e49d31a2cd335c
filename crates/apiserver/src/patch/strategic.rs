//! Kubernetes' strategic merge patch: a merge patch in which some lists merge by key.

use super::PatchError;
use crate::types::TypeRef;
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";
const RETAIN_KEYS: &str = "$retainKeys";

/// Applies a strategic merge patch to `target`.
pub(crate) fn strategic_merge_patch(
    target: &Value,
    patch: &Value,
    of: TypeRef<'_>,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("a strategic merge patch must be an object".to_owned()));
    };
    let empty = Map::new();
    merge_maps(target.as_object().unwrap_or(&empty), patch, of).map(Value::Object)
}

fn merge_maps(
    target: &Map<String, Value>,
    patch: &Map<String, Value>,
    of: TypeRef<'_>,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => return Ok(without_directives(patch)),
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => {
            return Err(PatchError::Malformed(format!("unknown patch type found: {other}")));
        }
    }
    let mut merged = target.clone();
    if let Some(retained) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        merged.retain(|name, _| retained.iter().any(|one| one == name));
    }
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix(DELETE_PRIMITIVES) {
            delete_primitives(&mut merged, field, value);
        } else if !is_directive(name) {
            merge_field(&mut merged, name, value, of.field_or_unknown(name))?;
        }
    }
    for (name, order) in patch {
        if let Some(field) = name.strip_prefix(SET_ORDER) {
            reorder(&mut merged, field, order, of.field_or_unknown(field));
        }
    }
    Ok(merged)
}

fn merge_field(
    merged: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    of: TypeRef<'_>,
) -> Result<(), PatchError> {
    match (merged.get(name), value) {
        (_, Value::Null) => {
            merged.remove(name);
        }
        (Some(Value::Object(current)), Value::Object(patch)) if !of.has_patch_strategy("replace") => {
            let result = merge_maps(current, patch, of)?;
            merged.insert(name.to_owned(), Value::Object(result));
        }
        (_, Value::Object(patch)) => {
            let result = merge_maps(&Map::new(), patch, of)?;
            merged.insert(name.to_owned(), Value::Object(result));
        }
        (current, Value::Array(patch)) if of.has_patch_strategy("merge") => {
            let current = current.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let result = merge_lists(current, patch, of)?;
            merged.insert(name.to_owned(), Value::Array(result));
        }
        _ => {
            merged.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

fn merge_lists(current: &[Value], patch: &[Value], of: TypeRef<'_>) -> Result<Vec<Value>, PatchError> {
    let Some(key) = of.patch_merge_key() else {
        let mut merged = current.to_vec();
        merged.extend(patch.iter().filter(|item| !current.contains(item)).cloned());
        return Ok(ordered(merged, current, patch, None));
    };
    if patch.iter().any(|item| item[DIRECTIVE] == "replace") {
        let kept = patch.iter().filter(|item| item[DIRECTIVE].is_null());
        return Ok(kept.cloned().collect());
    }
    let mut merged = current.to_vec();
    for item in patch {
        merge_item(&mut merged, item, key, of)?;
    }
    Ok(ordered(merged, current, patch, Some(key)))
}

fn merge_item(merged: &mut Vec<Value>, item: &Value, key: &str, of: TypeRef<'_>) -> Result<(), PatchError> {
    let Value::Object(fields) = item else {
        return Err(PatchError::Malformed("expected an object in a list that merges by key".to_owned()));
    };
    let Some(identity) = fields.get(key) else {
        return Err(PatchError::Malformed(format!("map: {item} does not contain declared merge key: {key}")));
    };
    let position = merged.iter().position(|one| &one[key] == identity);
    match (item[DIRECTIVE].as_str(), position) {
        (Some("delete"), Some(_)) => merged.retain(|one| &one[key] != identity),
        (Some("delete"), None) => {}
        (_, Some(index)) => {
            let existing = merged[index].as_object().cloned().unwrap_or_default();
            merged[index] = Value::Object(merge_maps(&existing, fields, of.items())?);
        }
        (_, None) => merged.push(Value::Object(merge_maps(&Map::new(), fields, of.items())?)),
    }
    Ok(())
}

/// Items in the patch keep the order of the patch. An item that only the server has comes before one of the
/// patch if the server had both in that order; otherwise the item of the patch comes first.
fn ordered(merged: Vec<Value>, server: &[Value], patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let position = |list: &[Value], item: &Value| match key {
        Some(key) => list.iter().position(|one| one[key] == item[key]),
        None => list.iter().position(|one| one == item),
    };
    let (mut named, rest): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| position(patch, item).is_some());
    named.sort_by_key(|item| position(patch, item));
    let mut result = Vec::with_capacity(named.len() + rest.len());
    let mut named = named.into_iter().peekable();
    for own in rest {
        while let Some(next) = named.peek() {
            let own_is_first = matches!(
                (position(server, &own), position(server, next)),
                (Some(before), Some(after)) if before < after
            );
            if own_is_first {
                break;
            }
            result.extend(named.next());
        }
        result.push(own);
    }
    result.extend(named);
    result
}

fn delete_primitives(merged: &mut Map<String, Value>, field: &str, gone: &Value) {
    let Some(gone) = gone.as_array() else { return };
    if let Some(Value::Array(list)) = merged.get_mut(field) {
        list.retain(|item| !gone.contains(item));
    }
}

/// Sorts the items that the order contains; the others keep their positions relative to the items before
/// them.
fn reorder(merged: &mut Map<String, Value>, field: &str, order: &Value, of: TypeRef<'_>) {
    let Some(order) = order.as_array() else { return };
    let Some(Value::Array(list)) = merged.get_mut(field) else {
        return;
    };
    let rank = |item: &Value| match of.patch_merge_key() {
        Some(key) => order.iter().position(|one| one[key] == item[key]),
        None => order.iter().position(|one| one == item),
    };
    let mut named: Vec<(usize, Value)> =
        list.iter().filter_map(|item| rank(item).map(|index| (index, item.clone()))).collect();
    named.sort_by_key(|(index, _)| *index);
    let mut named = named.into_iter().map(|(_, item)| item);
    for item in list.iter_mut() {
        if rank(item).is_some()
            && let Some(next) = named.next()
        {
            *item = next;
        }
    }
}

fn is_directive(name: &str) -> bool {
    name == DIRECTIVE
        || name == RETAIN_KEYS
        || name.starts_with(SET_ORDER)
        || name.starts_with(DELETE_PRIMITIVES)
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch
        .iter()
        .filter(|(name, _)| !is_directive(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::definitions;
    use serde_json::json;

    fn patched(target: &Value, patch: &Value) -> Value {
        let pod = TypeRef::new(&definitions()["io.k8s.api.core.v1.Pod"]);
        strategic_merge_patch(target, patch, pod).expect("a good patch")
    }

    #[test]
    fn containers_merge_by_name() {
        let target =
            json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
        let patch =
            json!({"spec": {"containers": [{"name": "b", "image": "z"}, {"name": "c", "image": "w"}]}});
        let expected = json!([
            {"name": "a", "image": "x"}, {"name": "b", "image": "z"}, {"name": "c", "image": "w"},
        ]);
        assert_eq!(patched(&target, &patch)["spec"]["containers"], expected);
    }

    #[test]
    fn directives_delete_and_replace() {
        let target = json!({
            "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        });
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"$patch": "replace", "y": "2"}},
            "spec": {"containers": [{"$patch": "delete", "name": "a"}]},
        });
        let result = patched(&target, &patch);
        assert_eq!(result["metadata"], json!({"finalizers": ["b"], "labels": {"y": "2"}}));
        assert_eq!(result["spec"]["containers"], json!([{"name": "b"}]));
    }

    #[test]
    fn order_directives_order() {
        let target = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "x"}],
        }});
        assert_eq!(
            patched(&target, &patch)["spec"]["containers"],
            json!([{"name": "b"}, {"name": "a", "image": "x"}])
        );
    }
}
