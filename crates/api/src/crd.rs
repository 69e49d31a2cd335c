//! The custom resource definition.

use crate::ScheduledMachine;
use crate::rules;
use crate::schema::validations;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt as _;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Returns the definition of `ScheduledMachine`. It adds the rule for the name of the object, which no Rust type contains,
/// to the schema of the types. Install this definition, not the one of [`kube::CustomResourceExt`].
///
/// # Panics
///
/// Never: a derived definition has a schema, and the rules are constant.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = ScheduledMachine::crd();
    for version in &mut crd.spec.versions {
        let root = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
            .expect("a derived definition has a schema");
        add_name_rule(root);
        // See `schema::without_null`.
        root.properties.iter_mut().flatten().for_each(|(_, part)| part.nullable = None);
        unwrap_descriptions(root);
    }
    crd
}

/// The fields of `ScheduledMachine`: what [`shape`] returns, as a file. The controller compares it with the CRD of the
/// cluster, and contains no generator of schemas for that.
pub const SHAPE: &str = include_str!("shape.json");

/// Returns the schema of [`crd`] as JSON, reduced to the names of fields, the items of lists, and the places where every
/// field is permitted.
///
/// # Panics
///
/// Never: definitions are JSON.
pub fn shape() -> String {
    let crd = serde_json::to_value(crd()).expect("a definition is JSON");
    let shape = shape_of(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    serde_json::to_string_pretty(&shape).expect("a value is JSON") + "\n"
}

fn shape_of(schema: &Value) -> Value {
    const ANY_FIELD: &str = "x-kubernetes-preserve-unknown-fields";
    let mut shape = Map::new();
    if let Some(properties) = schema["properties"].as_object() {
        let fields = properties.iter().map(|(name, field)| (name.clone(), shape_of(field)));
        shape.insert("properties".to_owned(), fields.collect());
    }
    if schema["items"].is_object() {
        shape.insert("items".to_owned(), shape_of(&schema["items"]));
    }
    if schema[ANY_FIELD] == true {
        shape.insert(ANY_FIELD.to_owned(), true.into());
    }
    shape.into()
}

/// Adds the rule for the name. A rule at the root may refer to `metadata.name` only if the schema contains it.
fn add_name_rule(root: &mut JSONSchemaProps) {
    let name = JSONSchemaProps { type_: Some("string".into()), ..JSONSchemaProps::default() };
    let metadata = JSONSchemaProps {
        type_: Some("object".into()),
        properties: Some(BTreeMap::from([("name".into(), name)])),
        ..JSONSchemaProps::default()
    };
    root.properties.get_or_insert_default().insert("metadata".into(), metadata);
    root.x_kubernetes_validations =
        Some(serde_json::from_value(validations(&[rules::NAME])).expect("rules are validation rules"));
}

/// Joins the lines of descriptions, which come from wrapped comments. `kubectl explain` wraps lines itself.
fn unwrap_descriptions(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<String> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    schema.properties.iter_mut().flatten().for_each(|(_, property)| unwrap_descriptions(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        unwrap_descriptions(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> JSONSchemaProps {
        let version = crd().spec.versions.remove(0);
        version.schema.unwrap().open_api_v3_schema.unwrap()
    }

    /// Calls `look` with every schema below `schema` and its path.
    fn walk(schema: &JSONSchemaProps, path: &str, look: &mut impl FnMut(&str, &JSONSchemaProps)) {
        look(path, schema);
        for (name, property) in schema.properties.iter().flatten() {
            walk(property, &format!("{path}.{name}"), look);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            walk(items, &format!("{path}[]"), look);
        }
    }

    #[test]
    fn the_shape_is_current() {
        assert_eq!(SHAPE, shape(), "run `cargo xtask generate`");
    }

    #[test]
    fn every_field_is_described_in_a_sentence_on_one_line() {
        walk(&schema(), "", &mut |path, schema| {
            if path.is_empty() || path.starts_with(".metadata") || path.ends_with(']') {
                return;
            }
            let description = schema.description.as_deref().unwrap_or_default();
            assert!(description.ends_with('.') && !description.contains('\n'), "{path}: {description:?}");
        });
    }

    #[test]
    fn every_list_and_string_of_a_spec_is_bounded() {
        walk(&schema(), "", &mut |path, schema| {
            if !path.starts_with(".spec") {
                return;
            }
            match schema.type_.as_deref() {
                Some("string") => assert!(schema.max_length.is_some() || schema.enum_.is_some(), "{path}"),
                Some("array") => assert!(schema.max_items.is_some(), "{path}"),
                Some("integer") => assert!(schema.minimum.is_some() && schema.maximum.is_some(), "{path}"),
                _ => {}
            }
        });
    }

    #[test]
    fn nothing_may_be_null() {
        walk(&schema(), "", &mut |path, schema| {
            assert_ne!(schema.nullable, Some(true), "{path}");
        });
    }
}
