//! The `ScheduledMachine` itself.

use crate::cache::write_back::{put_object, remove_object};
use crate::execute::job::Job;
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason, Unfinished};
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use crate::transport::operation::Verb;
use five_spot_api::names::FIELD_MANAGER;
use kube::api::{DynamicObject, GetParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// The most retries when someone else writes the object at the same time.
const ATTEMPTS: u32 = 5;

impl Job<'_> {
    /// Stores the answer to a write. An object whose last finalizer is gone is gone itself.
    pub(super) fn keep_object(&self, answered: Option<&DynamicObject>) {
        match answered {
            Some(object) => {
                put_object(self.caches, object);
            }
            None => remove_object(self.caches, self.key),
        }
    }

    /// Disables the schedule, in one patch with an override that would enable it again. An override that was edited
    /// meanwhile stays unless it enables the schedule as well.
    pub(super) async fn disable_schedule(&self) -> Acted {
        let cached =
            self.caches.objects.get(self.key).filter(|item| item.view.view.uid.as_str() == self.uid());
        let known = cached.map(|item| {
            let handling = match &item.view.spec {
                Ok(spec) => &spec.handling,
                Err(spec) => &spec.handling,
            };
            (item.version, without_schedule(handling.override_up))
        });
        self.change_object(Verb::DisableSchedule, known, |object| {
            let field = |path: &str| object.data.pointer(path);
            let enabled = field("/spec/schedule/enabled").and_then(Value::as_bool).unwrap_or(true);
            let overridden = field("/spec/override/state").is_some_and(|state| state == "up");
            (enabled || overridden).then(|| without_schedule(overridden))
        })
        .await
    }

    /// Changes the object by a merge patch. The UID and the version that the patch was made for go with it, so that nothing
    /// that someone else writes meanwhile is lost, and another object of the same name stays as it is: after a conflict the
    /// object is read, and the patch is made again. `known` is a version with its patch, and spares the first read.
    pub(super) async fn change_object(
        &self,
        verb: Verb,
        mut known: Option<(String, Value)>,
        change: impl Fn(&DynamicObject) -> Option<Value>,
    ) -> Acted {
        let api = self.caches.api(&self.key.namespace, &our_resource());
        let mut attempt = 0;
        loop {
            let (version, mut patch) = if let Some(known) = known.take() {
                known
            } else {
                let object = self.read_object(&api, verb).await?;
                let patch = change(&object).ok_or(SkipReason::AlreadyDone)?;
                (object.resource_version().unwrap_or_default(), patch)
            };
            patch["metadata"]["uid"] = self.uid().into();
            patch["metadata"]["resourceVersion"] = version.into();
            let parameters = PatchParams::apply(FIELD_MANAGER);
            match or_absent(api.patch(&self.key.name, &parameters, &Patch::Merge(patch)).await) {
                Ok(changed) => {
                    self.keep_object(changed.as_ref());
                    return changed.map(|_| ActionOutcome::Done).ok_or_else(|| SkipReason::ObjectGone.into());
                }
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(CallError::new(self.on_object(verb), error).into()),
            }
        }
    }

    /// The object as it is at this moment.
    async fn read_object(&self, api: &Api<DynamicObject>, verb: Verb) -> Result<DynamicObject, Unfinished> {
        let known = GetParams::at(&self.observed.version);
        let found = or_absent(api.get_with(&self.key.name, &known).await)
            .map_err(|error| CallError::new(self.on_object(verb), error))?;
        match found {
            Some(object) if object.uid().as_deref() == Some(self.uid()) => Ok(object),
            other => {
                self.keep_object(other.as_ref());
                Err(SkipReason::ObjectGone.into())
            }
        }
    }
}

/// The merge patch that disables the schedule and, if it is `overridden`, removes the override.
fn without_schedule(overridden: bool) -> Value {
    let mut spec = json!({"schedule": {"enabled": false}});
    if overridden {
        spec["override"] = Value::Null;
    }
    json!({"spec": spec})
}
