//! The fields of an event or a span, with the types that they were given.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use tracing::field::{Field, Visit};

/// The name of the message field in tracing.
const MESSAGE: &str = "message";

/// The longest value, in bytes. A backtrace has ten thousand.
const LONGEST: usize = 32 << 10;

/// The beginning of a text.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// Names and values: the message first, then in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(other, _)| *other == name)?;
        Some(self.0.remove(index).1)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// Takes over what it does not have itself.
    pub(super) fn inherit(&mut self, from: &Self) {
        for (name, value) in &from.0 {
            if self.get(name).is_none() {
                self.0.push((name, value.clone()));
            }
        }
    }

    fn set(&mut self, field: &Field, value: Value) {
        // What others can write is bounded where it comes in. This is for what libraries log of it.
        let too_long = value.as_str().filter(|text| text.len() > LONGEST).map(cut);
        let value = too_long.map_or(value, Value::from);
        let name = field.name();
        // `r#type = ...` is how a field gets a name that is a keyword.
        let name = name.strip_prefix("r#").unwrap_or(name);
        if let Some((_, old)) = self.0.iter_mut().find(|(other, _)| *other == name) {
            *old = value;
        } else if name == MESSAGE {
            self.0.insert(0, (name, value));
        } else {
            self.0.push((name, value));
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.set(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
