//! Pods on a node that is drained.

use crate::cache::project;
use crate::cache::workload::WorkloadLink;
use crate::execute::job::Job;
use crate::execute::outcome::{Acted, ActionOutcome};
use crate::execute::refusal::Refusal;
use crate::transport::core_kinds::Pod;
use crate::transport::error::{CallError, is_absent, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::operation::{Operation, TargetKind, Verb};
use five_spot_core::world::{EvictionAttempt, PodId};
use jiff::SignedDuration;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

impl Job<'_> {
    /// Evicts a pod. A [`Refusal`] is noted, and is no failure.
    pub(super) async fn evict(&self, link: &WorkloadLink, pod: &PodId) -> Acted {
        let api: Api<Pod> = Api::namespaced(link.client.clone(), &pod.namespace);
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
            Err(error) if is_absent(&error) => self.drop_pod(link, pod),
            Err(error) => {
                // A conflict means another pod of the same name, or something else: the next live read shows which.
                let Some(refusal) = Refusal::of(&error) else {
                    self.note_failed_eviction(pod);
                    return Err(pod_error(Verb::Evict, pod, error).into());
                };
                if let Some(repeated) = link.note_refused_eviction(pod, refusal.reason()) {
                    refusal.log(pod, repeated);
                }
                self.note_eviction(pod, Some(refusal.reason().to_owned()));
                return Ok(ActionOutcome::Blocked);
            }
        }
        Ok(ActionOutcome::Done)
    }

    /// Deletes a pod, regardless of disruption budgets.
    pub(super) async fn delete_pod(&self, link: &WorkloadLink, pod: &PodId, grace: SignedDuration) -> Acted {
        let api: Api<Pod> = Api::namespaced(link.client.clone(), &pod.namespace);
        let parameters = DeleteParams {
            preconditions: Some(this_pod(pod)),
            grace_period_seconds: Some(u32::try_from(grace.as_secs()).unwrap_or(0)),
            ..DeleteParams::default()
        };
        match or_absent(api.delete(&pod.name, &parameters).await) {
            Ok(Some(either::Either::Left(left))) if is_still_there(&left) => self.keep_pod(link, &left),
            Ok(_) => self.drop_pod(link, pod),
            Err(error) => return Err(pod_error(Verb::Delete, pod, error).into()),
        }
        Ok(ActionOutcome::Done)
    }

    fn note_eviction(&self, pod: &PodId, refusal: Option<String>) {
        let attempt = EvictionAttempt { at: self.caches.connection.now(), refusal, failed: false };
        self.caches.memories.update(self.key, |memory| {
            let noted = memory.eviction(&pod.uid, attempt.clone());
            *noted = attempt;
        });
    }

    /// Notes an attempt whose answer is unknown, so that it is not repeated whenever another pod leaves. A refusal that was
    /// noted before stays.
    fn note_failed_eviction(&self, pod: &PodId) {
        let at = self.caches.connection.now();
        self.caches.memories.update(self.key, |memory| {
            let first = EvictionAttempt { at, refusal: None, failed: true };
            let attempt = memory.eviction(&pod.uid, first);
            (attempt.at, attempt.failed) = (at, true);
        });
    }

    fn keep_pod(&self, link: &WorkloadLink, pod: &Pod) {
        let node = self.observed.world.node.found();
        if let Some(store) = node.and_then(|node| link.watched_pods(&node.name)) {
            store.put(ObjectKey::of(pod), &pod.resource_version().unwrap_or_default(), project::pod(pod));
        }
    }

    fn drop_pod(&self, link: &WorkloadLink, pod: &PodId) {
        self.caches.memories.update(self.key, |memory| memory.note_left(&pod.uid));
        let node = self.observed.world.node.found();
        if let Some(store) = node.and_then(|node| link.watched_pods(&node.name)) {
            store.remove(&pod_key(pod));
        }
    }
}

/// True if a deleted pod still exists: one without a grace period and without finalizers is gone at once, and the answer
/// is its last state.
fn is_still_there(pod: &Pod) -> bool {
    let has_time = pod.metadata.deletion_grace_period_seconds.unwrap_or(0) > 0;
    pod.metadata.deletion_timestamp.is_some() && (has_time || !pod.finalizers().is_empty())
}

fn this_pod(pod: &PodId) -> Preconditions {
    Preconditions { uid: Some(pod.uid.as_str().to_owned()), resource_version: None }
}

fn pod_error(verb: Verb, pod: &PodId, error: kube::Error) -> CallError {
    CallError::new(Operation::new(verb, TargetKind::Pod, pod_key(pod)), error)
}

/// The key of a pod.
pub(super) fn pod_key(pod: &PodId) -> ObjectKey {
    ObjectKey::new(pod.namespace.as_str(), pod.name.as_str())
}
