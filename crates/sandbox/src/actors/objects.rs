//! The requests that actors make, on plain JSON.

use jiff::Timestamp;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;
use std::time::Duration;

/// A client for objects of any kind.
#[derive(Clone)]
pub(super) struct Objects {
    client: kube::Client,
    manager: &'static str,
}

impl Objects {
    pub(super) fn new(client: kube::Client, manager: &'static str) -> Self {
        Self { client, manager }
    }

    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, resource)
        }
    }

    /// Every object of a kind; none if the kind is not served.
    pub(super) async fn list(&self, resource: &ApiResource, fields: &str) -> Result<Vec<Value>, kube::Error> {
        let parameters = ListParams::default().fields(fields);
        match self.api(resource, "").list(&parameters).await {
            Ok(list) => Ok(list.items.into_iter().filter_map(|one| serde_json::to_value(one).ok()).collect()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn get(&self, resource: &ApiResource, namespace: &str, name: &str) -> Result<Option<Value>, kube::Error> {
        let found = self.api(resource, namespace).get_opt(name).await?;
        Ok(found.and_then(|one| serde_json::to_value(one).ok()))
    }

    /// Creates an object; that it is there already is as good.
    pub(super) async fn create(&self, resource: &ApiResource, value: &Value) -> Result<(), kube::Error> {
        let object: DynamicObject = serde_json::from_value(value.clone()).map_err(kube::Error::SerdeError)?;
        let parameters = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
        match self.api(resource, namespace).create(&parameters, &object).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Merges into an object; that it is gone is as good.
    pub(super) async fn merge(&self, resource: &ApiResource, target: &Value, patch: Value) -> Result<(), kube::Error> {
        let (namespace, name) = place(target);
        let api = self.api(resource, namespace);
        gone_is_fine(api.patch(name, &self.patching(), &Patch::Merge(patch)).await)
    }

    /// Merges into an object's status.
    pub(super) async fn merge_status(&self, resource: &ApiResource, target: &Value, patch: Value) -> Result<(), kube::Error> {
        let (namespace, name) = place(target);
        let api = self.api(resource, namespace);
        gone_is_fine(api.patch_status(name, &self.patching(), &Patch::Merge(patch)).await)
    }

    /// Deletes an object; that it is gone is as good.
    pub(super) async fn delete(&self, resource: &ApiResource, target: &Value, grace: Option<u32>) -> Result<(), kube::Error> {
        let (namespace, name) = place(target);
        let parameters = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        gone_is_fine(self.api(resource, namespace).delete(name, &parameters).await)
    }

    fn patching(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() }
    }
}

fn gone_is_fine<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

/// Namespace and name.
pub(super) fn place(value: &Value) -> (&str, &str) {
    let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

/// How long until `delay` after an instant that an object carries; nothing if that is over.
pub(super) fn time_left(since: &Value, delay: Duration, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = since.as_str()?.parse().ok()?;
    let due = since.checked_add(jiff::SignedDuration::try_from(delay).ok()?).ok()?;
    let left = due.duration_since(now);
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

/// True if a condition of the object is `True`.
pub(super) fn has_condition(value: &Value, kind: &str) -> bool {
    let mut conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}
