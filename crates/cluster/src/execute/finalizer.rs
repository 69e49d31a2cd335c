//! Our finalizer on the `ScheduledMachine`, beside those of others.

use crate::cache::write_back::remove_object;
use crate::execute::job::{Job, Warrant};
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason, Unfinished};
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use crate::transport::operation::Verb;
use five_spot_api::names::{FIELD_MANAGER, FINALIZER};
use kube::api::{DynamicObject, GetParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
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

    /// Changes the list. The version that it was read at goes with it, so that a finalizer that someone else adds meanwhile is
    /// never lost: after a conflict the object is read, and the change is made again.
    async fn change_finalizers(
        &self,
        verb: Verb,
        change: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Acted {
        let api = self.caches.api(&self.key.namespace, &our_resource());
        let cached =
            self.caches.objects.get(self.key).filter(|item| item.view.view.uid.as_str() == self.uid());
        let mut known = cached.and_then(|item| Some((item.version, change(&item.view.finalizers()?)?)));
        let mut attempt = 0;
        loop {
            let (version, finalizers) = if let Some(known) = known.take() {
                known
            } else {
                let object = self.read_object(&api, verb).await?;
                let finalizers = change(object.finalizers()).ok_or(SkipReason::AlreadyDone)?;
                (object.resource_version().unwrap_or_default(), finalizers)
            };
            let patch = json!({"metadata": {
                "uid": self.uid(),
                "resourceVersion": version,
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

    /// The object as it is at this moment.
    async fn read_object(&self, api: &Api<DynamicObject>, verb: Verb) -> Result<DynamicObject, Unfinished> {
        let known = GetParams::at(&self.observed.version);
        let found = or_absent(api.get_with(&self.key.name, &known).await)
            .map_err(|error| CallError::new(self.on_object(verb), error))?;
        found.filter(|object| object.uid().as_deref() == Some(self.uid())).ok_or_else(|| {
            remove_object(self.caches, self.key);
            SkipReason::ObjectGone.into()
        })
    }
}
