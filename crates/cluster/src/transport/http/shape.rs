//! The shape of a JSON text, found without parsing it: how many values it has, and how many objects a list.
//!
//! A parser allocates memory for every value before the number of values can be checked: ten million `{}` are 30 MB
//! of text and gigabytes of Nodes.

/// The part of a text that has been read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    in_string: bool,
    escaped: bool,
    depth: usize,
    values: usize,
    items: usize,
}

/// The depth of the elements of a list's `items`: inside the list and its array.
const ITEM_DEPTH: usize = 2;

impl Shape {
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.items += usize::from(*byte == b'{' && self.depth == ITEM_DEPTH);
                    self.values += 1;
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b',' => self.values += 1,
                _ => {}
            }
        }
    }

    /// At least this many values, not more than two for each.
    pub(super) const fn values(&self) -> usize {
        self.values
    }

    /// The objects of a list, if the text is one.
    pub(super) const fn items(&self) -> usize {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn shape(text: &str) -> Shape {
        let mut shape = Shape::default();
        shape.read(text.as_bytes());
        shape
    }

    #[test]
    fn items_of_a_list_are_counted_and_their_parts_are_not() {
        let list = json!({
            "kind": "List",
            "metadata": {"continue": "a{b[c,\\\"{", "x": [{"y": {}}]},
            "items": [{"a": [{}, {}]}, {"b": "\"{"}, {}],
        });
        // The element of `metadata.x` lies deeper than those of `items`.
        assert_eq!(shape(&list.to_string()).items(), 3);
        assert_eq!(shape(r#"{"items":[{},{}"#).items(), 2, "of a part of a text too");
    }

    #[test]
    fn what_is_in_strings_does_not_count() {
        assert_eq!(shape(r#"{"a":"{[,\",{"}"#).values(), 1);
        assert_eq!(shape("[1,2,3]").values(), 3);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::Bool), ".*".prop_map(Value::String)];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
                prop::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn count(value: &Value) -> usize {
        match value {
            Value::Array(values) => 1 + values.iter().map(count).sum::<usize>(),
            Value::Object(values) => 1 + values.values().map(count).sum::<usize>(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    proptest! {
        #[test]
        fn no_text_has_more_values_than_twice_what_was_counted(value in json_value()) {
            let text = value.to_string();
            prop_assert!(count(&value) <= 2 * shape(&text).values() + 1);
        }

        #[test]
        fn a_text_in_pieces_has_the_same_shape(value in json_value(), at in any::<prop::sample::Index>()) {
            let text = value.to_string();
            let (head, tail) = text.as_bytes().split_at(at.index(text.len() + 1));
            let mut pieces = Shape::default();
            pieces.read(head);
            pieces.read(tail);
            let whole = shape(&text);
            prop_assert_eq!((pieces.values(), pieces.items()), (whole.values(), whole.items()));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Shape::default().read(&bytes);
        }
    }
}
