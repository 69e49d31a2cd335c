//! The `ScheduledMachine` itself.

use crate::cache::write_back::{put_object, remove_object};
use crate::execute::job::Job;
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason};
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use crate::transport::operation::Verb;
use five_spot_api::names::FIELD_MANAGER;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

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

    /// Disables the schedule, in one patch with an override that would enable it again.
    pub(super) async fn disable_schedule(&self) -> Acted {
        let overridden = match &self.observed.spec {
            Ok(spec) => spec.handling.override_up,
            Err(spec) => spec.handling.override_up,
        };
        let mut spec = json!({"schedule": {"enabled": false}});
        if overridden {
            spec["override"] = Value::Null;
        }
        let api = self.caches.api(&self.key.namespace, &our_resource());
        let patch = Patch::Merge(json!({"spec": spec}));
        let answered = or_absent(api.patch(&self.key.name, &PatchParams::apply(FIELD_MANAGER), &patch).await)
            .map_err(|error| CallError::new(self.on_object(Verb::DisableSchedule), error))?;
        self.keep_object(answered.as_ref());
        if answered.is_none() {
            return Err(SkipReason::ObjectGone.into());
        }
        Ok(ActionOutcome::Done)
    }
}
