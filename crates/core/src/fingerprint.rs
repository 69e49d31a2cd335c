//! Fingerprints of values. Equal values have equal fingerprints on every machine and in every version of this program, so
//! that a fingerprint in an annotation can be compared years later.

use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// The fingerprint of a value, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Returns the fingerprint of the JSON form of `value`. The order of keys does not matter.
    ///
    /// # Panics
    /// If the value cannot be serialized as JSON, which does not happen for the types of this workspace.
    pub fn of(value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("our own types are JSON");
        let mut hash = Fnv1a::new();
        hash.value(&value);
        Self(hash.0)
    }

    /// Parses a fingerprint from an annotation. Any other text, which someone else has written, becomes a fingerprint that
    /// equals no other.
    pub fn read(text: &str) -> Self {
        let read = u64::from_str_radix(text, 16).ok().map(Self);
        read.filter(|read| read.to_string() == text).unwrap_or_else(|| {
            let mut hash = Fnv1a::new();
            hash.text(b'?', text);
            Self(hash.0)
        })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The 64-bit FNV-1a hash. Unlike the hasher of the standard library it never changes.
struct Fnv1a(u64);

impl Fnv1a {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a value. Every part starts with a tag for its type and ends with its length, so that different values never
    /// give the same sequence of bytes.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(true) => self.bytes(b"t"),
            Value::Bool(false) => self.bytes(b"f"),
            Value::Number(number) => self.text(b'#', &number.to_string()),
            Value::String(text) => self.text(b'"', text),
            Value::Array(items) => {
                for item in items {
                    self.value(item);
                }
                self.text(b']', &items.len().to_string());
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by_key(|(key, _)| *key);
                for (key, value) in sorted {
                    self.text(b'k', key);
                    self.value(value);
                }
                self.text(b'}', &fields.len().to_string());
            }
        }
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.bytes(&[tag]);
        self.bytes(text.as_bytes());
        self.bytes(&(text.len() as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fingerprint_never_changes() {
        let value = json!({"b": [1, 2.5, null, true, false], "a": {"nested": "text"}});
        assert_eq!(Fingerprint::of(&value).to_string(), "85ae3a37133f967d");
    }

    #[test]
    fn a_written_fingerprint_equals_only_itself() {
        let written = Fingerprint::of(&json!("a"));
        assert_eq!(Fingerprint::read(&written.to_string()), written);
        let small = Fingerprint(0x2a);
        assert_eq!(small.to_string(), "000000000000002a");
        for other in ["2a", "+00000000000002a", "000000000000002A", " 00000000000002a", "", "other"] {
            assert_ne!(Fingerprint::read(other), small, "{other:?}");
        }
        assert_ne!(Fingerprint::read("one"), Fingerprint::read("other"));
    }

    #[test]
    fn different_values_differ() {
        let values = [
            json!(null),
            json!(true),
            json!(false),
            json!(1),
            json!("1"),
            json!([]),
            json!({}),
            json!([[]]),
            json!([1, 1]),
            json!(["ab", "c"]),
            json!(["a", "bc"]),
            json!({"a": "b"}),
            json!({"b": "a"}),
            json!({"a": null}),
        ];
        let mut prints: Vec<_> = values.iter().map(Fingerprint::of).collect();
        prints.sort();
        prints.dedup();
        assert_eq!(prints.len(), values.len());
    }
}
