//! The types of objects: which fields there are, which lists merge by key, which maps are atomic.
//!
//! Built-in kinds and custom resources are described alike, by an OpenAPI schema with Kubernetes' extensions. Patches,
//! server-side apply, unknown-field checks and `kubectl explain` all read it through [`TypeRef`].

mod builtin;
mod unknown;

pub(crate) use builtin::{definition_for, definitions};
pub(crate) use unknown::{drop_empty, drop_unknown, type_mismatch};

use serde_json::{Map, Value};

/// The prefix of the `$ref`s of the schemas.
const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// The type of one place in an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRef<'a> {
    /// The schema at the place where it is used; carries the list and map extensions.
    usage: &'a Value,
    /// The schema it refers to, or the same.
    target: &'a Value,
}

/// The identity of list elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListKind<'a> {
    /// The list is one value.
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

    /// The type of a place about which nothing is known.
    pub(crate) fn unknown() -> TypeRef<'static> {
        TypeRef { usage: &Value::Null, target: &Value::Null }
    }

    /// The type of a field, if the schema knows it.
    pub(crate) fn field(self, name: &str) -> Option<TypeRef<'a>> {
        if let Some(schema) = self.target["properties"].get(name) {
            return Some(TypeRef::new(schema));
        }
        let additional = self.target.get("additionalProperties")?;
        additional.is_object().then(|| TypeRef::new(additional))
    }

    /// The type of a field; unknown if the schema does not say.
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

    /// True where a map or an object changes hands as a whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        self.extension("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
    }

    /// The key by which a strategic merge patch merges this list.
    pub(crate) fn patch_merge_key(self) -> Option<&'a str> {
        self.extension("x-kubernetes-patch-merge-key").and_then(Value::as_str)
    }

    /// True if a strategic merge patch names `strategy` for this field.
    pub(crate) fn has_patch_strategy(self, strategy: &str) -> bool {
        let named = self.extension("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
        named.split(',').any(|one| one == strategy)
    }

    /// The default value of this place.
    pub(crate) fn default_value(self) -> Option<&'a Value> {
        self.extension("default")
    }

    /// The OpenAPI type name.
    pub(crate) fn type_name(self) -> Option<&'a str> {
        self.target["type"].as_str()
    }

    /// `format` of a scalar.
    pub(crate) fn format(self) -> Option<&'a str> {
        self.target["format"].as_str()
    }

    pub(crate) fn is_int_or_string(self) -> bool {
        self.target["x-kubernetes-int-or-string"] == true
    }

    pub(crate) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.target["properties"].as_object()
    }

    /// True for a map from free keys to values of one type.
    pub(crate) fn is_map(self) -> bool {
        self.target["additionalProperties"].is_object() && self.properties().is_none()
    }

    /// True if fields without a schema may stand here.
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

/// Follows `$ref`, alone or wrapped in a one-element `allOf`, into the built-in definitions.
fn resolve(schema: &Value) -> &Value {
    let reference = schema.get("$ref").or_else(|| schema["allOf"][0].get("$ref")).and_then(Value::as_str);
    match reference.and_then(|reference| reference.strip_prefix(REFERENCE_PREFIX)) {
        Some(name) => definitions().get(name).unwrap_or(schema),
        None => schema,
    }
}
