//! The types of objects: their fields, the lists that merge by key, and the maps that are atomic.
//!
//! Built-in kinds and custom resources are described in the same way, by an OpenAPI schema with the
//! extensions of Kubernetes. Patches, server-side apply, the checks for unknown fields and `kubectl explain`
//! read it through [`TypeRef`].

mod builtin;
mod unknown;

pub(crate) use builtin::{definition_for, definitions};
pub(crate) use unknown::{drop_empty, drop_unknown, type_mismatch};

use serde_json::{Map, Value};

/// The prefix of the `$ref`s of the schemas.
const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// The type of a value at a path of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRef<'a> {
    /// The schema at the path; contains the list and map extensions.
    usage: &'a Value,
    /// The schema that it refers to, or the same schema.
    target: &'a Value,
}

/// The identity of list elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListKind<'a> {
    /// The list is atomic.
    Atomic,
    /// Elements are scalars and unique.
    Set,
    /// Elements are objects, unique by these fields.
    Map(&'a [Value]),
}

impl<'a> TypeRef<'a> {
    pub(crate) fn new(schema: &'a Value) -> Self {
        Self { usage: schema, target: resolve(schema) }
    }

    /// The type of a value without a schema.
    pub(crate) fn unknown() -> TypeRef<'static> {
        TypeRef { usage: &Value::Null, target: &Value::Null }
    }

    /// The type of a field, if the schema contains it.
    pub(crate) fn field(self, name: &str) -> Option<TypeRef<'a>> {
        if let Some(schema) = self.target["properties"].get(name) {
            return Some(TypeRef::new(schema));
        }
        let additional = self.target.get("additionalProperties")?;
        additional.is_object().then(|| TypeRef::new(additional))
    }

    /// The type of a field; unknown if the schema does not contain it.
    pub(crate) fn field_or_unknown(self, name: &str) -> TypeRef<'a> {
        self.field(name).unwrap_or(TypeRef { usage: &Value::Null, target: &Value::Null })
    }

    /// The type of a list's elements.
    pub(crate) fn items(self) -> TypeRef<'a> {
        self.target.get("items").map_or(TypeRef { usage: &Value::Null, target: &Value::Null }, TypeRef::new)
    }

    pub(crate) fn list_kind(self) -> ListKind<'a> {
        match self.extension("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListKind::Set,
            Some("map") => {
                let keys = self.extension("x-kubernetes-list-map-keys").and_then(Value::as_array);
                keys.map_or(ListKind::Atomic, |keys| ListKind::Map(keys))
            }
            _ => ListKind::Atomic,
        }
    }

    /// Returns true if a map or an object is atomic.
    pub(crate) fn is_atomic_map(self) -> bool {
        self.extension("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
    }

    /// The key by which a strategic merge patch merges this list.
    pub(crate) fn patch_merge_key(self) -> Option<&'a str> {
        self.extension("x-kubernetes-patch-merge-key").and_then(Value::as_str)
    }

    /// Returns true if the schema has `strategy` as the patch strategy of this field.
    pub(crate) fn has_patch_strategy(self, strategy: &str) -> bool {
        let named = self.extension("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
        named.split(',').any(|one| one == strategy)
    }

    /// The default value.
    pub(crate) fn default_value(self) -> Option<&'a Value> {
        self.extension("default")
    }

    /// The OpenAPI type name.
    pub(crate) fn type_name(self) -> Option<&'a str> {
        self.target["type"].as_str()
    }

    /// The `format` of a scalar.
    pub(crate) fn format(self) -> Option<&'a str> {
        self.target["format"].as_str()
    }

    pub(crate) fn is_int_or_string(self) -> bool {
        self.target["x-kubernetes-int-or-string"] == true
    }

    pub(crate) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.target["properties"].as_object()
    }

    /// Returns true for a map with arbitrary keys and values of one type.
    pub(crate) fn is_map(self) -> bool {
        self.target["additionalProperties"].is_object() && self.properties().is_none()
    }

    /// Returns true if fields without a schema are allowed here.
    pub(crate) fn allows_any_field(self) -> bool {
        self.target.is_null()
            || self.target["x-kubernetes-preserve-unknown-fields"] == true
            || self.target["additionalProperties"].is_object()
            || self.target["additionalProperties"] == true
            || (self.properties().is_none() && self.type_name() != Some("array"))
    }

    fn extension(self, name: &str) -> Option<&'a Value> {
        self.usage.get(name).or_else(|| self.target.get(name))
    }
}

/// Resolves a `$ref`, alone or wrapped in a one-element `allOf`, in the built-in definitions.
fn resolve(schema: &Value) -> &Value {
    let reference = schema.get("$ref").or_else(|| schema["allOf"][0].get("$ref")).and_then(Value::as_str);
    match reference.and_then(|reference| reference.strip_prefix(REFERENCE_PREFIX)) {
        Some(name) => definitions().get(name).unwrap_or(schema),
        None => schema,
    }
}
