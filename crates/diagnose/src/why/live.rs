//! An object as the API server returned it. Nothing about its content is taken for granted.

use super::facts::ObjectId;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A view of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live<'a>(pub(super) &'a Value);

/// A condition of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) since: Option<Timestamp>,
}

/// An owner reference of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnerReference<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) blocks: bool,
}

impl<'a> Live<'a> {
    /// The text at a path; empty if there is none.
    pub(super) fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The time at a path.
    pub(super) fn time(self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).parse().ok()
    }

    /// The elements at a path.
    pub(super) fn list(self, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }

    pub(super) fn group(self) -> &'a str {
        group_of(self.text("/apiVersion"))
    }

    pub(super) fn id(self) -> ObjectId {
        ObjectId {
            group: self.group().to_owned(),
            kind: self.text("/kind").to_owned(),
            namespace: Some(self.text("/metadata/namespace").to_owned()).filter(|it| !it.is_empty()),
            name: self.text("/metadata/name").to_owned(),
        }
    }

    pub(super) fn uid(self) -> &'a str {
        self.text("/metadata/uid")
    }

    pub(super) fn namespace(self) -> &'a str {
        self.text("/metadata/namespace")
    }

    pub(super) fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    /// True if its deletion was requested.
    pub(super) fn is_deleting(self) -> bool {
        self.0.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null())
    }

    /// The time at which it should be gone: the request, and for pods the grace period.
    pub(super) fn deletion_time(self) -> Option<Timestamp> {
        self.time("/metadata/deletionTimestamp")
    }

    /// The time at which its deletion was requested.
    pub(super) fn requested_at(self) -> Option<Timestamp> {
        let grace =
            self.0.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        // A pod may ask for years.
        self.deletion_time()?.checked_sub(SignedDuration::from_secs(grace)).ok()
    }

    pub(super) fn finalizers(self) -> Vec<&'a str> {
        self.list("/metadata/finalizers").filter_map(Value::as_str).collect()
    }

    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.0.pointer("/metadata/annotations").and_then(Value::as_object);
        all.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    pub(super) fn has_annotation(self, key: &str) -> bool {
        self.annotations().any(|(name, _)| name == key)
    }

    pub(super) fn owners(self) -> Vec<OwnerReference<'a>> {
        let owners = self.list("/metadata/ownerReferences").map(|value| {
            let reference = Live(value);
            OwnerReference {
                api_version: reference.text("/apiVersion"),
                kind: reference.text("/kind"),
                name: reference.text("/name"),
                uid: reference.text("/uid"),
                blocks: value["blockOwnerDeletion"].as_bool().unwrap_or_default(),
            }
        });
        owners.collect()
    }

    /// The conditions in its status, with those that Cluster API keeps in `status.v1beta2`.
    pub(super) fn conditions(self) -> Vec<Condition<'a>> {
        let all =
            ["/status/v1beta2/conditions", "/status/conditions"].into_iter().flat_map(|path| self.list(path));
        let read = all.map(|value| {
            let condition = Live(value);
            Condition {
                kind: condition.text("/type"),
                status: condition.text("/status"),
                reason: condition.text("/reason"),
                message: condition.text("/message"),
                since: condition.time("/lastTransitionTime"),
            }
        });
        read.collect()
    }

    pub(super) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        self.conditions().into_iter().find(|condition| condition.kind == kind)
    }

    /// The latest change that the object itself shows, and who made it.
    pub(super) fn last_change(self) -> Option<(Timestamp, &'a str)> {
        let managed = self.list("/metadata/managedFields").filter_map(|entry| {
            let entry = Live(entry);
            Some((entry.time("/time")?, entry.text("/manager")))
        });
        let conditions = self.conditions().into_iter().filter_map(|condition| Some((condition.since?, "")));
        managed.chain(conditions).max_by_key(|(time, _)| *time)
    }

    /// The field manager that owns a finalizer.
    pub(super) fn manager_of(self, finalizer: &str) -> Option<&'a str> {
        let element = format!("v:{}", Value::from(finalizer));
        let finalizers = |entry: &'a Value| entry.pointer("/fieldsV1/f:metadata/f:finalizers");
        let owner = self
            .list("/metadata/managedFields")
            .find(|entry| finalizers(entry).is_some_and(|fields| fields.get(&element).is_some()));
        owner.and_then(|entry| entry["manager"].as_str()).filter(|manager| !manager.is_empty())
    }
}

impl OwnerReference<'_> {
    /// The owner of an object in a namespace. If its kind is cluster-scoped, the namespace is ignored when it is read.
    pub(super) fn id(&self, namespace: &str) -> ObjectId {
        ObjectId {
            group: group_of(self.api_version).to_owned(),
            kind: self.kind.to_owned(),
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            name: self.name.to_owned(),
        }
    }
}

/// The group of an `apiVersion`.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn garbage_is_read_as_nothing() {
        for garbage in [json!(null), json!([]), json!({"metadata": 7, "status": {"conditions": {"a": 1}}})] {
            let live = Live(&garbage);
            assert!(live.finalizers().is_empty() && live.owners().is_empty() && live.conditions().is_empty());
            assert!(!live.is_deleting() && live.last_change().is_none());
        }
        let odd = json!({"metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": i64::MAX,
            "finalizers": [7, null, "a/b"],
        }});
        assert_eq!(Live(&odd).requested_at(), None);
        assert_eq!(Live(&odd).finalizers(), ["a/b"]);
    }

    #[test]
    fn the_manager_of_a_finalizer_is_in_the_managed_fields() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
            {"manager": "widgetd", "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, "v:\"x.io/a\"": {}}}}},
        ]}});
        assert_eq!(Live(&object).manager_of("x.io/a"), Some("widgetd"));
        assert_eq!(Live(&object).manager_of("x.io/b"), None);
    }
}
