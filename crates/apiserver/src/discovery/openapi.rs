//! OpenAPI v3, as far as `kubectl explain`, `apply` and `diff` need it.

use crate::error::ApiError;
use crate::kinds::Resource;
use crate::state::State;
use crate::types::{definition_for, definitions};
use serde_json::{Map, Value, json};

/// The path of the document of each group and version.
pub(super) fn index(state: &State) -> Value {
    let mut paths = Map::new();
    for resource in state.kinds.iter() {
        let path = group_version_path(resource);
        // Clients cache a document until its hash changes; this one changes with every change of the state.
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
            Some(custom) => with_type_and_metadata(custom.schema.clone()),
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

/// Adds `apiVersion`, `kind` and `metadata` to a schema, with the same descriptions for every kind.
fn with_type_and_metadata(mut schema: Value) -> Value {
    const CONVENTIONS: &str =
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    for (field, text) in [
        (
            "apiVersion",
            format!(
                "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
                 recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
                 {CONVENTIONS}#resources"
            ),
        ),
        (
            "kind",
            format!(
                "Kind is a string value representing the REST resource this object represents. Servers may infer this \
                 from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
                 {CONVENTIONS}#types-kinds"
            ),
        ),
    ] {
        schema["properties"][field] = json!({"type": "string", "description": text});
    }
    schema["properties"]["metadata"] = json!({
        "description": format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"),
        "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
    });
    schema
}

/// OpenAPI v2 in the only format that `kubectl` reads, without definitions: `kubectl` then leaves validation
/// to the server. It requests this document for kinds that are not in v3, such as `List`.
pub(super) fn version_2() -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).expect("short texts");
        [&[number << 3 | 2, length], content].concat()
    };
    let info = [field(1, b"5-Spot sandbox"), field(2, super::KUBERNETES_VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info)].concat()
}

/// The definition name of a custom kind has its group reversed, as on a real server.
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

/// Adds every definition that a schema refers to, recursively.
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

/// The paths of a resource, with the query parameters by which `kubectl` detects what the server supports.
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
