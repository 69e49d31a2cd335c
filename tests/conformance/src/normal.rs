//! Normalises responses: replaces everything that differs between any two servers.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Numbers UIDs and versions in the order of their first appearance in a case, so that equal values stay
/// equal.
#[derive(Debug, Default)]
pub(super) struct Normaliser {
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
}

/// The field manager of the controllers of a real cluster.
const CONTROLLERS: &str = "kube-controller-manager";

impl Normaliser {
    /// The normalised body of a response.
    pub(super) fn normalise(&mut self, mut value: Value, keeps_messages: bool) -> Value {
        if value["kind"] == "Status" {
            return self.status(value, keeps_messages);
        }
        if value["items"].is_array() || value["rows"].is_array() {
            Self::list_metadata(&mut value);
        }
        if let Some(events) = value.get_mut("events").and_then(Value::as_array_mut) {
            // A server sends bookmarks at any time; only the one at the end of the initial events is
            // guaranteed.
            events.retain(|event| {
                event["type"] != "BOOKMARK" || event["object"]["metadata"]["annotations"].is_object()
            });
        }
        if let Some(resources) = value.get_mut("resources").and_then(Value::as_array_mut) {
            // CRDs are discovered in no fixed order, and the hash depends on the server.
            resources.sort_by_key(|resource| resource["name"].to_string());
            resources.iter_mut().filter_map(Value::as_object_mut).for_each(|one| {
                one.remove("storageVersionHash");
            });
        }
        self.walk(&mut value, "");
        value
    }

    fn status(&mut self, mut status: Value, keeps_messages: bool) -> Value {
        if let Some(map) = status.as_object_mut()
            && !keeps_messages
        {
            map.remove("message");
        }
        if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
            if !keeps_messages {
                for cause in causes.iter_mut().filter_map(Value::as_object_mut) {
                    cause.remove("message");
                }
            }
            // Validation reports errors in no guaranteed order, and some of them twice.
            causes.sort_by_key(Value::to_string);
            causes.dedup();
        }
        self.walk(&mut status, "");
        status
    }

    /// The version of a list is that of the whole store, which other clients change too.
    fn list_metadata(list: &mut Value) {
        let Some(metadata) = list.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        for (field, shown) in [("resourceVersion", "VERSION"), ("continue", "TOKEN")] {
            if metadata.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
                metadata.insert(field.to_owned(), shown.into());
            }
        }
    }

    fn walk(&mut self, value: &mut Value, field: &str) {
        match value {
            Value::Object(map) => {
                if let Some(generated) = map.get("generateName").and_then(Value::as_str).map(str::to_owned)
                    && map
                        .get("name")
                        .and_then(Value::as_str)
                        .is_some_and(|name| name.starts_with(&generated))
                {
                    map.insert("name".to_owned(), format!("{generated}*").into());
                }
                if field == "metadata" {
                    Self::managed_fields(map);
                }
                let keys: Vec<(String, String)> =
                    map.keys().filter_map(|key| self.inside(key).map(|shown| (key.clone(), shown))).collect();
                for (key, shown) in keys {
                    if let Some(child) = map.remove(&key) {
                        map.insert(shown, child);
                    }
                }
                for (name, child) in map.iter_mut() {
                    self.walk(child, name);
                }
            }
            Value::Array(list) => {
                for item in list {
                    self.walk(item, field);
                }
            }
            Value::String(text) => {
                if let Some(comparable) = self.text(text, field) {
                    *text = comparable;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes the entries of the cluster's own controllers, which no client caused.
    fn managed_fields(metadata: &mut serde_json::Map<String, Value>) {
        let Some(Value::Array(entries)) = metadata.get_mut("managedFields") else {
            return;
        };
        entries.retain(|entry| entry["manager"] != CONTROLLERS);
        // Entries are sorted by time first, which is random within a second.
        entries.sort_by_key(|entry| {
            format!(
                "{}{}{}{}",
                entry["operation"], entry["manager"], entry["apiVersion"], entry["subresource"]
            )
        });
        if entries.is_empty() {
            metadata.remove("managedFields");
        }
    }

    fn text(&mut self, text: &str, field: &str) -> Option<String> {
        if field == "uid" || is_uuid(text) {
            let next = self.uids.len() + 1;
            return Some(format!("UID-{}", self.uids.entry(text.to_owned()).or_insert(next)));
        }
        if field == "resourceVersion" && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            let next = self.versions.len() + 1;
            return Some(format!("VERSION-{}", self.versions.entry(text.to_owned()).or_insert(next)));
        }
        if is_time(text) {
            return Some("TIME".to_owned());
        }
        if field == "cells" && is_age(text) {
            return Some("AGE".to_owned());
        }
        if text.starts_with("kube-api-access-") {
            return Some("kube-api-access-*".to_owned());
        }
        self.inside(text)
    }

    /// Replaces UIDs and times inside a message.
    fn inside(&mut self, text: &str) -> Option<String> {
        let mut comparable = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(uid) = rest.get(..36).filter(|part| is_uuid(part)) {
                let next = self.uids.len() + 1;
                comparable.push_str("UID-");
                comparable.push_str(&self.uids.entry(uid.to_owned()).or_insert(next).to_string());
                rest = &rest[36..];
            } else if rest.get(..20).is_some_and(is_time) {
                comparable.push_str("TIME");
                rest = &rest[20..];
            } else {
                comparable.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        (comparable != text).then_some(comparable)
    }
}

/// Ages such as `45s` or `3m20s`, which depend on the time of the request.
fn is_age(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"smhdy".contains(&byte))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[4] == b'-' && text.parse::<jiff::Timestamp>().is_ok()
}

/// Removes the parts of a value that a pointer selects. `*` matches any element.
pub(super) fn remove(value: &mut Value, pointer: &str) {
    let parts: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    remove_parts(value, &parts);
}

fn remove_parts(value: &mut Value, parts: &[&str]) {
    let Some((first, rest)) = parts.split_first() else {
        return;
    };
    let name = first.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(map) if rest.is_empty() && name != "*" => {
            map.remove(&name);
        }
        Value::Object(map) if name == "*" => map.values_mut().for_each(|child| remove_parts(child, rest)),
        Value::Object(map) => {
            if let Some(child) = map.get_mut(&name) {
                remove_parts(child, rest);
            }
        }
        Value::Array(list) if name == "*" => list.iter_mut().for_each(|child| remove_parts(child, rest)),
        Value::Array(list) => {
            if let Some(child) = name.parse::<usize>().ok().and_then(|index| list.get_mut(index)) {
                if rest.is_empty() {
                    *child = json!("REMOVED");
                } else {
                    remove_parts(child, rest);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_stay_equal_and_others_do_not() {
        let mut normaliser = Normaliser::default();
        let uid = "0740c787-94ab-4823-a03e-39757bb4859b";
        let value = json!({
            "metadata": {"uid": uid, "resourceVersion": "12", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "other": {"uid": uid}, "text": "not a time",
        });
        let first = normaliser.normalise(value, false);
        assert_eq!(first["metadata"]["uid"], first["other"]["uid"]);
        assert_eq!(first["metadata"]["resourceVersion"], "VERSION-1");
        assert_eq!(first["metadata"]["creationTimestamp"], "TIME");
        let second = normaliser.normalise(json!({"metadata": {"resourceVersion": "13"}}), false);
        assert_eq!(second["metadata"]["resourceVersion"], "VERSION-2");
    }

    #[test]
    fn pointers_take_parts_out() {
        let mut value = json!({"items": [{"a": 1, "b": 2}, {"a": 3}]});
        remove(&mut value, "/items/*/a");
        assert_eq!(value, json!({"items": [{"b": 2}, {}]}));
    }
}
