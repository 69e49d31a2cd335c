//! The `ScheduledMachine` itself.

use super::Job;
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use five_spot_api::names::FIELD_MANAGER;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

impl Job<'_> {
    /// The life of the object that was decided upon.
    pub(super) fn uid(&self) -> &str {
        self.observed.world.object.uid.as_str()
    }

    /// Puts what a write has answered onto the shelf. An object whose last finalizer is gone is gone itself.
    pub(super) fn keep_object(&self, answered: Option<&DynamicObject>) {
        match answered {
            Some(object) => {
                self.fleet.put_object(object);
            }
            None => self.fleet.objects.remove(self.key),
        }
    }

    /// Switches the schedule off, in one patch with an override that would switch it on again.
    pub(super) async fn disable_schedule(&self) -> Result<(), CallError> {
        let overridden = match &self.observed.spec {
            Ok(spec) => spec.handling.override_up,
            Err(spec) => spec.handling.override_up,
        };
        let mut spec = json!({"schedule": {"enabled": false}});
        if overridden {
            spec["override"] = Value::Null;
        }
        let api = self.fleet.api(&self.key.namespace, &our_resource());
        let patch = Patch::Merge(json!({"spec": spec}));
        let answered = or_absent(api.patch(&self.key.name, &PatchParams::apply(FIELD_MANAGER), &patch).await)
            .map_err(|error| {
                CallError::new(format!("disable the schedule of ScheduledMachine {}", self.key), error)
            })?;
        self.keep_object(answered.as_ref());
        Ok(())
    }
}
