//! The custom resource definition, as it is installed.

use crate::ScheduledMachine;
use crate::rules;
use crate::schema::validations;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt as _;
use std::collections::BTreeMap;

/// The definition of `ScheduledMachine`: what the types say, and the bound on the object's name, which is
/// part of no type of ours.
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
