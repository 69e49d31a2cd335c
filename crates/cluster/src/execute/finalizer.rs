//! Our finalizer, beside those of others.

use super::Job;
use crate::transport::error::{CallError, or_absent};
use crate::transport::kinds::our_resource;
use five_spot_api::names::{FIELD_MANAGER, FINALIZER};
use kube::ResourceExt;
use kube::api::{GetParams, Patch, PatchParams};
use serde_json::json;

/// How often a finalizer is tried again when someone else writes the object at the same time.
const ATTEMPTS: u32 = 5;

impl Job<'_> {
    pub(super) async fn add_finalizer(&self) -> Result<(), CallError> {
        self.change_finalizers("add the finalizer to", |finalizers| {
            (!finalizers.iter().any(|name| name == FINALIZER)).then(|| {
                let ours = std::iter::once(FINALIZER.to_owned());
                finalizers.iter().cloned().chain(ours).collect()
            })
        })
        .await
    }

    pub(super) async fn remove_finalizer(&self) -> Result<(), CallError> {
        self.change_finalizers("remove the finalizer from", |finalizers| {
            finalizers
                .iter()
                .any(|name| name == FINALIZER)
                .then(|| finalizers.iter().filter(|name| *name != FINALIZER).cloned().collect())
        })
        .await
    }

    /// Changes the list as it is at this moment: the version that was read goes with it, so that a finalizer which
    /// someone else adds meanwhile is never lost.
    async fn change_finalizers(
        &self,
        what: &str,
        change: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Result<(), CallError> {
        let api = self.fleet.api(&self.key.namespace, &our_resource());
        let call = || format!("{what} ScheduledMachine {}", self.key);
        let mut attempt = 0;
        loop {
            let known = GetParams::at(&self.observed.version);
            let found = or_absent(api.get_with(&self.key.name, &known).await)
                .map_err(|error| CallError::new(call(), error))?;
            let Some(object) = found.filter(|object| object.uid().as_deref() == Some(self.uid())) else {
                self.fleet.objects.remove(self.key);
                return Ok(());
            };
            let Some(finalizers) = change(object.finalizers()) else { return Ok(()) };
            let patch = json!({"metadata": {
                "resourceVersion": object.resource_version(),
                "finalizers": finalizers,
            }});
            match or_absent(
                api.patch(&self.key.name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await,
            ) {
                Ok(changed) => {
                    self.keep_object(changed.as_ref());
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(CallError::new(call(), error)),
            }
        }
    }
}
