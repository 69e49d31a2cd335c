//! Watches both clusters for as long as they exist.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::Entry;
use super::projection::{Projection, difference, project};
use crate::cluster::{Cluster, Side};
use crate::kinds::{self, ThirdPartyKind};

const WATCHED_IN_MANAGEMENT: [ThirdPartyKind; 6] = [
    kinds::MACHINE,
    kinds::CLUSTER,
    kinds::K0S_WORKER_CONFIG,
    kinds::KUBEADM_CONFIG,
    kinds::REMOTE_MACHINE,
    EVENT,
];
const WATCHED_IN_WORKLOAD: [ThirdPartyKind; 4] = [
    ThirdPartyKind { group: "", version: "v1", kind: "Node", plural: "nodes" },
    ThirdPartyKind { group: "", version: "v1", kind: "Pod", plural: "pods" },
    ThirdPartyKind {
        group: "policy",
        version: "v1",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
    },
    EVENT,
];
const EVENT: ThirdPartyKind = ThirdPartyKind { group: "", version: "v1", kind: "Event", plural: "events" };

/// The record of the clusters. Dropping it ends its watches.
#[derive(Debug)]
pub struct Recorder {
    entries: Arc<Mutex<Vec<Entry>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Recorder {
    /// Starts to watch the kinds of Cluster API, of the providers and of Kubernetes that the tests use.
    pub fn start(management: &Cluster, workload: &Cluster) -> Self {
        let recorder = Self { entries: Arc::default(), tasks: Mutex::default() };
        for kind in WATCHED_IN_MANAGEMENT {
            recorder.watch(management, kind);
        }
        for kind in WATCHED_IN_WORKLOAD {
            recorder.watch(workload, kind);
        }
        recorder
    }

    /// Watches one more kind, such as one whose CRD a test has applied.
    pub fn watch(&self, cluster: &Cluster, kind: ThirdPartyKind) {
        let entries = Arc::clone(&self.entries);
        let task = tokio::spawn(record(cluster.side(), kind, kind.everywhere(&cluster.admin()), entries));
        locked(&self.tasks).push(task);
    }

    /// Adds a note of a test.
    pub fn note(&self, namespace: &str, text: &str) {
        locked(&self.entries).push(Entry {
            at: Timestamp::now(),
            side: None,
            subject: "note".into(),
            text: text.into(),
            scope: namespace.into(),
        });
    }

    /// All entries of a test's namespace.
    pub fn entries(&self, namespace: &str) -> Vec<Entry> {
        locked(&self.entries).iter().filter(|entry| entry.belongs_to(namespace)).cloned().collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        for task in locked(&self.tasks).drain(..) {
            task.abort();
        }
    }
}

async fn record(side: Side, kind: ThirdPartyKind, api: Api<DynamicObject>, entries: Arc<Mutex<Vec<Entry>>>) {
    let mut known: BTreeMap<(Option<String>, String), Projection> = BTreeMap::new();
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let entry = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => seen(kind, &object, &mut known),
            Ok(Event::Delete(object)) => known
                .remove(&key(&object))
                .map(|_| (subject(kind, &object), "gone".to_owned(), scope(&object))),
            // The watch restarts; changes that were missed appear as one change.
            Ok(Event::Init | Event::InitDone) | Err(_) => None,
        };
        if let Some((subject, text, scope)) = entry {
            locked(&entries).push(Entry { at: Timestamp::now(), side: Some(side), subject, text, scope });
        }
    }
}

fn seen(
    kind: ThirdPartyKind,
    object: &DynamicObject,
    known: &mut BTreeMap<(Option<String>, String), Projection>,
) -> Option<(String, String, String)> {
    let value = serde_json::to_value(object).unwrap_or_default();
    if kind == EVENT {
        return event(&value);
    }
    let after = project(&value);
    let before = known.insert(key(object), after.clone());
    let text = match before {
        None => {
            let state = difference(&Projection::new(), &after).unwrap_or_default();
            format!("created {state}")
        }
        Some(before) => difference(&before, &after)?,
    };
    Some((subject(kind, object), text, scope(object)))
}

/// An Event is recorded with its object. One about a Node belongs to the test whose namespace is the start of
/// the Node's name.
fn event(value: &Value) -> Option<(String, String, String)> {
    let about = &value["involvedObject"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&about["namespace"]);
    let scope = if namespace.is_empty() { text(&about["name"]) } else { namespace };
    let subject = format!("event on {}/{}", about["kind"].as_str()?, text(&about["name"]));
    Some((subject, format!("{} {}", text(&value["reason"]), text(&value["message"])), scope))
}

fn key(object: &DynamicObject) -> (Option<String>, String) {
    (object.namespace(), object.name_any())
}

fn subject(kind: ThirdPartyKind, object: &DynamicObject) -> String {
    format!("{}/{}", kind.kind, object.name_any())
}

fn scope(object: &DynamicObject) -> String {
    object.namespace().unwrap_or_else(|| object.name_any())
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The entries are needed after a panic in particular.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
