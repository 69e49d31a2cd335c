//! The parts of the schema that Rust types cannot express: bounds, and the [`Rule`]s of the values.
//!
//! Every string and every list has an upper bound. The API server estimates the worst-case cost of a rule from these bounds
//! and rejects a CRD whose rules could cost too much.

use crate::rules::{self, Rule};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The maximum length of a reason that a person writes.
const MAX_REASON_LENGTH: u32 = 256;
/// The maximum length of an entry of days or hours: all 24 hours, separated by commas, fit.
const MAX_COMBINATION_LENGTH: u32 = 64;
/// The maximum length of a key: a DNS domain, a slash and a name.
const MAX_KEY_LENGTH: u32 = 253 + 1 + 63;

fn rule(rule: Rule) -> Value {
    let Rule { expression, message, field_path, optional_old_self } = rule;
    let mut validation = json!({ "rule": expression, "message": message });
    if !field_path.is_empty() {
        validation["fieldPath"] = field_path.into();
    }
    if optional_old_self {
        validation["optionalOldSelf"] = true.into();
    }
    validation
}

/// Returns the value of `x-kubernetes-validations`.
pub(crate) fn validations(rules: &[Rule]) -> Value {
    rules.iter().copied().map(rule).collect()
}

fn string(max_length: u32, rules: &[Rule]) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": max_length,
        "x-kubernetes-validations": validations(rules),
    })
}

fn list(item: &Schema, max_items: u32) -> Schema {
    json_schema!({ "type": "array", "minItems": 1, "maxItems": max_items, "items": item })
}

pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    string(16, &[rules::DURATION])
}

pub(crate) fn duration_or_zero(_: &mut SchemaGenerator) -> Schema {
    string(16, &[rules::DURATION_OR_ZERO])
}

pub(crate) fn pod_grace_period(_: &mut SchemaGenerator) -> Schema {
    string(16, &[rules::POD_GRACE_PERIOD])
}

pub(crate) fn days_of_week(_: &mut SchemaGenerator) -> Schema {
    list(&string(MAX_COMBINATION_LENGTH, &[rules::DAYS_OF_WEEK]), 16)
}

pub(crate) fn hours_of_day(_: &mut SchemaGenerator) -> Schema {
    list(&string(MAX_COMBINATION_LENGTH, &[rules::HOURS_OF_DAY]), 24)
}

pub(crate) fn exception_hours(_: &mut SchemaGenerator) -> Schema {
    list(&string(MAX_COMBINATION_LENGTH, &[rules::HOURS_OF_DAY]), 8)
}

pub(crate) fn timezone(_: &mut SchemaGenerator) -> Schema {
    string(64, &[rules::TIMEZONE])
}

pub(crate) fn minute_of_week(_: &mut SchemaGenerator) -> Schema {
    string(9, &[rules::MINUTE_OF_WEEK])
}

pub(crate) fn date(_: &mut SchemaGenerator) -> Schema {
    string(10, &[rules::DATE])
}

pub(crate) fn reason(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": MAX_REASON_LENGTH })
}

pub(crate) fn cluster_name(_: &mut SchemaGenerator) -> Schema {
    string(63, &[rules::CLUSTER_NAME])
}

pub(crate) fn provider_api_version(_: &mut SchemaGenerator) -> Schema {
    string(63, &[rules::PROVIDER_API_VERSION])
}

pub(crate) fn provider_kind(_: &mut SchemaGenerator) -> Schema {
    string(63, &[rules::PROVIDER_KIND])
}

pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": string(63, &[rules::LABEL_VALUE]),
        "x-kubernetes-validations": validations(&[rules::KEYS, rules::KEYS_NOT_RESERVED]),
    })
}

pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 4096 },
        "x-kubernetes-validations": validations(&[rules::KEYS, rules::KEYS_NOT_RESERVED]),
    })
}

pub(crate) fn kubernetes_version(_: &mut SchemaGenerator) -> Schema {
    string(128, &[rules::KUBERNETES_VERSION])
}

pub(crate) fn failure_domain(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 })
}

pub(crate) fn machine_identity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 253 })
}

pub(crate) fn commands(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 100,
        "items": { "type": "string", "minLength": 1, "maxLength": 256 },
    })
}

pub(crate) fn taint_key(_: &mut SchemaGenerator) -> Schema {
    string(MAX_KEY_LENGTH, &[rules::TAINT_KEY, rules::TAINT_KEY_NOT_RESERVED])
}

pub(crate) fn label_value(_: &mut SchemaGenerator) -> Schema {
    string(63, &[rules::LABEL_VALUE])
}

pub(crate) fn secret_name(_: &mut SchemaGenerator) -> Schema {
    string(253, &[rules::SECRET_NAME])
}

pub(crate) fn secret_key(_: &mut SchemaGenerator) -> Schema {
    string(253, &[rules::SECRET_KEY])
}

pub(crate) fn until(_: &mut SchemaGenerator) -> Schema {
    string(35, &[rules::UNTIL])
}

/// Conditions as Kubernetes defines them, one of each type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "An aspect of the state of the object.",
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "description": "The type of the condition, such as `Ready`.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 316,
                },
                "status": {
                    "description": "The status of the condition: `True`, `False` or `Unknown`.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "The reason of the status, in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                },
                "message": {
                    "description": "The reason of the status, in a sentence for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "The last time at which `status` changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the spec that the condition is based on.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

/// Removes `null` from all optional fields. A field then is absent or has a value, and the API server drops a `null` that a
/// person writes instead of storing it.
pub(crate) fn without_null(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut() {
        absent_instead_of_null(object);
    }
}

fn absent_instead_of_null(schema: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get("type")
        && let [only, Value::String(null)] = types.as_slice()
        && null == "null"
    {
        let only = only.clone();
        schema.insert("type".into(), only);
    }
    if let Some(Value::Array(alternatives)) = schema.get("anyOf")
        && let [Value::Object(only), Value::Object(null)] = alternatives.as_slice()
        && null.get("type").is_some_and(|name| name == "null")
    {
        let only = only.clone();
        schema.remove("anyOf");
        for (keyword, value) in only {
            // The description of the field says more than the description of its type.
            schema.entry(keyword).or_insert(value);
        }
    }
    for keyword in ["properties", "items", "additionalProperties"] {
        match schema.get_mut(keyword) {
            Some(Value::Object(properties)) if keyword == "properties" => {
                properties.values_mut().filter_map(Value::as_object_mut).for_each(absent_instead_of_null);
            }
            Some(Value::Object(nested)) => absent_instead_of_null(nested),
            _ => {}
        }
    }
}
