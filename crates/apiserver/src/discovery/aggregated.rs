//! The aggregated form of discovery: all groups in one document.

use super::resources::{Subresource, subresources, verbs, versions};
use crate::frontend::{Reply, Route};
use crate::kinds::Resource;
use crate::state::State;
use serde_json::{Value, json};

pub(super) fn document(state: &State, route: &Route, version: &'static str) -> Reply {
    let wants_core = *route == Route::CoreVersions;
    let items: Vec<Value> = versions(state)
        .into_iter()
        .filter(|(group, _)| group.is_empty() == wants_core)
        .map(|(group, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| version_entry(state, group, version)).collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let mut reply = Reply::ok(json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    }));
    // This header tells the client which of its accepted formats the response has.
    reply.content_type = if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    };
    reply
}

fn version_entry(state: &State, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = state
        .kinds
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(|resource| resource_entry(resource))
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn resource_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let below: Vec<Value> = subresources(resource).iter().map(subresource_entry).collect();
    if !below.is_empty() {
        entry["subresources"] = below.into();
    }
    entry
}

fn subresource_entry(subresource: &Subresource) -> Value {
    json!({
        "subresource": subresource.name,
        "responseKind": {
            "group": subresource.group, "version": subresource.version, "kind": subresource.kind,
        },
        "verbs": subresource.verbs,
    })
}
