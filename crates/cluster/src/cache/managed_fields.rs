//! Drift: whether the fields that we have applied are still there.
//!
//! The API server records which fields belong to which writer. Whoever changes a field of ours takes it from us, so
//! the record of our fields stays the same exactly as long as nobody has changed any of them; what a provider writes
//! into its own object does not touch it. The record is kept as a [`Digest`]. Where none is known yet, after a
//! restart, what we would apply is compared with what is there.

use five_spot_api::names::FIELD_MANAGER;
use five_spot_core::Fingerprint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Map, Value};

/// The fields of an object that are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(Option<Fingerprint>);

impl Digest {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        Self(our_fields(object).map(Fingerprint::of))
    }
}

fn our_fields(object: &DynamicObject) -> Option<&Value> {
    let is_ours = |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    };
    object.managed_fields().iter().find(is_ours)?.fields_v1.as_ref().map(|fields| &fields.0)
}

/// True if a field of `desired` is neither ours any more nor as we would write it.
///
/// A field that is ours and has another value was changed on its way in, by defaulting or by a webhook: writing it
/// again would give the same.
pub(crate) fn has_drifted(desired: &Value, live: &DynamicObject) -> bool {
    let Ok(current) = serde_json::to_value(live) else {
        return true;
    };
    let nothing = Value::Object(Map::new());
    let owned = our_fields(live).unwrap_or(&nothing);
    let parts = [
        ("/metadata/labels", ["f:metadata", "f:labels"].as_slice()),
        ("/metadata/annotations", &["f:metadata", "f:annotations"]),
        ("/metadata/ownerReferences", &["f:metadata", "f:ownerReferences"]),
        ("/spec", &["f:spec"]),
    ];
    parts.iter().any(|(pointer, path)| {
        let owned = path.iter().try_fold(owned, |fields, step| fields.get(step));
        desired
            .pointer(pointer)
            .is_some_and(|wanted| differs(wanted, current.pointer(pointer), Owned::of(owned)))
    })
}

/// The part of a field that is ours.
#[derive(Clone, Copy)]
enum Owned<'a> {
    Nothing,
    Parts(&'a Map<String, Value>),
    All,
}

impl<'a> Owned<'a> {
    fn of(fields: Option<&'a Value>) -> Self {
        match fields.and_then(Value::as_object) {
            None => Self::Nothing,
            Some(parts) if parts.is_empty() => Self::All,
            Some(parts) => Self::Parts(parts),
        }
    }

    fn part(self, name: &str) -> Self {
        match self {
            Self::Parts(parts) => Self::of(parts.get(name)),
            Self::Nothing => Self::Nothing,
            Self::All => Self::All,
        }
    }
}

fn differs(desired: &Value, live: Option<&Value>, owned: Owned<'_>) -> bool {
    match (desired, owned) {
        (_, Owned::All) => false,
        (Value::Object(fields), _) => fields.iter().any(|(name, wanted)| {
            let current = live.and_then(|live| live.get(name));
            differs(wanted, current, owned.part(&format!("f:{name}")))
        }),
        (Value::Array(items), Owned::Parts(parts)) => {
            let current = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            items.iter().any(|wanted| item_differs(wanted, current, parts))
        }
        // Any part of a plain value is all of it.
        (_, Owned::Parts(_)) => false,
        (_, Owned::Nothing) => live != Some(desired),
    }
}

/// An item of a list that several writers share: it is identified by its key fields, or by its value.
fn item_differs(wanted: &Value, current: &[Value], parts: &Map<String, Value>) -> bool {
    for (part, fields) in parts {
        if let Some(value) = part.strip_prefix("v:")
            && serde_json::from_str::<Value>(value).is_ok_and(|value| value == *wanted)
        {
            return false;
        }
        if let Some(key) = part.strip_prefix("k:")
            && let Ok(Value::Object(key)) = serde_json::from_str::<Value>(key)
        {
            let has_key = |item: &Value| key.iter().all(|(name, value)| item.get(name) == Some(value));
            if has_key(wanted) {
                let live = current.iter().find(|item| has_key(item));
                return differs(wanted, live, Owned::of(Some(fields)));
            }
        }
    }
    !current.contains(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(spec: &Value, owned: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {
                "name": "a", "labels": {"ours": "x", "theirs": "y"},
                "managedFields": [
                    {"manager": "someone", "operation": "Update", "fieldsV1": {"f:spec": {"f:other": {}}}},
                    {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": owned},
                ],
            },
            "spec": spec,
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(desired: &Value, spec: &Value, owned: &Value, drifted: bool) {
        let desired = json!({"spec": desired});
        assert_eq!(has_drifted(&desired, &live(spec, &json!({"f:spec": owned}))), drifted);
    }

    #[test]
    fn a_field_that_was_taken_from_us_and_changed_has_drifted() {
        check(&json!({"port": 22}), &json!({"port": 23}), &json!({"f:address": {}}), true);
        check(&json!({"port": 22}), &json!({}), &json!({"f:address": {}}), true);
    }

    #[test]
    fn a_field_as_we_write_it_has_not_drifted_whoever_owns_it() {
        check(
            &json!({"port": 22}),
            &json!({"port": 22, "providerID": "p"}),
            &json!({"f:address": {}}),
            false,
        );
    }

    #[test]
    fn a_field_that_the_server_normalizes_has_not_drifted() {
        check(&json!({"size": "1024Mi"}), &json!({"size": "1Gi"}), &json!({"f:size": {}}), false);
    }

    #[test]
    fn whole_lists_and_shared_lists() {
        check(&json!({"files": ["a"]}), &json!({"files": ["b"]}), &json!({"f:files": {}}), false);
        check(&json!({"files": ["a"]}), &json!({"files": ["b"]}), &json!({"f:port": {}}), true);
        let key = json!({"f:files": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}});
        check(
            &json!({"files": [{"name": "a", "mode": 1}]}),
            &json!({"files": [{"name": "a", "mode": 2}]}),
            &key,
            true,
        );
        check(
            &json!({"files": [{"name": "a"}]}),
            &json!({"files": [{"name": "z"}, {"name": "a"}]}),
            &key,
            false,
        );
        check(&json!({"files": [{"name": "b"}]}), &json!({"files": [{"name": "a"}]}), &key, true);
        check(&json!({"set": ["a"]}), &json!({"set": ["a", "b"]}), &json!({"f:set": {"v:\"a\"": {}}}), false);
        check(&json!({"set": ["c"]}), &json!({"set": ["a", "b"]}), &json!({"f:set": {"v:\"a\"": {}}}), true);
    }

    #[test]
    fn metadata_counts_and_names_do_not() {
        let object = live(&json!({}), &json!({"f:metadata": {"f:labels": {"f:ours": {}}}}));
        assert!(!has_drifted(
            &json!({"kind": "Other", "metadata": {"name": "b", "labels": {"ours": "z"}}}),
            &object
        ));
        assert!(has_drifted(&json!({"metadata": {"labels": {"missing": "z"}}}), &object));
        assert!(has_drifted(&json!({"metadata": {"ownerReferences": [{"uid": "1"}]}}), &object));
    }

    #[test]
    fn the_digest_is_of_our_own_fields_alone() {
        let before = live(&json!({"port": 22}), &json!({"f:spec": {"f:port": {}}}));
        let mut written = before.clone();
        written.data["spec"]["providerID"] = json!("p");
        written.metadata.managed_fields.as_mut().unwrap()[0].time = None;
        assert_eq!(Digest::of(&before), Digest::of(&written));
        let taken = live(&json!({"port": 23}), &json!({"f:spec": {"f:address": {}}}));
        assert_ne!(Digest::of(&before), Digest::of(&taken));
    }
}
