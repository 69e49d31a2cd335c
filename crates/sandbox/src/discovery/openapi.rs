//! OpenAPI v3: as much as `kubectl explain`, `apply` and `diff` read.

use crate::error::ApiError;
use crate::kinds::Resource;
use crate::state::State;
use crate::types::{definition_for, definitions};
use serde_json::{Map, Value, json};

/// Where the document of each group and version is.
pub(super) fn index(state: &State) -> Value {
    let mut paths = Map::new();
    for resource in state.kinds.iter() {
        let path = group_version_path(resource);
        // Clients keep a document for as long as its hash is the same; ours changes with every change of the world.
        let url = format!("/openapi/v3/{path}?hash={}", state.store.revision());
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn group_version_path(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

pub(super) fn document(state: &State, path: &str) -> Result<Value, ApiError> {
    let resources: Vec<_> = state.kinds.iter().filter(|one| group_version_path(one) == path).collect();
    if resources.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in resources {
        let name = schema_name(resource);
        let mut schema = match resource.custom() {
            Some(custom) => custom.schema.clone(),
            None => definitions().get(&name).cloned().unwrap_or_default(),
        };
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource)]);
        collect_references(&schema, &mut schemas);
        schemas.insert(name, schema);
        add_paths(resource, &mut paths);
    }
    Ok(json!({
        "openapi": "3.0.0", "info": {"title": "5-Spot sandbox", "version": super::KUBERNETES_VERSION},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

/// The name of a custom kind reverses its group, as the server's does.
fn schema_name(resource: &Resource) -> String {
    if resource.custom().is_none() {
        return definition_for(&resource.group, &resource.version, &resource.kind);
    }
    let mut group: Vec<&str> = resource.group.split('.').collect();
    group.reverse();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn group_version_kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Adds every definition that a schema refers to, and those that they refer to.
fn collect_references(schema: &Value, schemas: &mut Map<String, Value>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(|one| one.rsplit('/').next())
                && !schemas.contains_key(name)
                && let Some(definition) = definitions().get(name)
            {
                schemas.insert(name.to_owned(), definition.clone());
                collect_references(definition, schemas);
            }
            map.values().for_each(|value| collect_references(value, schemas));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_references(value, schemas)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The paths of a resource, with the query parameters by which `kubectl` learns what the server can do.
fn add_paths(resource: &Resource, paths: &mut Map<String, Value>) {
    let root = format!("/{}", group_version_path(resource));
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", resource.plural);
    let kind = group_version_kind(resource);
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        json!({
            "parameters": parameters, "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    paths.insert(
        collection.clone(),
        json!({"get": operation("list", &["labelSelector", "fieldSelector"]), "post": operation("post", &write)}),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation("get", &[]), "put": operation("put", &write),
            "patch": operation("patch", &["dryRun", "fieldManager", "fieldValidation", "force"]),
            "delete": operation("delete", &["dryRun", "propagationPolicy"]),
        }),
    );
}
