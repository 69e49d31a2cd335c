//! Plain discovery: one document for each group and each version.

use crate::kinds::{BuiltinKind, Resource};
use crate::state::State;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The verbs of every resource.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same for custom resources, whose handler lists them in a different order.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The verbs of every `status` subresource.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A subresource.
pub(super) struct Subresource {
    pub name: &'static str,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<&'static str>,
}

/// The versions of each group, in order of preference.
pub(super) fn versions(state: &State) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in state.kinds.iter() {
        let versions = groups.entry(&resource.group).or_default();
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
    }
    groups
}

/// Stable before beta before alpha, newer before older.
fn rank(version: &str) -> (u32, u32, u32) {
    let numbers = |text: &str| text.parse::<u32>().unwrap_or(0);
    let rest = version.trim_start_matches('v');
    for (word, stability) in [("beta", 2), ("alpha", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return (stability, numbers(major), numbers(minor));
        }
    }
    (3, numbers(rest), 0)
}

pub(super) fn groups(state: &State) -> Value {
    let groups: Vec<Value> = versions(state)
        .into_iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_entry(group, &versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group_entry(group: &str, versions: &[&str]) -> Value {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": listed, "preferredVersion": listed[0]})
}

pub(super) fn group(state: &State, group: &str) -> Option<Value> {
    let known = versions(state);
    let versions = known.get(group)?;
    let mut entry = group_entry(group, versions);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

pub(super) fn resources(state: &State, group: &str, version: &str) -> Option<Value> {
    let mut entries = Vec::new();
    for resource in state.kinds.iter().filter(|one| one.group == group && one.version == version) {
        entries.push(resource_entry(resource));
        for subresource in subresources(resource) {
            entries.push(subresource_entry(resource, &subresource));
        }
    }
    if entries.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": entries});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

pub(super) fn verbs(resource: &Resource) -> [&'static str; 8] {
    if resource.custom().is_some() { CUSTOM_VERBS } else { VERBS }
}

fn resource_entry(resource: &Arc<Resource>) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    entry
}

fn subresource_entry(resource: &Resource, subresource: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
        "namespaced": resource.namespaced, "kind": subresource.kind, "verbs": subresource.verbs,
    });
    if subresource.group != resource.group {
        entry["group"] = subresource.group.clone().into();
        entry["version"] = subresource.version.clone().into();
    }
    entry
}

pub(super) fn subresources(resource: &Resource) -> Vec<Subresource> {
    let mut found = Vec::new();
    if resource.is(BuiltinKind::Pod) {
        found.push(Subresource { kind: "Binding".to_owned(), ..own(resource, "binding", &["create"]) });
        found.push(Subresource {
            name: "eviction",
            group: "policy".to_owned(),
            version: "v1".to_owned(),
            kind: "Eviction".to_owned(),
            verbs: vec!["create"],
        });
    }
    if resource.is(BuiltinKind::Namespace) {
        found.push(own(resource, "finalize", &["update"]));
    }
    if resource.has_status {
        found.push(own(resource, "status", &STATUS_VERBS));
    }
    found
}

fn own(resource: &Resource, name: &'static str, verbs: &[&'static str]) -> Subresource {
    Subresource {
        name,
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        verbs: verbs.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rank_by_stability_and_age() {
        let mut versions = ["v1alpha1", "v1", "v1beta2", "v2", "v1beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1"]);
    }
}
