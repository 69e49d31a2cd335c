//! Events on the `ScheduledMachine`.

use crate::execute::job::Job;
use crate::transport::error::explain;
use five_spot_api::names;
use five_spot_core::Fingerprint;
use five_spot_core::action::Event;
use five_spot_core::text;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

/// The result of publishing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publication {
    /// It was created.
    New,
    /// It had been created before.
    Known,
    /// It could not be created.
    Failed,
}

impl Job<'_> {
    /// Publishes an event. A failure is logged, and never fails a reconcile.
    pub(super) async fn publish(&self, event: &Event) -> Publication {
        let reason = event.reason.as_str();
        let object = match serde_json::from_value(self.event(event, self.caches.connection.now())) {
            Ok(object) => object,
            Err(error) => {
                tracing::warn!(%error, reason, "failed to serialize an event");
                return Publication::Failed;
            }
        };
        let api: Api<KubeEvent> = Api::namespaced(self.caches.client.clone(), &self.key.namespace);
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => Publication::New,
            // The name is derived from the cause: the same event has been published before.
            Err(kube::Error::Api(status)) if status.code == 409 => Publication::Known,
            Err(error) => {
                tracing::warn!(error = explain(&error), reason, "event could not be published");
                Publication::Failed
            }
        }
    }

    pub(super) fn event(&self, event: &Event, now: Timestamp) -> serde_json::Value {
        let object = &self.observed.world.object;
        let reason = event.reason.as_str();
        let identity = json!([object.uid.as_str(), reason, event.cause.to_string()]);
        let note = text::bounded(&event.note, text::MAX_NOTE);
        json!({
            "metadata": {
                "name": format!("{}.{}", self.key.name, Fingerprint::of(&identity)),
                "namespace": &*self.key.namespace,
            },
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "reportingController": names::FIELD_MANAGER,
            "reportingInstance": self.caches.settings.instance,
            "action": "Reconcile",
            "reason": reason,
            "type": event.reason.event_type().as_str(),
            "note": note,
            "regarding": {
                "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
                "kind": names::KIND,
                "namespace": &*self.key.namespace,
                "name": &*self.key.name,
                "uid": object.uid.as_str(),
            },
        })
    }
}
