//! Pods on a node that has to be emptied.

use super::Job;
use super::refusal::Refusal;
use crate::cache::project;
use crate::transport::error::{CallError, is_absent, or_absent};
use crate::transport::key::ObjectKey;
use five_spot_core::world::{EvictionAttempt, NodeName, PodId};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

impl Job<'_> {
    /// Asks for an eviction. A [`Refusal`] is noted, and no failure. True if the pod goes.
    pub(super) async fn evict(&self, pod: &PodId) -> Result<bool, CallError> {
        let Some(api) = self.pods(pod) else { return Ok(false) };
        // Not `Api::evict`: it calls the options `delete_options`, which a server does not know, and evicts whatever pod
        // has the name.
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid.as_str()}},
        });
        match api
            .create_subresource::<Value, Value>("eviction", &pod.name, &PostParams::default(), &eviction)
            .await
        {
            Ok(_) => self.note_eviction(pod, None),
            Err(error) if is_absent(&error) => self.drop_pod(pod),
            Err(error) => {
                // A conflict is another pod of the same name, or none of the pod's business: a closer look will tell.
                let Some(refusal) = Refusal::of(&error) else {
                    self.note_failed_eviction(pod);
                    return Err(pod_error("evict", pod, error));
                };
                refusal.log(pod);
                self.note_eviction(pod, Some(refusal.reason().to_owned()));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes a pod, whatever its disruption budget says. True if it goes.
    pub(super) async fn delete_pod(&self, pod: &PodId, grace: SignedDuration) -> Result<bool, CallError> {
        let Some(api) = self.pods(pod) else { return Ok(false) };
        let parameters = DeleteParams {
            preconditions: Some(this_pod(pod)),
            grace_period_seconds: Some(u32::try_from(grace.as_secs()).unwrap_or(0)),
            ..DeleteParams::default()
        };
        match or_absent(api.delete(&pod.name, &parameters).await) {
            Ok(Some(either::Either::Left(left))) if is_still_there(&left) => self.keep_pod(&left),
            Ok(_) => self.drop_pod(pod),
            Err(error) => return Err(pod_error("delete", pod, error)),
        }
        Ok(true)
    }

    fn note_eviction(&self, pod: &PodId, refusal: Option<String>) {
        let attempt = EvictionAttempt { at: self.fleet.connection.now(), refusal, failed: false };
        self.fleet.remember(self.key, |memory| memory.evictions.insert(pod.uid.clone(), attempt));
    }

    /// An attempt whose answer is unknown is an attempt: otherwise the news of every other pod that leaves would be a reason
    /// for the next. What held the pod before may hold it still.
    fn note_failed_eviction(&self, pod: &PodId) {
        let at = self.fleet.connection.now();
        self.fleet.remember(self.key, |memory| {
            let first = EvictionAttempt { at, refusal: None, failed: true };
            let attempt = memory.evictions.entry(pod.uid.clone()).or_insert(first);
            (attempt.at, attempt.failed) = (at, true);
        });
    }

    fn keep_pod(&self, pod: &Pod) {
        if let Some(shelf) = self.node().and_then(|(node, link)| link.watched_pods(node)) {
            shelf.put(ObjectKey::of(pod), &pod.resource_version().unwrap_or_default(), project::pod(pod));
        }
    }

    fn drop_pod(&self, pod: &PodId) {
        self.fleet.remember(self.key, |memory| memory.left.insert(pod.uid.clone()));
        if let Some(shelf) = self.node().and_then(|(node, link)| link.watched_pods(node)) {
            shelf.remove(&ObjectKey::new(pod.namespace.clone(), pod.name.clone()));
        }
    }

    fn node(&self) -> Option<(&NodeName, &crate::cache::workload::Link)> {
        Some((&self.observed.world.node.found()?.name, self.observed.link.as_deref()?))
    }

    fn pods(&self, pod: &PodId) -> Option<Api<Pod>> {
        let link = self.observed.link.as_ref()?;
        Some(Api::namespaced(link.client.clone(), &pod.namespace))
    }
}

/// Whether a pod that was deleted is there still: one without a grace period and without finalizers is gone at once, and
/// is answered with its last state.
fn is_still_there(pod: &Pod) -> bool {
    let has_time = pod.metadata.deletion_grace_period_seconds.unwrap_or(0) > 0;
    pod.metadata.deletion_timestamp.is_some() && (has_time || !pod.finalizers().is_empty())
}

fn this_pod(pod: &PodId) -> Preconditions {
    Preconditions { uid: Some(pod.uid.as_str().to_owned()), resource_version: None }
}

fn pod_error(verb: &str, pod: &PodId, error: kube::Error) -> CallError {
    CallError::new(format!("{verb} pod {}/{}", pod.namespace, pod.name), error)
}
