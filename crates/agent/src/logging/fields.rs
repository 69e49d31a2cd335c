//! The fields of an event, with the types that they were given.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::fmt;
use tracing::field::{Field, Visit};

/// The name that tracing gives to the text of an event.
const MESSAGE: &str = "message";

/// The longest value, in bytes, as in the controller's lines. A ConfigMap may have a megabyte.
const MAX_VALUE_BYTES: usize = 32 << 10;

/// Names and values: the message first, then in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        let too_long = value.as_str().filter(|text| text.len() > MAX_VALUE_BYTES).map(cut);
        let value = too_long.map_or(value, Value::from);
        let name = field.name();
        if name == MESSAGE {
            self.0.insert(0, (name, value));
        } else {
            self.0.push((name, value));
        }
    }
}

/// The beginning of a text, and its length.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_VALUE_BYTES);
    format!("{}… ({} bytes)", &text[..end], text.len())
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

    fn record_u128(&mut self, field: &Field, value: u128) {
        // `Duration::as_millis` returns this type; the numbers fit the smaller one.
        self.set(field, u64::try_from(value).unwrap_or(u64::MAX).into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
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
