//! JSON merge patch (RFC 7386): fields replace fields, and null removes them.

use serde_json::{Map, Value};

/// Applies a merge patch to `target`.
pub(crate) fn merge_patch(target: &Value, patch: &Value) -> Value {
    let Value::Object(fields) = patch else {
        return patch.clone();
    };
    let mut merged = target.as_object().cloned().unwrap_or_else(Map::new);
    for (name, value) in fields {
        if value.is_null() {
            merged.remove(name);
        } else {
            let current = merged.get(name).unwrap_or(&Value::Null);
            let result = merge_patch(current, value);
            merged.insert(name.clone(), result);
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_remove_and_objects_merge() {
        let target = json!({"a": {"b": 1, "c": 2}, "d": [1, 2]});
        let patch = json!({"a": {"b": null, "e": {"f": null, "g": 1}}, "d": [3]});
        assert_eq!(merge_patch(&target, &patch), json!({"a": {"c": 2, "e": {"g": 1}}, "d": [3]}));
    }
}
