//! Events about the program itself, on the pod that it runs in.

use five_spot_api::event::EventType;
use five_spot_api::names;
use five_spot_core::{Fingerprint, text};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

/// The pod that this program runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID, without which `kubectl describe` does not find the events.
    pub uid: Option<String>,
}

/// Something that has happened to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEvent {
    /// The reason, in one word.
    pub reason: &'static str,
    /// Normal or warning.
    pub kind: EventType,
    /// The text for people.
    pub note: String,
}

/// Publishes an announcement as an event on the pod.
pub async fn announce(client: &Client, pod: &OwnPod, announcement: &ProgramEvent) -> Result<(), kube::Error> {
    let now = Timestamp::now();
    let note = text::bounded(&announcement.note, text::MAX_NOTE);
    let identity = json!([pod.uid, announcement.reason, now.to_string()]);
    let event = json!({
        "metadata": {"name": format!("{}.{}", pod.name, Fingerprint::of(&identity)), "namespace": pod.namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        "reportingController": names::FIELD_MANAGER,
        "reportingInstance": pod.name,
        "action": "Run",
        "reason": announcement.reason,
        "type": announcement.kind.as_str(),
        "note": note,
        "regarding": {
            "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
        },
    });
    let event: Event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
    let api: Api<Event> = Api::namespaced(client.clone(), &pod.namespace);
    api.create(&PostParams::default(), &event).await.map(drop)
}
