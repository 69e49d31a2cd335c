//! Collects the facts: lists instead of single objects, and only of what someone needs, so that a thousand machines cost no
//! more than fifty requests.

mod controller;
mod reader;
mod workloads;

use crate::cluster_access::CallerCluster;
use five_spot_api::names;
use five_spot_cluster::preflight::{self, FieldDifferences};
use five_spot_diagnose::doctor::{ClusterApi, CrdState, DoctorFacts, MachineFacts};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use reader::{Notes, Reader, Unread};
use serde_json::Value;

/// The objects that are checked.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// One object of the namespace.
    pub name: Option<String>,
}

impl Scope {
    /// The object that was asked for, as `namespace/name`.
    pub fn object(&self) -> String {
        let (namespace, name) = (self.namespace.as_deref(), self.name.as_deref());
        format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
    }

    /// `namespaces/shop/` in a path, or nothing for all namespaces.
    fn path(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default()
    }

    /// `in namespace shop`.
    fn place(&self) -> String {
        self.namespace
            .as_ref()
            .map_or_else(|| "in all namespaces".to_owned(), |name| format!("in namespace {name}"))
    }
}

/// Reads everything that the judgement needs. `difference` is the server's clock minus this computer's.
pub async fn collect(
    access: &CallerCluster,
    scope: &Scope,
    difference: SignedDuration,
) -> Result<DoctorFacts, kube::Error> {
    let client = access.connection.management()?;
    let notes = Notes::default();
    let reader = Reader::management(client, &notes);
    let mut facts = DoctorFacts::new(access.connection.now());
    facts.server_clock_ahead = difference;
    facts.is_named = scope.name.is_some();
    // The second scrape comes two seconds after the first. Everything else is read meanwhile.
    let about_controller = async {
        let controller = controller::collect(&reader, access).await;
        let missing = controller::missing_permissions(&reader, &controller).await;
        (controller, missing)
    };
    let about_machines = fleet(&reader, access, scope, &mut facts);
    let ((controller, missing), ()) = tokio::join!(about_controller, about_machines);
    facts.controller = controller;
    facts.missing_permissions = missing;
    facts.not_read = notes.all();
    Ok(facts)
}

/// The machines, and everything that belongs to them.
async fn fleet(reader: &Reader<'_>, access: &CallerCluster, scope: &Scope, facts: &mut DoctorFacts) {
    let (client, notes) = (reader.client(), reader.notes());
    let (definition, (cluster_api, machines), events) =
        tokio::join!(definition(client, notes), machines(reader, scope), events(reader, scope));
    facts.definition = definition;
    facts.cluster_api = cluster_api;
    facts.capi_machines = machines;
    facts.events = events;
    // After the Machines: one that appears in between has its object in this list.
    if let Some(objects) = objects(reader, scope, &facts.definition).await {
        let key = |object: &Value| {
            format!("{}/{}", object["metadata"]["namespace"].as_str().unwrap_or_default(), name(object))
        };
        facts.known = Some(objects.iter().map(key).collect());
        let neglected = |object: &&Value| MachineFacts::new((*object).clone()).is_neglected(facts.now);
        facts.neglected = objects.iter().filter(neglected).map(key).collect();
        let wanted = |object: &Value| scope.name.as_deref().is_none_or(|wanted| wanted == name(object));
        facts.machines = objects.into_iter().filter(wanted).map(MachineFacts::new).collect();
    }
    if facts.known.as_ref().is_some_and(Vec::is_empty) {
        facts.works_elsewhere = works_elsewhere(client, scope, facts.now).await;
    }
    if let Some(wanted) = &scope.name {
        facts.capi_machines.retain(|machine| {
            machine["metadata"]["labels"][names::label::SCHEDULED_MACHINE].as_str() == Some(wanted)
        });
    }
    facts.workloads = workloads::collect(reader, access, &facts.machines, notes).await;
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

async fn definition(client: &Client, notes: &Notes) -> CrdState {
    let definition = match preflight::definition(client).await {
        Ok(definition) => definition,
        Err(error) => {
            notes.add(format!("the CRD of ScheduledMachine: {}", reader::reason(&error)));
            return CrdState::Unknown;
        }
    };
    let words = definition.to_string();
    match definition {
        preflight::CrdFit::Fits(FieldDifferences { missing, .. }) if missing.is_empty() => CrdState::Fits,
        preflight::CrdFit::Fits(_) => CrdState::LacksFields(words),
        preflight::CrdFit::TooOld(_) | preflight::CrdFit::OtherVersions(_) => CrdState::TooOld(words),
        preflight::CrdFit::Absent => CrdState::Absent(words),
    }
}

async fn objects(reader: &Reader<'_>, scope: &Scope, definition: &CrdState) -> Option<Vec<Value>> {
    if matches!(definition, CrdState::Absent(_)) {
        return Some(Vec::new());
    }
    let path = format!("/apis/{}/{}/{}scheduledmachines", names::GROUP, names::VERSION, scope.path());
    reader.list_or_none(&path, &format!("ScheduledMachines {}", scope.place())).await
}

/// True if there are `ScheduledMachines` in other namespaces, and someone acts on them. A caller who may not list them is told
/// nothing new by that.
async fn works_elsewhere(client: &Client, scope: &Scope, now: Timestamp) -> bool {
    if scope.namespace.is_none() {
        return false;
    }
    let unnoted = Notes::default();
    let reader = Reader::management(client.clone(), &unnoted);
    let path = format!("/apis/{}/{}/scheduledmachines?limit={SAMPLE}", names::GROUP, names::VERSION);
    let page: Value = reader.get(&path, "ScheduledMachines").await.unwrap_or_default();
    let sample = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    !sample.is_empty() && !sample.iter().any(|object| MachineFacts::new(object.clone()).is_neglected(now))
}

/// The `ScheduledMachines` of other namespaces that show whether a controller works.
const SAMPLE: usize = 100;

/// Cluster API, and the Machines with our label.
async fn machines(reader: &Reader<'_>, scope: &Scope) -> (ClusterApi, Vec<Value>) {
    let group: Value = match reader.get("/apis/cluster.x-k8s.io", "the API group cluster.x-k8s.io").await {
        Ok(group) => group,
        Err(Unread::Absent) => return (ClusterApi::Missing, Vec::new()),
        Err(Unread::Noted) => return (ClusterApi::Unknown, Vec::new()),
    };
    let version = group["preferredVersion"]["version"].as_str().unwrap_or("v1beta2");
    let label = names::label::SCHEDULED_MACHINE;
    let path = format!("/apis/cluster.x-k8s.io/{version}/{}machines?labelSelector={label}", scope.path());
    match reader.list(&path, &format!("Machines {}", scope.place())).await {
        Ok(machines) => (ClusterApi::Served, machines),
        Err(Unread::Absent) => (ClusterApi::Missing, Vec::new()),
        Err(Unread::Noted) => (ClusterApi::Unknown, Vec::new()),
    }
}

/// The Warning events about our objects.
async fn events(reader: &Reader<'_>, scope: &Scope) -> Vec<Value> {
    let named = scope.name.as_ref().map(|name| format!(",involvedObject.name={name}")).unwrap_or_default();
    let selector = format!("involvedObject.kind={},type=Warning{named}", names::KIND);
    let path = format!(
        "/api/v1/{}events?fieldSelector={}",
        scope.path(),
        selector.replace(',', "%2C").replace('=', "%3D")
    );
    let events = reader.list_or_none(&path, &format!("events {}", scope.place())).await;
    events.unwrap_or_default().into_iter().map(in_new_words).collect()
}

/// An event with the field names of `events.k8s.io/v1`.
pub(super) fn in_new_words(mut event: Value) -> Value {
    if event["note"].is_null() {
        event["note"] = event["message"].take();
    }
    if event["regarding"].is_null() {
        event["regarding"] = event["involvedObject"].take();
    }
    event
}
