//! Our finalizer on the `ScheduledMachine`, beside those of others.

use crate::execute::job::{Job, Warrant};
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason};
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use crate::transport::operation::Verb;
use five_spot_api::names::{FIELD_MANAGER, FINALIZER};
use kube::ResourceExt;
use kube::api::{GetParams, Patch, PatchParams};
use serde_json::json;

/// The most retries when someone else writes the object at the same time.
const ATTEMPTS: u32 = 5;

impl Job<'_> {
    pub(super) async fn add_finalizer(&self) -> Acted {
        self.change_finalizers(Verb::AddFinalizer, |finalizers| {
            (!finalizers.iter().any(|name| name == FINALIZER)).then(|| {
                let ours = std::iter::once(FINALIZER.to_owned());
                finalizers.iter().cloned().chain(ours).collect()
            })
        })
        .await
    }

    pub(super) async fn remove_finalizer(&self, _: Warrant) -> Acted {
        self.change_finalizers(Verb::RemoveFinalizer, |finalizers| {
            finalizers
                .iter()
                .any(|name| name == FINALIZER)
                .then(|| finalizers.iter().filter(|name| *name != FINALIZER).cloned().collect())
        })
        .await
    }

    /// Changes the list as it is at this moment. The version that was read goes with it, so that a finalizer that someone
    /// else adds meanwhile is never lost.
    async fn change_finalizers(
        &self,
        verb: Verb,
        change: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Acted {
        let api = self.caches.api(&self.key.namespace, &our_resource());
        let mut attempt = 0;
        loop {
            let known = GetParams::at(&self.observed.version);
            let found = or_absent(api.get_with(&self.key.name, &known).await)
                .map_err(|error| CallError::new(self.on_object(verb), error))?;
            let Some(object) = found.filter(|object| object.uid().as_deref() == Some(self.uid())) else {
                self.caches.objects.remove(self.key);
                return Err(SkipReason::ObjectGone.into());
            };
            let Some(finalizers) = change(object.finalizers()) else {
                return Err(SkipReason::AlreadyDone.into());
            };
            let patch = json!({"metadata": {
                "resourceVersion": object.resource_version(),
                "finalizers": finalizers,
            }});
            match or_absent(
                api.patch(&self.key.name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await,
            ) {
                Ok(changed) => {
                    self.keep_object(changed.as_ref());
                    return Ok(ActionOutcome::Done);
                }
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(CallError::new(self.on_object(verb), error).into()),
            }
        }
    }
}
