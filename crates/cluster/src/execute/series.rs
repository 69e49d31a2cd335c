//! What happens again and again is one event that counts.

use super::Job;
use crate::cache::fleet::Fleet;
use crate::transport::error::{explain, is_absent};
use crate::transport::key::ObjectKey;
use crate::view::observe::Observed;
use five_spot_core::action::Event;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

impl Fleet {
    /// Says that what an event has announced has now happened this many times. That it could not be said is a line in
    /// the log, and no failure.
    pub async fn count_again(&self, key: &ObjectKey, observed: &Observed, event: &Event, times: u32) {
        let job = Job { fleet: &self.inner, key, observed, original: None };
        if let Err(error) = job.count_again(event, times).await {
            let reason = event.reason.as_str();
            tracing::warn!(error = explain(&error), reason, "event could not be published");
        }
    }
}

impl Job<'_> {
    async fn count_again(&self, event: &Event, times: u32) -> Result<(), kube::Error> {
        let now = self.fleet.connection.now();
        let mut whole = self.event(event, now);
        let series = json!({"count": times, "lastObservedTime": whole["eventTime"]});
        let api: Api<KubeEvent> = Api::namespaced(self.fleet.client.clone(), &self.key.namespace);
        let name = whole["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let patch = Patch::Merge(json!({"series": series}));
        match api.patch(&name, &PatchParams::default(), &patch).await {
            // An API server keeps events for an hour, and a fault may take longer.
            Err(error) if is_absent(&error) => {
                whole["series"] = series;
                let object = serde_json::from_value(whole).map_err(kube::Error::SerdeError)?;
                api.create(&PostParams::default(), &object).await.map(drop)
            }
            answer => answer.map(drop),
        }
    }
}
