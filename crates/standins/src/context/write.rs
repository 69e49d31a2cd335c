//! The writes of an actor. The responses update its cache.

use super::super::kinds::{Kind, ObjectKey};
use super::ActorContext;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Error};
use serde_json::Value;

/// The result of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Eviction {
    /// The pod is terminating.
    Granted,
    /// The pod does not exist any more.
    Gone,
    /// A disruption budget does not allow the eviction, with this message.
    Refused(String),
}

impl ActorContext {
    /// Creates an object; an existing one is not changed.
    pub(in super::super) async fn create(&mut self, key: &ObjectKey, object: Value) -> kube::Result<()> {
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::SerdeError)?;
        match key.api(&self.client_of(&key.kind)).create(&PostParams::default(), &object).await {
            Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
            answer => {
                self.take_in(key, answer?);
                Ok(())
            }
        }
    }

    /// Changes an object by a merge patch. A deleted object is ignored.
    pub(in super::super) async fn merge(&mut self, key: &ObjectKey, patch: Value) -> kube::Result<()> {
        let api = key.api(&self.client_of(&key.kind));
        let answer = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        self.learn(key, answer)
    }

    /// Changes the status of an object by a merge patch, unless it is equal already.
    pub(in super::super) async fn merge_status(
        &mut self,
        key: &ObjectKey,
        status: Value,
    ) -> kube::Result<()> {
        let known = self.get(key);
        if known.is_some_and(|object| contains(&object.data["status"], &status)) {
            return Ok(());
        }
        let api = key.api(&self.client_of(&key.kind));
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let answer = api.patch_status(&key.name, &PatchParams::default(), &patch).await;
        self.learn(key, answer)
    }

    /// Deletes an object with a UID precondition.
    pub(in super::super) async fn delete(
        &mut self,
        key: &ObjectKey,
        object: &DynamicObject,
    ) -> kube::Result<()> {
        self.delete_with(key, object, DeleteParams::default()).await
    }

    /// Deletes a pod without a grace period: it has ended, or there is no kubelet to stop it.
    pub(in super::super) async fn delete_now(
        &mut self,
        key: &ObjectKey,
        pod: &DynamicObject,
    ) -> kube::Result<()> {
        self.delete_with(key, pod, DeleteParams::default().grace_period(0)).await
    }

    async fn delete_with(
        &mut self,
        key: &ObjectKey,
        object: &DynamicObject,
        params: DeleteParams,
    ) -> kube::Result<()> {
        let uid = object.metadata.uid.clone();
        let params = params.preconditions(Preconditions { uid, resource_version: None });
        match key.api(&self.client_of(&key.kind)).delete(&key.name, &params).await {
            Ok(answer) => {
                // The response is the object only if finalizers keep it; otherwise the watch reports the
                // deletion.
                if let Some(object) = answer.left().filter(|left| left.metadata.deletion_timestamp.is_some())
                {
                    self.take_in(key, object);
                }
                Ok(())
            }
            Err(Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Evicts a pod.
    pub(in super::super) async fn evict(&mut self, pod: &Pod, grace: Option<u32>) -> kube::Result<Eviction> {
        let metadata = &pod.metadata;
        let api: Api<Pod> =
            Api::namespaced(self.workload(), metadata.namespace.as_deref().unwrap_or_default());
        let name = metadata.name.as_deref().unwrap_or_default();
        let preconditions = Preconditions { uid: metadata.uid.clone(), resource_version: None };
        let options = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        // Not `Api::evict`, which sends the options as `delete_options`; servers ignore that name.
        let eviction = serde_json::json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
            "deleteOptions": options.preconditions(preconditions),
        });
        let answer: kube::Result<Value> =
            api.create_subresource("eviction", name, &PostParams::default(), &eviction).await;
        match answer {
            Ok(_) => Ok(Eviction::Granted),
            Err(Error::Api(status)) if status.is_not_found() => Ok(Eviction::Gone),
            Err(Error::Api(status)) if status.code == 429 => {
                let causes = status.details.iter().flat_map(|details| &details.causes);
                let why: Vec<&str> = causes.map(|cause| cause.message.as_str()).collect();
                Ok(Eviction::Refused(format!("{} {}", status.message, why.join(","))))
            }
            Err(error) => Err(error),
        }
    }

    /// Records that a pod could not be evicted; the next pass retries.
    pub(in super::super) fn note_pod(&self, pod: &Pod, error: Error) {
        let (namespace, name) = (pod.metadata.namespace.as_deref(), pod.metadata.name.as_deref());
        let key = Kind::pod().key(namespace.unwrap_or_default(), name.unwrap_or_default());
        self.recorder.object(&key, error);
    }

    /// Binds a pod to a Node. The watch reports the result.
    pub(in super::super) async fn bind(&mut self, pod: &DynamicObject, node: &str) -> kube::Result<()> {
        let metadata = &pod.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let api: Api<Pod> =
            Api::namespaced(self.workload(), metadata.namespace.as_deref().unwrap_or_default());
        let binding = serde_json::json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let answer: kube::Result<Value> =
            api.create_subresource("binding", name, &PostParams::default(), &binding).await;
        match answer {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn learn(&mut self, key: &ObjectKey, answer: kube::Result<DynamicObject>) -> kube::Result<()> {
        match answer {
            Ok(object) => {
                self.take_in(key, object);
                Ok(())
            }
            Err(Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The actor's own writes are changes like all others, because they can affect other objects.
    fn take_in(&mut self, key: &ObjectKey, object: DynamicObject) {
        if self.watches.iter().any(|watch| watch.kind == key.kind) {
            self.news.extend(self.cache.learn(&key.kind, object));
        }
    }

    /// The cluster of a kind. Kinds that are not watched are in the management cluster, except leases of
    /// Nodes.
    fn client_of(&self, kind: &Kind) -> Client {
        let watched = self.watches.iter().find(|watch| watch.kind == *kind);
        match watched {
            Some(watch) => watch.client.clone(),
            None if *kind == Kind::lease() => self.workload.clone(),
            None => self.management.clone(),
        }
    }
}

/// Returns true if `all` contains everything in `some`, except transition times.
fn contains(all: &Value, some: &Value) -> bool {
    match (all, some) {
        (Value::Object(all), Value::Object(some)) => some.iter().all(|(key, value)| {
            key == "lastTransitionTime"
                || all.get(key).map_or(value.is_null(), |existing| contains(existing, value))
        }),
        (Value::Array(all), Value::Array(some)) => {
            all.len() == some.len() && all.iter().zip(some).all(|(all, some)| contains(all, some))
        }
        (all, some) => all == some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_equal_status_is_not_written() {
        let now =
            json!({"ready": true, "conditions": [{"type": "Ready", "lastTransitionTime": "yesterday"}]});
        assert!(contains(&now, &json!({"ready": true, "phase": null})));
        assert!(contains(&now, &json!({"conditions": [{"type": "Ready", "lastTransitionTime": "today"}]})));
        assert!(!contains(&now, &json!({"ready": false})));
        assert!(!contains(&Value::Null, &json!({"ready": true})));
    }
}
