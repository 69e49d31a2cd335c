//! Detection of unknown fields and of values with the wrong type, as in the decoder of a real server.

use super::TypeRef;
use base64::Engine as _;
use serde_json::Value;

/// Removes unknown fields, and nulls, which mean absent. Returns the paths of the unknown fields in the
/// format of the server's strict decoder.
pub(crate) fn drop_unknown(value: &mut Value, of: TypeRef<'_>) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(value, of, "", &mut dropped);
    dropped
}

fn walk(value: &mut Value, of: TypeRef<'_>, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let known = of.properties().is_some() && !of.allows_any_field();
            map.retain(|name, child| {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if known && of.field(name).is_none() {
                    dropped.push(place);
                    return false;
                }
                walk(child, of.field_or_unknown(name), &place, dropped);
                // In a map, a null stays: it is the zero value of its type.
                !(child.is_null() && of.properties().is_some())
            });
        }
        Value::Array(list) => {
            for (index, child) in list.iter_mut().enumerate() {
                walk(child, of.items(), &format!("{path}[{index}]"), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes empty lists and maps, which the server does not write.
pub(crate) fn drop_empty(value: &mut Value, of: TypeRef<'_>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map.iter_mut() {
                drop_empty(child, of.field_or_unknown(name));
            }
            if of.properties().is_some() {
                map.retain(|name, child| !is_empty_collection(child, of.field_or_unknown(name)));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|child| drop_empty(child, of.items())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_empty_collection(value: &Value, of: TypeRef<'_>) -> bool {
    match value {
        Value::Array(list) => list.is_empty() && of.type_name() == Some("array"),
        Value::Object(map) => map.is_empty() && of.is_map(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The first path whose value cannot be decoded into its type, with the actual and the expected type.
pub(crate) fn type_mismatch(value: &Value, of: TypeRef<'_>) -> Option<String> {
    mismatch_at(value, of, "")
}

fn mismatch_at(value: &Value, of: TypeRef<'_>, path: &str) -> Option<String> {
    if value.is_null() || of.is_int_or_string() {
        return None;
    }
    let wanted = of.type_name()?;
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string() || (of.format().is_none() && of.properties().is_some()),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => true,
    };
    if of.format() == Some("byte")
        && let Some(text) = value.as_str()
        && base64::engine::general_purpose::STANDARD.decode(text).is_err()
    {
        return Some(format!("cannot unmarshal {path}: illegal base64 data"));
    }
    if !fits {
        return Some(format!("cannot unmarshal {} into field {path} of type {wanted}", json_kind(value)));
    }
    match value {
        Value::Object(map) => map.iter().find_map(|(name, child)| {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            mismatch_at(child, of.field_or_unknown(name), &place)
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(index, child)| mismatch_at(child, of.items(), &format!("{path}[{index}]"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::definitions;
    use serde_json::json;

    fn pod() -> TypeRef<'static> {
        TypeRef::new(&definitions()["io.k8s.api.core.v1.Pod"])
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut value = json!({"spec": {"containers": [{"name": "a", "imag": "x"}], "nodSelector": {}}});
        let dropped = drop_unknown(&mut value, pod());
        assert_eq!(dropped, ["spec.containers[0].imag", "spec.nodSelector"]);
        assert_eq!(value, json!({"spec": {"containers": [{"name": "a"}]}}));
    }

    #[test]
    fn a_number_where_a_string_belongs_is_noticed() {
        let value = json!({"spec": {"containers": [{"name": 5}]}});
        let message = type_mismatch(&value, pod()).expect("a mismatch");
        assert!(message.contains("spec.containers[0].name"), "{message}");
    }
}
