//! The status of the `ScheduledMachine`.

use super::Job;
use crate::error::{CallError, or_absent};
use crate::kinds::our_resource;
use five_spot_api::ScheduledMachineStatus;
use five_spot_api::names::FIELD_MANAGER;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

impl Job<'_> {
    /// Writes what has changed. The version that was decided upon goes with it: a status never speaks of a spec that
    /// the decision has not seen.
    pub(super) async fn report(&self, status: &ScheduledMachineStatus) -> Result<(), CallError> {
        if *status == self.observed.world.status {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"resourceVersion": self.observed.version},
            "status": difference(&to_json(&self.observed.world.status), &to_json(status)),
        });
        let api = self.fleet.api(&self.key.namespace, &our_resource());
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let answered = or_absent(api.patch_status(&self.key.name, &parameters, &Patch::Merge(patch)).await)
            .map_err(|error| {
            CallError::new(format!("write the status of ScheduledMachine {}", self.key), error)
        })?;
        self.keep_object(answered.as_ref());
        Ok(())
    }
}

fn to_json(status: &ScheduledMachineStatus) -> Value {
    serde_json::to_value(status).unwrap_or_default()
}

/// The merge patch that makes `after` of `before`.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(name.clone(), difference(known, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_is_new_and_what_is_gone_and_nothing_else() {
        let before = json!({"phase": "Active", "drain": {"total": 2, "evicted": 1}, "same": [1], "old": 1, "list": [1, 2]});
        let after = json!({"phase": "Inactive", "drain": {"total": 2, "evicted": 2}, "same": [1], "list": [2], "new": {}});
        let patch =
            json!({"phase": "Inactive", "drain": {"evicted": 2}, "old": null, "list": [2], "new": {}});
        assert_eq!(difference(&before, &after), patch);
    }
}
