//! The contents of a bundle, part by part.

use super::agents;
use super::bundle::{Bundle, path_part};
use super::controller;
use super::events;
use super::machines::{self, Machines};
use super::read::{Reader, Selection};
use crate::why::Catalog;
use five_spot_api::names;
use serde_json::{Value, json};

/// The most objects of one kind.
const OBJECTS: usize = 5000;

/// The accounts of 5-Spot.
const ACCOUNTS: [&str; 2] = ["5spot-controller", "5spot-reclaim-agent"];

const CAPI_GROUP: &str = "cluster.x-k8s.io";

/// Collects everything that is in this cluster. Returns it with the machines.
pub async fn collect(reader: &Reader<'_>, namespace: Option<&str>) -> (Bundle, Machines) {
    let mut bundle = Bundle::default();
    versions(reader, &mut bundle).await;
    controller::collect(reader, &mut bundle).await;
    let machines = machines::collect(reader, &mut bundle, namespace).await;
    events::collect(reader, &mut bundle, namespace).await;
    definitions(reader, &mut bundle).await;
    roles(reader, &mut bundle).await;
    configuration(reader, &mut bundle).await;
    agents::collect(reader, &mut bundle, "").await;
    (bundle, machines)
}

/// The versions of Kubernetes, Cluster API and 5-Spot.
async fn versions(reader: &Reader<'_>, bundle: &mut Bundle) {
    let kubernetes = reader.text(bundle, "the version of Kubernetes", "/version").await;
    let kubernetes: Value = kubernetes.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let capi = Selection { namespace: Some("capi-system"), limit: 50, ..Selection::default() };
    let capi = reader.list(bundle, "apps", "deployments", capi).await;
    let five_spot = Selection { namespace: Some(names::SYSTEM_NAMESPACE), limit: 50, ..Selection::default() };
    let five_spot = reader.list(bundle, "apps", "deployments", five_spot).await;
    let versions = json!({
        "5spot": env!("CARGO_PKG_VERSION"),
        "kubernetes": kubernetes,
        "5spotImages": images(&five_spot),
        "clusterApiImages": images(&capi),
        "clusterApiVersions": served_versions(reader.catalog, CAPI_GROUP),
        "5spotVersions": served_versions(reader.catalog, names::GROUP),
    });
    let text = serde_json::to_string_pretty(&versions).unwrap_or_default();
    bundle.add_text(
        "versions.json",
        "versions of 5-Spot, Kubernetes and Cluster API, and the images that run",
        &text,
    );
}

/// The images of workloads, by name.
fn images(workloads: &[Value]) -> Value {
    let image = |workload: &Value| {
        let name = workload["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let containers = workload["spec"]["template"]["spec"]["containers"].as_array();
        let images =
            containers.into_iter().flatten().map(|container| container["image"].clone()).collect::<Vec<_>>();
        (name, Value::from(images))
    };
    workloads.iter().map(image).collect::<serde_json::Map<_, _>>().into()
}

fn served_versions(catalog: &Catalog, group: &str) -> Value {
    let kinds = catalog.kinds.iter().filter(|served| served.group == group);
    kinds
        .map(|served| (served.plural.clone(), Value::from(served.version.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Our own CRDs in full; of the others what matters to us, because they are large.
async fn definitions(reader: &Reader<'_>, bundle: &mut Bundle) {
    let all = Selection { limit: OBJECTS, ..Selection::default() };
    let definitions = reader.list(bundle, "apiextensions.k8s.io", "customresourcedefinitions", all).await;
    let group = |definition: &Value| definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
    for definition in definitions.iter().filter(|it| group(it) == names::GROUP) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        bundle.add_object(
            &format!("definitions/{}.yaml", path_part(name)),
            "the CRD as it is installed",
            definition,
        );
    }
    let others: Vec<Value> = definitions
        .iter()
        .filter(|it| group(it).ends_with(CAPI_GROUP) || group(it) == "k0smotron.io")
        .map(summary)
        .collect();
    bundle.add_objects(
        "definitions/cluster-api.yaml",
        "versions, labels and conditions of the CRDs of Cluster API and its providers",
        &others,
    );
}

/// A CRD without its schemas.
fn summary(definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten().map(|version| {
        json!({"name": version["name"], "served": version["served"], "storage": version["storage"]})
    });
    json!({
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition["metadata"]["name"], "labels": definition["metadata"]["labels"]},
        "versions": versions.collect::<Vec<_>>(),
        "conversion": definition["spec"]["conversion"]["strategy"],
        "conditions": definition["status"]["conditions"],
    })
}

/// The roles of our accounts, and the bindings that grant them.
async fn roles(reader: &Reader<'_>, bundle: &mut Bundle) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let all = Selection { limit: OBJECTS, ..Selection::default() };
    let mut bindings = reader.list(bundle, GROUP, "clusterrolebindings", all).await;
    bindings.extend(reader.list(bundle, GROUP, "rolebindings", all).await);
    bindings.retain(is_ours);
    let granted = |role: &Value| {
        let name = &role["metadata"]["name"];
        is_named_ours(role)
            || bindings.iter().any(|binding| {
                binding["roleRef"]["name"] == *name && binding["roleRef"]["kind"] == role["kind"]
            })
    };
    let mut roles = reader.list(bundle, GROUP, "clusterroles", all).await;
    roles.extend(reader.list(bundle, GROUP, "roles", all).await);
    roles.retain(granted);
    bundle.add_objects("rbac/bindings.yaml", "the bindings of the accounts of 5-Spot", &bindings);
    bundle.add_objects("rbac/roles.yaml", "the roles of the accounts of 5-Spot", &roles);
}

fn is_ours(binding: &Value) -> bool {
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    is_named_ours(binding)
        || subjects.any(|subject| ACCOUNTS.iter().any(|account| subject["name"] == *account))
}

fn is_named_ours(object: &Value) -> bool {
    object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("5spot"))
}

/// The variables of the controller.
async fn configuration(reader: &Reader<'_>, bundle: &mut Bundle) {
    let here = Selection { namespace: Some(names::SYSTEM_NAMESPACE), limit: OBJECTS, ..Selection::default() };
    let mut maps = reader.list(bundle, "", "configmaps", here).await;
    maps.retain(is_named_ours);
    bundle.add_objects("controller/configmaps.yaml", "the ConfigMaps of the controller", &maps);
}
