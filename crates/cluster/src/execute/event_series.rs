//! Repeated events: the event that announced a fault counts how often it was found again.

use crate::cache::caches::Caches;
use crate::execute::carry_out::events_timeout;
use crate::execute::job::{Basis, Job};
use crate::transport::error::{explain, is_absent};
use crate::transport::key::ObjectKey;
use crate::view::observed::Observed;
use five_spot_core::Decision;
use five_spot_core::action::Event;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use tokio::time::timeout;

/// Updates the count of an event that was published before. A failure is logged, and never fails a reconcile.
pub async fn count_again(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    observed: &Observed,
    decision: &Decision,
    (event, times): (&Event, u32),
) {
    let job = Job::new(caches, key, Basis::Cached(observed), decision);
    let (limit, reason) = (events_timeout(decision), event.reason.as_str());
    match timeout(limit, job.count_again(event, times)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = explain(&error), reason, "event could not be published"),
        Err(_) => tracing::warn!(reason, "event could not be published within {} s", limit.as_secs()),
    }
}

impl Job<'_> {
    async fn count_again(&self, event: &Event, times: u32) -> Result<(), kube::Error> {
        let now = self.caches.connection.now();
        let mut whole = self.event(event, now);
        let series = json!({"count": times, "lastObservedTime": whole["eventTime"]});
        let api: Api<KubeEvent> = Api::namespaced(self.caches.client.clone(), &self.key.namespace);
        let name = whole["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let patch = Patch::Merge(json!({"series": series}));
        match api.patch(&name, &PatchParams::default(), &patch).await {
            // An API server keeps events for an hour, and a fault may last longer.
            Err(error) if is_absent(&error) => {
                whole["series"] = series;
                let object = serde_json::from_value(whole).map_err(kube::Error::SerdeError)?;
                api.create(&PostParams::default(), &object).await.map(drop)
            }
            answer => answer.map(drop),
        }
    }
}
