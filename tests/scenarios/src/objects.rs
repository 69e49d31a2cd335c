//! Access to objects in any environment: as JSON, with waits by watch that report the last state seen.

use crate::environment::Environment;
use crate::kinds::{ClusterRole, ObjectKind};
use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use serde_json::Value;
use std::time::Duration;

/// The field manager of those who run people.
const FIELD_MANAGER: &str = "5spot-scenario";

impl dyn Environment + '_ {
    /// The objects of a kind, in this scenario's namespace if they are in one.
    pub fn api(&self, kind: ObjectKind) -> Api<DynamicObject> {
        let client = match kind.side {
            ClusterRole::Management => self.management(),
            ClusterRole::Workload => self.workload(),
        };
        let kind = self.spoken(kind);
        if kind.namespaced {
            Api::namespaced_with(client, self.namespace(), &kind.resource())
        } else {
            Api::all_with(client, &kind.resource())
        }
    }

    /// A kind in the version that this environment serves.
    fn spoken(&self, kind: ObjectKind) -> ObjectKind {
        kind.where_cluster_api_is(self.cluster_api())
    }

    /// An object, or null.
    pub async fn get(&self, kind: ObjectKind, name: &str) -> anyhow::Result<Value> {
        match self.api(kind).get(name).await {
            Ok(found) => Ok(json(&found)),
            // The object or its whole kind, which is said in another way.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
            Err(error) => Err(error).with_context(|| format!("get {} {name}", kind.kind)),
        }
    }

    /// All objects of a kind.
    pub async fn list(&self, kind: ObjectKind) -> anyhow::Result<Vec<Value>> {
        let found = self.api(kind).list(&ListParams::default()).await;
        match found {
            Ok(list) => Ok(list.items.iter().map(json).collect()),
            // An undefined kind has no objects.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("list {}", kind.plural)),
        }
    }

    /// Creates an object; kind and version are filled in.
    pub async fn create(&self, kind: ObjectKind, mut object: Value) -> anyhow::Result<Value> {
        self.steps().note(self.now());
        object["apiVersion"] = self.spoken(kind).api_version().into();
        object["kind"] = kind.kind.into();
        let parsed: DynamicObject = serde_json::from_value(object)?;
        let made = self.api(kind).create(&PostParams::default(), &parsed).await;
        Ok(json(&made.with_context(|| format!("create {}", kind.kind))?))
    }

    /// Applies an object; kind and version are filled in.
    pub async fn apply(&self, kind: ObjectKind, mut object: Value) -> anyhow::Result<Value> {
        self.steps().note(self.now());
        object["apiVersion"] = self.spoken(kind).api_version().into();
        object["kind"] = kind.kind.into();
        let name = object["metadata"]["name"].as_str().context("an object has a name")?.to_owned();
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.api(kind).patch(&name, &parameters, &Patch::Apply(object)).await;
        Ok(json(&applied.with_context(|| format!("apply {} {name}", kind.kind))?))
    }

    /// Patches an object by merge.
    pub async fn patch(&self, kind: ObjectKind, name: &str, patch: Value) -> anyhow::Result<Value> {
        self.steps().note(self.now());
        let patched = self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        Ok(json(&patched.with_context(|| format!("patch {} {name}", kind.kind))?))
    }

    /// Patches the status of an object by merge.
    pub async fn patch_status(&self, kind: ObjectKind, name: &str, status: Value) -> anyhow::Result<Value> {
        self.steps().note(self.now());
        let patch = Patch::Merge(serde_json::json!({"status": status}));
        let patched = self.api(kind).patch_status(name, &PatchParams::default(), &patch).await;
        Ok(json(&patched.with_context(|| format!("patch the status of {} {name}", kind.kind))?))
    }

    /// Deletes an object, in the background.
    pub async fn delete(&self, kind: ObjectKind, name: &str) -> anyhow::Result<()> {
        self.delete_with(kind, name, PropagationPolicy::Background).await
    }

    /// Deletes an object in one of the three ways.
    pub async fn delete_with(
        &self,
        kind: ObjectKind,
        name: &str,
        policy: PropagationPolicy,
    ) -> anyhow::Result<()> {
        self.steps().note(self.now());
        let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        self.api(kind)
            .delete(name, &parameters)
            .await
            .with_context(|| format!("delete {} {name}", kind.kind))?;
        Ok(())
    }

    /// Waits until an object is as wanted. A missing one is null.
    pub async fn until(
        &self,
        kind: ObjectKind,
        name: &str,
        what: &str,
        wanted: impl FnMut(&Value) -> bool + Send,
    ) -> anyhow::Result<Value> {
        let wait_limit = self.pace().wait_limit;
        match self.seek(kind, name, wait_limit, wanted).await {
            Ok(found) => Ok(found),
            Err(last) => {
                bail!("waited {wait_limit:?} for {} {name} {what}; it was last seen as {last}", kind.kind)
            }
        }
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, kind: ObjectKind, name: &str) -> anyhow::Result<()> {
        self.until(kind, name, "to be gone", Value::is_null).await.map(drop)
    }

    /// Makes sure that an object stays as it is wanted for a while.
    pub async fn lasts(
        &self,
        kind: ObjectKind,
        name: &str,
        what: &str,
        lasting: Duration,
        mut wanted: impl FnMut(&Value) -> bool + Send,
    ) -> anyhow::Result<()> {
        match self.seek(kind, name, lasting, |object| !wanted(object)).await {
            Err(_) => Ok(()),
            Ok(found) => bail!("{} {name} stopped {what} within {lasting:?}; it was then {found}", kind.kind),
        }
    }

    /// Watches an object until it is as wanted. If that does not happen in time, returns its last state.
    pub(crate) async fn seek(
        &self,
        kind: ObjectKind,
        name: &str,
        within: Duration,
        mut wanted: impl FnMut(&Value) -> bool + Send,
    ) -> Result<Value, Value> {
        let mut last = Value::Null;
        let search = async {
            let mut states = watch_object(self.api(kind), name).default_backoff().boxed();
            loop {
                // A watch that fails is restarted; it never ends.
                let Some(Ok(state)) = states.next().await else { continue };
                let state = state.map_or(Value::Null, |object| json(&object));
                if wanted(&state) {
                    return state;
                }
                last = state;
            }
        };
        // Boxed, because otherwise every scenario that waits would have the whole watch on its stack.
        let found = tokio::time::timeout(within, Box::pin(search)).await;
        found.map_err(|_| last)
    }

    /// Marks a moment as a step of the scenario, such as the opening of a window: its end is timed from then on.
    pub fn step_at(&self, time: Timestamp) {
        self.steps().note(time);
    }

    /// Waits for a moment.
    pub async fn sleep_until(&self, time: Timestamp) {
        let rest = Duration::try_from(time.duration_since(self.now())).unwrap_or(Duration::ZERO);
        tokio::time::sleep(rest).await;
    }

    /// As many seconds as a person would wait for, and more where they cost nothing: a controller whose connection
    /// broke retries after half a minute, and a scenario that is over by then would show nothing.
    pub fn leisurely(&self, seconds: i64) -> i64 {
        if self.pace().is_virtual { seconds * 10 } else { seconds }
    }

    /// The moment that is this many seconds away, in whole seconds.
    pub fn in_seconds(&self, seconds: i64) -> Timestamp {
        Timestamp::from_second(self.now().as_second() + seconds).unwrap_or(Timestamp::MAX)
    }
}

/// An object as JSON, without the record of who wrote which field.
fn json(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    value
}
