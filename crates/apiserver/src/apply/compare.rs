//! The differences between two versions of an object, by field.

use super::extract::{field_element, item_element};
use super::field_set::FieldSet;
use crate::types::{ListKind, TypeRef};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields in which two objects differ.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    /// Removes everything at or below the given paths.
    pub(super) fn without(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }
}

pub(super) fn compare(old: &Value, new: &Value, of: TypeRef<'_>) -> Comparison {
    let mut comparison = Comparison::default();
    let mut walker = Walker { path: Vec::new(), comparison: &mut comparison };
    walker.maps(old.as_object(), new.as_object(), of);
    comparison
}

struct Walker<'c> {
    path: Vec<String>,
    comparison: &'c mut Comparison,
}

impl Walker<'_> {
    fn descend(&mut self, element: String, old: Option<&Value>, new: Option<&Value>, of: TypeRef<'_>) {
        self.path.push(element);
        self.values(old, new, of);
        self.path.pop();
    }

    fn values(&mut self, old: Option<&Value>, new: Option<&Value>, of: TypeRef<'_>) {
        match (old, new) {
            (None, None) => {}
            // A null is an empty container.
            (Some(Value::Object(_)), Some(Value::Object(_) | Value::Null) | None)
            | (Some(Value::Null) | None, Some(Value::Object(_))) => {
                self.containers(old, new, of, Self::objects);
            }
            (Some(Value::Array(_)), Some(Value::Array(_) | Value::Null) | None)
            | (Some(Value::Null) | None, Some(Value::Array(_))) => {
                self.containers(old, new, of, Self::lists);
            }
            _ => self.leaf(old, new),
        }
    }

    /// Compares the contents of two containers; an added or removed container counts itself.
    fn containers(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        of: TypeRef<'_>,
        inside: impl FnOnce(&mut Self, Option<&Value>, Option<&Value>, TypeRef<'_>),
    ) {
        let empty = |value: Option<&Value>| match value {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => true,
        };
        let is_list = [old, new].iter().any(|side| matches!(side, Some(Value::Array(_))));
        let is_atomic = if is_list { of.list_kind() == ListKind::Atomic } else { of.is_atomic_map() };
        if is_atomic || (empty(old) && empty(new)) {
            self.leaf(old, new);
            return;
        }
        inside(self, old, new, of);
        match (old, new) {
            (None, Some(_)) => self.comparison.added.insert(&self.path),
            (Some(_), None) => self.comparison.removed.insert(&self.path),
            _ => {}
        }
    }

    fn objects(&mut self, old: Option<&Value>, new: Option<&Value>, of: TypeRef<'_>) {
        self.maps(old.and_then(Value::as_object), new.and_then(Value::as_object), of);
    }

    fn maps(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>, of: TypeRef<'_>) {
        let mut names: Vec<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (before, after) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            // Most parts of an object are equal.
            if before != after {
                self.descend(field_element(name), before, after, of.field_or_unknown(name));
            }
        }
    }

    fn lists(&mut self, old: Option<&Value>, new: Option<&Value>, of: TypeRef<'_>) {
        let (before, after) = (by_element(old, of), by_element(new, of));
        let mut elements: Vec<&String> = before.keys().chain(after.keys()).collect();
        elements.sort_unstable();
        elements.dedup();
        for element in elements {
            let (before, after) = (before.get(element).copied(), after.get(element).copied());
            self.descend(element.clone(), before, after, of.items());
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(_)) => self.comparison.added.insert(&self.path),
            (Some(_), None) => self.comparison.removed.insert(&self.path),
            (Some(before), Some(after)) if before != after => self.comparison.modified.insert(&self.path),
            _ => {}
        }
    }
}

/// The items of a list by their identity.
fn by_element<'v>(list: Option<&'v Value>, of: TypeRef<'_>) -> BTreeMap<String, &'v Value> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| (item_element(item, of), item)).collect()
}
