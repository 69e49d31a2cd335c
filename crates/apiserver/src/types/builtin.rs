//! The schemas of the built-in kinds: fields from `k8s-openapi`, merge keys from the tables below.

use k8s_openapi::api::{apps, coordination, core, events, policy};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Lists of built-in types that merge by key or as a set: type, field, keys (none: a set), and whether a strategic
/// merge patch merges them too (by the first key). Every other list is one value.
const MERGED_LISTS: &[(&str, &str, &[&str], bool)] = &[
    ("apps.v1.DaemonSetStatus", "conditions", &["type"], true),
    ("apps.v1.DeploymentStatus", "conditions", &["type"], true),
    ("apps.v1.ReplicaSetStatus", "conditions", &["type"], true),
    ("core.v1.Container", "env", &["name"], true),
    ("core.v1.Container", "ports", &["containerPort", "protocol"], true),
    ("core.v1.Container", "volumeDevices", &["devicePath"], true),
    ("core.v1.Container", "volumeMounts", &["mountPath"], true),
    ("core.v1.ContainerStatus", "allocatedResourcesStatus", &["name"], true),
    ("core.v1.ContainerStatus", "volumeMounts", &["mountPath"], true),
    ("core.v1.EphemeralContainer", "env", &["name"], true),
    ("core.v1.EphemeralContainer", "ports", &["containerPort", "protocol"], true),
    ("core.v1.EphemeralContainer", "volumeDevices", &["devicePath"], true),
    ("core.v1.EphemeralContainer", "volumeMounts", &["mountPath"], true),
    ("core.v1.NamespaceStatus", "conditions", &["type"], true),
    ("core.v1.NodeSpec", "podCIDRs", &[], true),
    ("core.v1.NodeStatus", "addresses", &["type"], true),
    ("core.v1.NodeStatus", "conditions", &["type"], true),
    ("core.v1.PodSpec", "containers", &["name"], true),
    ("core.v1.PodSpec", "ephemeralContainers", &["name"], true),
    ("core.v1.PodSpec", "hostAliases", &["ip"], true),
    ("core.v1.PodSpec", "imagePullSecrets", &["name"], true),
    ("core.v1.PodSpec", "initContainers", &["name"], true),
    ("core.v1.PodSpec", "resourceClaims", &["name"], true),
    ("core.v1.PodSpec", "schedulingGates", &["name"], true),
    ("core.v1.PodSpec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"], true),
    ("core.v1.PodSpec", "volumes", &["name"], true),
    ("core.v1.PodStatus", "conditions", &["type"], true),
    ("core.v1.PodStatus", "podIPs", &["ip"], true),
    ("core.v1.PodStatus", "resourceClaimStatuses", &["name"], true),
    ("core.v1.ResourceRequirements", "claims", &["name"], false),
    ("core.v1.ServiceAccount", "secrets", &["name"], true),
    ("policy.v1.PodDisruptionBudgetStatus", "conditions", &["type"], true),
    ("apiextensions.v1.CustomResourceDefinitionStatus", "conditions", &["type"], false),
    ("apiextensions.v1.JSONSchemaProps", "x-kubernetes-validations", &["rule"], true),
    ("meta.v1.ObjectMeta", "finalizers", &[], true),
    ("meta.v1.ObjectMeta", "ownerReferences", &["uid"], true),
];

/// Fields from whose elements a strategic merge patch removes everything that it does not list
/// (`retainKeys`).
const RETAINED_KEYS: &[(&str, &str)] = &[
    ("apps.v1.DeploymentSpec", "strategy"),
    ("core.v1.PodSpec", "resourceClaims"),
    ("core.v1.PodSpec", "volumes"),
    ("core.v1.PodStatus", "resourceClaimStatuses"),
];

/// Atomic types: they are one value for server-side apply.
const ATOMIC_TYPES: &[&str] = &[
    "core.v1.ConfigMapKeySelector",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.SecretKeySelector",
    "core.v1.TypedLocalObjectReference",
    "meta.v1.LabelSelector",
    "meta.v1.OwnerReference",
];

/// All type definitions that the built-in kinds need, by their OpenAPI name.
pub(crate) fn definitions() -> &'static Map<String, Value> {
    static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(build);
    &DEFINITIONS
}

/// The OpenAPI name of a kind's definition, such as `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition_for(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "io.k8s.api.core".to_owned(),
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        other => format!("io.k8s.api.{}", other.trim_end_matches(".k8s.io")),
    };
    format!("{package}.{version}.{kind}")
}

fn build() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft07()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    // The schema of each root type adds all definitions that it refers to.
    generator.subschema_for::<core::v1::Namespace>();
    generator.subschema_for::<core::v1::Node>();
    generator.subschema_for::<core::v1::Pod>();
    generator.subschema_for::<core::v1::ConfigMap>();
    generator.subschema_for::<core::v1::Secret>();
    generator.subschema_for::<core::v1::ServiceAccount>();
    generator.subschema_for::<core::v1::Event>();
    generator.subschema_for::<events::v1::Event>();
    generator.subschema_for::<apps::v1::Deployment>();
    generator.subschema_for::<apps::v1::DaemonSet>();
    generator.subschema_for::<apps::v1::ReplicaSet>();
    generator.subschema_for::<coordination::v1::Lease>();
    generator.subschema_for::<policy::v1::PodDisruptionBudget>();
    generator.subschema_for::<policy::v1::Eviction>();
    generator.subschema_for::<apiextensions::v1::CustomResourceDefinition>();
    generator.subschema_for::<meta::v1::DeleteOptions>();
    generator.subschema_for::<meta::v1::Status>();
    let mut definitions = generator.take_definitions(true);
    annotate(&mut definitions);
    definitions
}

fn annotate(definitions: &mut Map<String, Value>) {
    for (type_name, field, keys, strategic) in MERGED_LISTS {
        let Some(schema) = property(definitions, type_name, field) else {
            continue;
        };
        schema["x-kubernetes-list-type"] = if keys.is_empty() { "set" } else { "map" }.into();
        if !keys.is_empty() {
            schema["x-kubernetes-list-map-keys"] = json!(keys);
        }
        if *strategic {
            schema["x-kubernetes-patch-strategy"] = "merge".into();
            if let Some(key) = keys.first() {
                schema["x-kubernetes-patch-merge-key"] = (*key).into();
            }
        }
    }
    for (type_name, field) in RETAINED_KEYS {
        let Some(schema) = property(definitions, type_name, field) else {
            continue;
        };
        let others =
            schema["x-kubernetes-patch-strategy"].as_str().map(|one| format!("{one},")).unwrap_or_default();
        schema["x-kubernetes-patch-strategy"] = format!("{others}retainKeys").into();
    }
    for type_name in ATOMIC_TYPES {
        if let Some(definition) = find(definitions, type_name) {
            definition["x-kubernetes-map-type"] = "atomic".into();
        }
    }
    // These types are any JSON, or one of two forms; their schemas do not say so.
    for any in ["JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"] {
        if let Some(definition) = find(definitions, &format!("apiextensions.v1.{any}")) {
            *definition = json!({"description": definition["description"], "x-kubernetes-preserve-unknown-fields": true});
        }
    }
    // The protocol of a port is part of its key, so its default determines which port a patch refers to.
    for container in ["core.v1.ContainerPort"] {
        if let Some(schema) = property(definitions, container, "protocol") {
            schema["default"] = "TCP".into();
        }
    }
    if let Some(schema) = property(definitions, "core.v1.PodSpec", "nodeSelector") {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    if let Some(schema) = property(definitions, "policy.v1.PodDisruptionBudgetSpec", "selector") {
        schema["x-kubernetes-patch-strategy"] = "replace".into();
    }
}

fn find<'a>(definitions: &'a mut Map<String, Value>, suffix: &str) -> Option<&'a mut Value> {
    definitions
        .iter_mut()
        .find(|(name, _)| name.ends_with(&format!(".{suffix}")))
        .map(|(_, definition)| definition)
}

fn property<'a>(definitions: &'a mut Map<String, Value>, suffix: &str, field: &str) -> Option<&'a mut Value> {
    find(definitions, suffix)?["properties"].get_mut(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ListKind, TypeRef};

    #[test]
    fn every_row_of_the_tables_names_a_field_that_exists() {
        let mut definitions = build();
        for (type_name, field, ..) in MERGED_LISTS {
            assert!(property(&mut definitions, type_name, field).is_some(), "{type_name}.{field}");
        }
        for (type_name, field) in RETAINED_KEYS {
            assert!(property(&mut definitions, type_name, field).is_some(), "{type_name}.{field}");
        }
        for type_name in ATOMIC_TYPES {
            assert!(find(&mut definitions, type_name).is_some(), "{type_name}");
        }
    }

    #[test]
    fn containers_merge_by_name_and_taints_do_not() {
        let pod = TypeRef::new(&definitions()["io.k8s.api.core.v1.Pod"]);
        let containers = pod.field("spec").and_then(|spec| spec.field("containers")).expect("containers");
        assert_eq!(containers.list_kind(), ListKind::Map(&[json!("name")]));
        let node = TypeRef::new(&definitions()["io.k8s.api.core.v1.Node"]);
        let taints = node.field("spec").and_then(|spec| spec.field("taints")).expect("taints");
        assert_eq!(taints.list_kind(), ListKind::Atomic);
    }
}
