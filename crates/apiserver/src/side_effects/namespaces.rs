//! Namespaces: the initial content of a new one, and the removal of a deleted one's content.

use crate::object;
use crate::state::State;
use crate::store::{Place, Touched};
use crate::verbs::{DeleteRequest, Propagation, delete_object, put_or_finish};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn follow_up(state: &mut State, touched: &Touched) {
    let Some(namespace) = state.store.at(&touched.place).cloned() else {
        return;
    };
    if object::is_terminating(&namespace) {
        empty(state, &touched.place, &namespace);
    } else {
        create_defaults(state, object::name(&namespace));
    }
}

/// Every namespace has a default service account and the cluster's root certificates.
fn create_defaults(state: &mut State, namespace: &str) {
    for (plural, name, content) in [
        ("serviceaccounts", "default", json!({})),
        (
            "configmaps",
            "kube-root-ca.crt",
            json!({
                "metadata": {"annotations": {
                    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
                }},
                "data": {"ca.crt": ""},
            }),
        ),
    ] {
        let Some(resource) = state.kinds.find("", "v1", plural) else {
            continue;
        };
        if state.find(&resource, namespace, name).is_some() {
            continue;
        }
        let mut value = content;
        value["apiVersion"] = "v1".into();
        value["kind"] = resource.kind.clone().into();
        object::set_meta(&mut value, "namespace", namespace);
        object::set_meta(&mut value, "name", name);
        object::set_meta(&mut value, "uid", state.ids.uid());
        object::set_meta(&mut value, "creationTimestamp", state.clock.stamp());
        state.store.put(&resource.store, value);
    }
}

/// Deletes the content of a terminating namespace, and the namespace when it is empty.
fn empty(state: &mut State, place: &Place, namespace: &Value) {
    let name = object::name(namespace).to_owned();
    let mut remaining = BTreeMap::new();
    let mut finalizers = BTreeMap::new();
    for resource in state.kinds.stored().into_iter().filter(|resource| resource.namespaced) {
        for item in state.store.list(&resource.store, Some(&name)) {
            if !object::is_terminating(&item) {
                let request =
                    DeleteRequest { propagation: Some(Propagation::Background), ..DeleteRequest::default() };
                // Already deleted is fine.
                let _ = delete_object(state, &resource, &name, object::name(&item), &request);
            }
        }
        let left = state.store.list(&resource.store, Some(&name));
        if !left.is_empty() {
            let title = if resource.group.is_empty() {
                format!("{}.", resource.plural)
            } else {
                resource.store.as_str().to_owned()
            };
            remaining.insert(title, left.len());
        }
        for finalizer in left.iter().flat_map(|item| object::finalizers(item)) {
            *finalizers.entry(finalizer.to_owned()).or_insert(0_usize) += 1;
        }
    }
    let holds =
        namespace["spec"]["finalizers"].as_array().is_some_and(|list| list.contains(&json!("kubernetes")));
    if !holds {
        return;
    }
    let mut changed = namespace.clone();
    if remaining.is_empty() {
        let kept: Vec<Value> = namespace["spec"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| *one != "kubernetes")
            .cloned()
            .collect();
        changed["spec"] = if kept.is_empty() { json!({}) } else { json!({"finalizers": kept}) };
    }
    changed["status"]["conditions"] = conditions(namespace, &remaining, &finalizers, &state.clock.stamp());
    if changed == *namespace {
        return;
    }
    if let Some(resource) = state.kinds.by_store(&place.store) {
        put_or_finish(state, &resource, changed);
    }
}

fn conditions(
    namespace: &Value,
    remaining: &BTreeMap<String, usize>,
    finalizers: &BTreeMap<String, usize>,
    now: &str,
) -> Value {
    let listed = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        parts.join(", ")
    };
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        if remaining.is_empty() {
            (
                "NamespaceContentRemaining",
                false,
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            )
        } else {
            (
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", listed(remaining, "has")),
            )
        },
        if finalizers.is_empty() {
            (
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            (
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    listed(finalizers, "in")
                ),
            )
        },
    ];
    let previous = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let row = |(kind, is_true, reason, message): (&str, bool, &str, String)| {
        let status = if is_true { "True" } else { "False" };
        let since = previous.iter().find(|one| one["type"] == kind && one["status"] == status);
        let since = since.map_or_else(|| json!(now), |one| one["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
    };
    rows.into_iter().map(row).collect()
}

/// Removes a terminating namespace after its last object.
pub(super) fn after_removal(state: &mut State, touched: &Touched) {
    let name = &touched.place.key.namespace;
    let Some(namespaces) = state.kinds.find("", "v1", "namespaces").filter(|_| !name.is_empty()) else {
        return;
    };
    if let Some(namespace) = state.find(&namespaces, "", name).cloned()
        && object::is_terminating(&namespace)
    {
        let place = Place { store: namespaces.store.clone(), key: crate::store::Key::of(&namespace) };
        empty(state, &place, &namespace);
    }
}
