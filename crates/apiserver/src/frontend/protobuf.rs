//! The bodies that `kubectl` sends as protobuf, which are those that its typed clients create.
//!
//! It sends all other bodies as JSON, and accepts JSON responses. A message with a field that is not in the
//! tables below is refused, never decoded in part.

use serde_json::{Map, Value, json};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of every protobuf message of Kubernetes.
const MAGIC: &[u8] = b"k8s\0";

/// The accessor of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Texts,
    Integer,
    Flag,
    TextMap,
    Message(Fields),
    /// Present but without meaning in a request; skipped.
    Skipped,
}

/// Number, name and kind of the fields of a message.
type Fields = &'static [(u64, &'static str, Kind)];

const METADATA: Fields = &[
    (1, "name", Kind::Text),
    (2, "generateName", Kind::Text),
    (3, "namespace", Kind::Text),
    (4, "selfLink", Kind::Skipped),
    (5, "uid", Kind::Text),
    (6, "resourceVersion", Kind::Text),
    (7, "generation", Kind::Skipped),
    (8, "creationTimestamp", Kind::Skipped),
    (11, "labels", Kind::TextMap),
    (12, "annotations", Kind::TextMap),
    (14, "finalizers", Kind::Texts),
];

const DELETE_OPTIONS: Fields = &[
    (1, "gracePeriodSeconds", Kind::Integer),
    (2, "preconditions", Kind::Message(&[(1, "uid", Kind::Text), (2, "resourceVersion", Kind::Text)])),
    (3, "orphanDependents", Kind::Flag),
    (4, "propagationPolicy", Kind::Text),
    (5, "dryRun", Kind::Texts),
];

fn fields_of(api_version: &str, kind: &str) -> Option<Fields> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => &[
            (1, "metadata", Kind::Message(METADATA)),
            (2, "spec", Kind::Skipped),
            (3, "status", Kind::Skipped),
        ],
        ("v1", "ServiceAccount") => &[(1, "metadata", Kind::Message(METADATA))],
        ("v1", "ConfigMap") => &[(1, "metadata", Kind::Message(METADATA)), (2, "data", Kind::TextMap)],
        ("policy/v1", "Eviction") => {
            &[(1, "metadata", Kind::Message(METADATA)), (2, "deleteOptions", Kind::Message(DELETE_OPTIONS))]
        }
        (_, "DeleteOptions") => DELETE_OPTIONS,
        _ => return None,
    })
}

/// The object of a protobuf body; `None` if it is not supported.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    const TYPE: Fields = &[(1, "apiVersion", Kind::Text), (2, "kind", Kind::Text)];
    let mut envelope = Reader(body.strip_prefix(MAGIC)?);
    let (mut object, mut raw) = (json!({}), None);
    while let Some((number, wire)) = envelope.next_field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => object = message(bytes, TYPE)?,
            (2, Wire::Bytes(bytes)) => raw = Some(bytes),
            _ => {}
        }
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let fields = fields_of(&text("apiVersion"), &text("kind"))?;
    let content = message(raw?, fields)?;
    object.as_object_mut()?.extend(content.as_object()?.clone());
    Some(object)
}

fn message(bytes: &[u8], fields: Fields) -> Option<Value> {
    let mut reader = Reader(bytes);
    let mut result = Map::new();
    while let Some((number, wire)) = reader.next_field()? {
        let (_, name, kind) = fields.iter().find(|(known, ..)| *known == number)?;
        match (kind, wire) {
            // An empty string means absent.
            (Kind::Skipped, _) | (Kind::Text, Wire::Bytes([])) => {}
            (Kind::Text, Wire::Bytes(bytes)) => {
                result.insert((*name).to_owned(), std::str::from_utf8(bytes).ok()?.into());
            }
            (Kind::Texts, Wire::Bytes(bytes)) => {
                let list = result.entry(*name).or_insert_with(|| json!([]));
                list.as_array_mut()?.push(std::str::from_utf8(bytes).ok()?.into());
            }
            (Kind::Integer, Wire::Number(number)) => {
                result.insert((*name).to_owned(), number.cast_signed().into());
            }
            (Kind::Flag, Wire::Number(number)) => {
                result.insert((*name).to_owned(), (number != 0).into());
            }
            (Kind::TextMap, Wire::Bytes(bytes)) => {
                let entry = message(bytes, &[(1, "key", Kind::Text), (2, "value", Kind::Text)])?;
                let map = result.entry(*name).or_insert_with(|| json!({}));
                map[entry["key"].as_str().unwrap_or_default()] =
                    entry["value"].as_str().unwrap_or_default().into();
            }
            (Kind::Message(fields), Wire::Bytes(bytes)) => {
                result.insert((*name).to_owned(), message(bytes, fields)?);
            }
            _ => return None,
        }
    }
    Some(Value::Object(result))
}

enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// The next field; `Some(None)` at the end, `None` if the bytes are not a valid message.
    #[expect(clippy::option_option, reason = "the end of a message and a broken one are different things")]
    fn next_field(&mut self) -> Option<Option<(u64, Wire<'b>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Wire::Bytes(bytes)
            }
            _ => return None,
        };
        Some(Some((tag >> 3, wire)))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).expect("a short field");
        [&[number << 3 | 2, length], bytes].concat()
    }

    #[test]
    fn an_eviction_is_read() {
        let kind = [field(1, b"policy/v1"), field(2, b"Eviction")].concat();
        let metadata = [field(1, b"web-1"), field(3, b"default")].concat();
        let options = [vec![8, 30], field(2, &field(1, b"some-uid"))].concat();
        let raw = [field(1, &metadata), field(2, &options)].concat();
        let body = [MAGIC.to_vec(), field(1, &kind), field(2, &raw)].concat();
        let expected = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1", "namespace": "default"},
            "deleteOptions": {"gracePeriodSeconds": 30, "preconditions": {"uid": "some-uid"}},
        });
        assert_eq!(decode(&body), Some(expected));
    }

    #[test]
    fn unknown_messages_are_refused() {
        let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
        assert_eq!(decode(&[MAGIC.to_vec(), field(1, &kind), field(2, &[])].concat()), None);
        assert_eq!(decode(b"{}"), None);
    }
}
