//! The status of the `ScheduledMachine`.

use crate::execute::job::Job;
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use crate::transport::operation::Verb;
use five_spot_api::ScheduledMachineStatus;
use five_spot_api::names::FIELD_MANAGER;
use five_spot_core::text;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

impl Job<'_> {
    /// Writes what has changed, and notes since when that has failed. A status that the API server rejects is written
    /// again without its details.
    pub(super) async fn write_status(&self, status: &ScheduledMachineStatus) -> Result<(), CallError> {
        let mut written = self.write(status, Some(&self.observed.version)).await;
        if written.as_ref().is_err_and(CallError::is_unacceptable) {
            tracing::warn!("the API server rejected the status; writing it without details");
            written = self.write(&without_details(status), Some(&self.observed.version)).await;
        }
        // After a conflict the decision is made again.
        self.note_written(written.as_ref().map_or_else(CallError::is_stale, |()| true));
        written
    }

    /// Notes whether the status could be written.
    pub(super) fn note_written(&self, written: bool) {
        let now = self.caches.connection.now();
        self.caches.memories.update(self.key, |memory| {
            memory.unrecorded_since = (!written).then(|| memory.unrecorded_since.unwrap_or(now));
        });
    }

    /// The same, also if someone else has written the object since: an emergency does not wait for another decision.
    pub(super) async fn write_status_regardless(
        &self,
        status: &ScheduledMachineStatus,
    ) -> Result<(), CallError> {
        match self.write_status(status).await {
            Err(error) if error.is_stale() => {
                let written = self.write(status, None).await;
                self.note_written(written.is_ok());
                written
            }
            written => written,
        }
    }

    /// Writes the difference. The version that was decided on goes with it: a status never describes a spec that the
    /// decision has not seen.
    async fn write(&self, status: &ScheduledMachineStatus, version: Option<&str>) -> Result<(), CallError> {
        if *status == self.observed.world.status {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"uid": self.uid(), "resourceVersion": version},
            "status": difference(&to_json(&self.observed.world.status), &to_json(status)),
        });
        let api = self.caches.api(&self.key.namespace, &our_resource());
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let answered = or_absent(api.patch_status(&self.key.name, &parameters, &Patch::Merge(patch)).await)
            .map_err(|error| CallError::new(self.on_object(Verb::WriteStatus), error))?;
        self.keep_object(answered.as_ref());
        Ok(())
    }
}

/// The longest text of a status that was refused, in bytes.
const SHORT: usize = 128;

/// A status without the parts that are only there for people.
fn without_details(status: &ScheduledMachineStatus) -> ScheduledMachineStatus {
    let mut short = status.clone();
    let cut = |text: &mut String| *text = text::bounded(text, SHORT).into_owned();
    short.message.iter_mut().for_each(cut);
    short.conditions.iter_mut().for_each(|condition| cut(&mut condition.message));
    short.reclaims.iter_mut().for_each(|record| cut(&mut record.reason));
    short.drain.iter_mut().for_each(|drain| drain.blocked.clear());
    short
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
    fn a_patch_holds_the_changes_and_nothing_else() {
        let before = json!({"phase": "Active", "drain": {"total": 2, "evicted": 1}, "same": [1], "old": 1, "list": [1, 2]});
        let after = json!({"phase": "Inactive", "drain": {"total": 2, "evicted": 2}, "same": [1], "list": [2], "new": {}});
        let patch =
            json!({"phase": "Inactive", "drain": {"evicted": 2}, "old": null, "list": [2], "new": {}});
        assert_eq!(difference(&before, &after), patch);
    }
}
