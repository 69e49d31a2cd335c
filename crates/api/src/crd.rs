//! The custom resource definition, as it is installed.

use crate::ScheduledMachine;
use crate::rules;
use crate::schema::validations;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt as _;
use std::collections::BTreeMap;

/// The definition of `ScheduledMachine`: what the types say, and the bound on the object's name, which is
/// part of no type of ours. This one is installed, not the one of [`kube::CustomResourceExt`].
///
/// # Panics
///
/// Never: the schema is there, and its rules are plain data.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = ScheduledMachine::crd();
    for version in &mut crd.spec.versions {
        let root = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
            .expect("a derived definition has a schema");
        bound_the_name(root);
        // A status that is `null` would be a third kind of nothing, see `schema::without_null`.
        root.properties.iter_mut().flatten().for_each(|(_, part)| part.nullable = None);
        unwrap_descriptions(root);
    }
    crd
}

/// A rule at the root may blame `metadata.name` only if the schema mentions it.
fn bound_the_name(root: &mut JSONSchemaProps) {
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

/// Descriptions come from comments that are broken into lines. `kubectl explain` breaks lines by itself.
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
