//! `ScheduledMachines`, and the objects that they have created.

use super::bundle::{Bundle, path_part};
use super::read::{Reader, Selection};
use super::workloads::WorkloadSecret;
use five_spot_api::names::{self, label};
use five_spot_cluster::ObjectKey;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most `ScheduledMachines`, Machines and provider objects.
const OBJECTS: usize = 5000;

/// The provider objects that are read one by one.
const PROVIDER_OBJECTS: usize = 400;

/// The machines, for what is asked about them elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    pub keys: Vec<ObjectKey>,
    /// The workload clusters that their statuses name.
    pub clusters: BTreeSet<WorkloadSecret>,
}

/// Collects the machines of a namespace, or of all.
pub async fn collect(reader: &Reader<'_>, bundle: &mut Bundle, namespace: Option<&str>) -> Machines {
    let here = Selection { namespace, limit: OBJECTS, ..Selection::default() };
    let objects = reader.list(bundle, names::GROUP, "scheduledmachines", here).await;
    for object in &objects {
        let (namespace, name) = place(object);
        let path = format!("scheduledmachines/{}/{}.yaml", path_part(&namespace), path_part(&name));
        bundle.add_object(&path, "a ScheduledMachine", object);
    }
    if reader.catalog.by_plural(names::GROUP, "schedulecalendars").is_some() {
        let calendars = reader.list(bundle, names::GROUP, "schedulecalendars", here).await;
        bundle.add_objects("scheduledmachines/calendars.yaml", "the ScheduleCalendars", &calendars);
    }
    let ours = Selection { labels: Some(label::SCHEDULED_MACHINE), ..here };
    let machines = reader.list(bundle, "cluster.x-k8s.io", "machines", ours).await;
    bundle.add_objects("cluster-api/machines.yaml", "the Machines of 5-Spot", &machines);
    let clusters = reader.list(bundle, "cluster.x-k8s.io", "clusters", here).await;
    let used: BTreeSet<(String, String)> =
        objects.iter().map(|object| (place(object).0, text(&object["spec"]["clusterName"]))).collect();
    let clusters: Vec<Value> = clusters.into_iter().filter(|it| used.contains(&place(it))).collect();
    bundle.add_objects("cluster-api/clusters.yaml", "the Clusters that ScheduledMachines name", &clusters);
    provider_objects(reader, bundle, &objects).await;
    namespaces(reader, bundle, &objects).await;
    Machines {
        keys: objects.iter().map(place).map(|(namespace, name)| ObjectKey::new(namespace, name)).collect(),
        clusters: objects.iter().filter_map(WorkloadSecret::of).collect(),
    }
}

/// The bootstrap and infrastructure objects in the statuses.
async fn provider_objects(reader: &Reader<'_>, bundle: &mut Bundle, objects: &[Value]) {
    let mut found = Vec::new();
    let references = objects.iter().flat_map(|object| {
        ["bootstrapRef", "infrastructureRef"].map(|field| (place(object).0, &object["status"][field]))
    });
    for (namespace, reference) in
        references.filter(|(_, reference)| reference.is_object()).take(PROVIDER_OBJECTS)
    {
        let api_version = text(&reference["apiVersion"]);
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let (kind, name) = (text(&reference["kind"]), text(&reference["name"]));
        let Some(served) = reader.catalog.by_kind(group, &kind).filter(|it| it.kind != "Secret") else {
            continue;
        };
        found.extend(reader.get(bundle, served, Some(&namespace), &name).await);
    }
    bundle.add_objects(
        "cluster-api/provider-objects.yaml",
        "the bootstrap and infrastructure objects of ScheduledMachines",
        &found,
    );
}

/// The namespaces of machines, for their annotations.
async fn namespaces(reader: &Reader<'_>, bundle: &mut Bundle, objects: &[Value]) {
    let used: BTreeSet<String> =
        objects.iter().map(|object| place(object).0).chain([names::SYSTEM_NAMESPACE.to_owned()]).collect();
    let Some(served) = reader.catalog.by_plural("", "namespaces") else { return };
    let mut found = Vec::new();
    for name in used.iter().take(PROVIDER_OBJECTS) {
        found.extend(reader.get(bundle, served, None, name).await);
    }
    bundle.add_objects("namespaces.yaml", "the namespaces of ScheduledMachines and of 5-Spot", &found);
}

/// The namespace and name of an object.
fn place(object: &Value) -> (String, String) {
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
