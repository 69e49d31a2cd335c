//! Resources that are defined by a CRD.

use super::{Definition, Resource, StoreId};
use five_spot_schema::Validator;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use std::sync::Arc;

/// The definition of a resource by one version of a CRD.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// The schema, including `apiVersion`, `kind` and `metadata`.
    pub schema: Value,
    /// Defaults, pruning and validation; absent if the schema could not be compiled, in which case all writes
    /// are refused.
    pub validator: Option<Validator>,
    /// The version as in the CRD: columns, selectable fields, subresources.
    pub version: Value,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// True if the versions differ only in their names.
    pub trivial_conversion: bool,
}

/// One resource for every served version.
pub(super) fn resources(crd: &Value) -> Vec<Resource> {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage = versions.iter().find(|version| version["storage"] == true);
    let storage_version = storage.and_then(|version| version["name"].as_str()).unwrap_or_default();
    let typed: Option<CustomResourceDefinition> = serde_json::from_value(crd.clone()).ok();
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let custom = CustomKind {
                schema: complete_schema(&version["schema"]["openAPIV3Schema"]),
                validator: typed.as_ref().and_then(|crd| Validator::for_crd(crd, name).ok()),
                version: version.clone(),
                storage_version: storage_version.to_owned(),
                trivial_conversion: spec["conversion"]["strategy"].as_str().unwrap_or("None") == "None",
            };
            resource(crd, name, custom)
        })
        .collect()
}

fn resource(crd: &Value, version: &str, custom: CustomKind) -> Resource {
    let spec = &crd["spec"];
    // The names as accepted by the server. They are also in the spec, but have defaults only here.
    let names = &crd["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    Resource {
        store: StoreId::new(&group, &plural),
        version: version.to_owned(),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status: custom.version["subresources"]["status"].is_object(),
        group,
        plural,
        definition: Definition::Custom(Arc::new(custom)),
    }
}

/// Adds the fields that every object has and that the schema of a CRD omits.
fn complete_schema(schema: &Value) -> Value {
    let mut complete = schema.clone();
    if !complete.is_object() {
        complete = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    for field in ["apiVersion", "kind"] {
        complete["properties"][field] = json!({"type": "string"});
    }
    complete["properties"]["metadata"] =
        json!({"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
    complete
}
