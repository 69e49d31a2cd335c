//! Conversion between the stored version of an object and the served one.

use crate::error::ApiError;
use crate::kinds::{BuiltinKind, Definition, Resource};
use crate::strategy;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The object as `resource` serves it; the stored one itself if they are equal.
pub(crate) fn to_served<'a>(resource: &Resource, stored: &'a Value) -> Cow<'a, Value> {
    match &resource.definition {
        Definition::Builtin(BuiltinKind::Event) => Cow::Owned(strategy::core_to_events(stored)),
        Definition::Builtin(_) => Cow::Borrowed(stored),
        Definition::Custom(_) if stored["apiVersion"] == resource.api_version() => Cow::Borrowed(stored),
        Definition::Custom(_) => {
            let mut served = stored.clone();
            served["apiVersion"] = resource.api_version().into();
            Cow::Owned(served)
        }
    }
}

/// The stored form of an object that was written through `resource`.
pub(super) fn to_stored(resource: &Resource, mut value: Value) -> Result<Value, ApiError> {
    match &resource.definition {
        Definition::Builtin(BuiltinKind::Event) => Ok(strategy::events_to_core(&value)),
        Definition::Builtin(_) => Ok(value),
        Definition::Custom(custom) if custom.storage_version == resource.version => Ok(value),
        Definition::Custom(custom) if custom.trivial_conversion => {
            value["apiVersion"] = format!("{}/{}", resource.group, custom.storage_version).into();
            Ok(value)
        }
        Definition::Custom(_) => Err(ApiError::not_implemented("conversion webhooks")),
    }
}

/// A stored object as a list item, serialised without copying it.
#[derive(Debug)]
pub(crate) struct Served {
    object: Arc<Value>,
    /// Items of built-in lists have no `apiVersion` and `kind`.
    hides_type: bool,
    api_version: Option<String>,
}

impl Served {
    pub(super) fn item(resource: &Resource, stored: &Arc<Value>) -> Self {
        let (object, api_version) = match &resource.definition {
            Definition::Builtin(BuiltinKind::Event) => (Arc::new(strategy::core_to_events(stored)), None),
            Definition::Builtin(_) => (stored.clone(), None),
            Definition::Custom(_) => (stored.clone(), Some(resource.api_version())),
        };
        Self { object, hides_type: resource.custom().is_none(), api_version }
    }
}

impl Serialize for Served {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.object.as_object() else {
            return self.object.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match (name.as_str(), &self.api_version) {
                ("apiVersion" | "kind", _) if self.hides_type => {}
                ("apiVersion", Some(version)) => map.serialize_entry(name, version)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}
