//! A set of field paths, and its JSON form `FieldsV1`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A set of paths, as a tree. The keys are path elements in the form of `FieldsV1`: `f:name`, `k:{"name":"x"}`,
/// `v:"x"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// True if the path to this node is itself in the set.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Adds a path.
    pub(crate) fn insert(&mut self, path: &[String]) {
        let mut node = self;
        for element in path {
            node = node.children.entry(element.clone()).or_default();
        }
        node.member = true;
    }

    pub(crate) fn child(&self, element: &str) -> Option<&FieldSet> {
        self.children.get(element)
    }

    pub(crate) fn union(&self, other: &FieldSet) -> FieldSet {
        let mut result = self.clone();
        result.add(other);
        result
    }

    fn add(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, child) in &other.children {
            self.children.entry(element.clone()).or_default().add(child);
        }
    }

    /// The paths that are in both sets.
    pub(crate) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut result = FieldSet { member: self.member && other.member, children: BTreeMap::new() };
        for (element, child) in &self.children {
            if let Some(counterpart) = other.children.get(element) {
                result.keep(element, child.intersection(counterpart));
            }
        }
        result
    }

    /// The paths of this set that are not in the other.
    pub(crate) fn difference(&self, other: &FieldSet) -> FieldSet {
        let mut result = FieldSet { member: self.member && !other.member, children: BTreeMap::new() };
        for (element, child) in &self.children {
            let rest =
                other.children.get(element).map_or_else(|| child.clone(), |gone| child.difference(gone));
            result.keep(element, rest);
        }
        result
    }

    /// The paths of this set that are neither in the other nor below one of its paths.
    pub(crate) fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        if other.member {
            return FieldSet::default();
        }
        let mut result = FieldSet { member: self.member, children: BTreeMap::new() };
        for (element, child) in &self.children {
            let rest = other
                .children
                .get(element)
                .map_or_else(|| child.clone(), |gone| child.recursive_difference(gone));
            result.keep(element, rest);
        }
        result
    }

    fn keep(&mut self, element: &str, child: FieldSet) {
        if !child.is_empty() {
            self.children.insert(element.to_owned(), child);
        }
    }

    /// All paths of the set in the format of conflict messages.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        // Members at this level come before deeper ones.
        for (element, _) in self.children.iter().filter(|(_, child)| child.member) {
            paths.push(format!("{prefix}{}", readable(element)));
        }
        for (element, child) in &self.children {
            child.collect_paths(&format!("{prefix}{}", readable(element)), paths);
        }
    }

    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.children.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            map.insert(element.clone(), child.to_fields_v1());
        }
        Value::Object(map)
    }

    /// Parses `FieldsV1`. The root is never a member; every leaf is.
    pub(crate) fn from_fields_v1(fields: &Value) -> FieldSet {
        let mut root = Self::node_from(fields);
        root.member = false;
        root
    }

    fn node_from(fields: &Value) -> FieldSet {
        let mut node = FieldSet::default();
        for (element, child) in fields.as_object().into_iter().flatten() {
            if element == "." {
                node.member = true;
            } else {
                node.children.insert(element.clone(), Self::node_from(child));
            }
        }
        node.member |= node.children.is_empty();
        node
    }
}

/// A path element in the format of the server's conflict messages: `.name`, `[name="x"]` or `[="x"]`.
fn readable(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Value = serde_json::from_str(keys).unwrap_or_default();
            let parts: Vec<String> =
                keys.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!("[{element}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_v1_survives_the_round_trip() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}},
        });
        assert_eq!(FieldSet::from_fields_v1(&fields).to_fields_v1(), fields);
    }

    #[test]
    fn paths_read_like_the_servers() {
        let fields =
            json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}, "f:replicas": {}}});
        let paths = FieldSet::from_fields_v1(&fields).paths();
        assert_eq!(paths, [".spec.replicas", ".spec.containers[name=\"a\"].image"]);
    }

    #[test]
    fn difference_is_exact_and_its_recursive_form_is_not() {
        let all = FieldSet::from_fields_v1(&json!({"f:a": {".": {}, "f:b": {}}}));
        let parent = FieldSet::from_fields_v1(&json!({"f:a": {}}));
        assert_eq!(all.difference(&parent).to_fields_v1(), json!({"f:a": {"f:b": {}}}));
        assert!(all.recursive_difference(&parent).is_empty());
    }
}
