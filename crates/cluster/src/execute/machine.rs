//! The Machine and its bootstrap and infrastructure objects.

use super::Job;
use crate::cache::drift::Digest;
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::capi_resource;
use crate::view::render::{self, CapiVersion};
use five_spot_api::names::{self, FIELD_MANAGER, annotation};
use five_spot_core::ProviderKind;
use five_spot_core::world::{ProviderView, Slot, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy,
};
use kube::error::DiscoveryError;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

impl Job<'_> {
    pub(super) async fn apply_bootstrap(&self, cluster: &Uid) -> Result<(), CallError> {
        let Some(original) = self.original else { return Ok(()) };
        let Some(source) = self.fleet.source(self.key, original) else { return Ok(()) };
        let desired = render::bootstrap(&source, cluster);
        self.apply_provider(&original.spec.bootstrap, &desired).await
    }

    pub(super) async fn apply_infrastructure(&self, cluster: &Uid) -> Result<(), CallError> {
        let Some(original) = self.original else { return Ok(()) };
        let Some(source) = self.fleet.source(self.key, original) else { return Ok(()) };
        let desired = render::infrastructure(&source, cluster);
        self.apply_provider(&original.spec.infrastructure, &desired).await
    }

    async fn apply_provider(&self, kind: &ProviderKind, desired: &Value) -> Result<(), CallError> {
        let Some(resource) = self.fleet.kinds.known(kind) else {
            let call = format!("CAPI operation failed: apply {} for {}", kind.kind, self.key);
            let missing = DiscoveryError::MissingKind(format!("{} in {}", kind.kind, kind.api_version));
            return Err(CallError::new(call, kube::Error::Discovery(missing)));
        };
        let object = self.apply(&resource, desired).await?;
        self.fleet.put_provider(kind, &object);
        Ok(())
    }

    pub(super) async fn apply_machine(&self) -> Result<(), CallError> {
        let Some(source) = self.original.and_then(|original| self.fleet.source(self.key, original)) else {
            return Ok(());
        };
        let object = self
            .apply(&capi_resource(source.capi_version, "Machine", "machines"), &render::machine(&source))
            .await?;
        self.fleet.put_machine(&object);
        Ok(())
    }

    /// Applies an object by server-side apply, and remembers what of it is ours now.
    async fn apply(&self, resource: &ApiResource, desired: &Value) -> Result<DynamicObject, CallError> {
        let name = self.key.beside(desired["metadata"]["name"].as_str().unwrap_or_default());
        let api = self.fleet.api(&self.key.namespace, resource);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let call = |verb: &str| format!("CAPI operation failed: {verb} {} {name}", resource.kind);
        let mut answer = api.patch(&name.name, &parameters, &Patch::Apply(desired)).await;
        if is_invalid(&answer)
            && self.drop_old_owner(&api, &name).await.map_err(|error| CallError::new(call("mend"), error))?
        {
            answer = api.patch(&name.name, &parameters, &Patch::Apply(desired)).await;
        }
        let object = answer.map_err(|error| CallError::new(call("apply"), error))?;
        let uid = Uid::from(object.uid().unwrap_or_default());
        self.fleet.remember(self.key, |memory| memory.compare(uid, Digest::of(&object), true));
        Ok(object)
    }

    /// Removes references to a `ScheduledMachine` of our name with another UID, as a backup brings them back: an object
    /// may have one controller only. False if there are none.
    async fn drop_old_owner(&self, api: &Api<DynamicObject>, name: &ObjectKey) -> Result<bool, kube::Error> {
        let Some(object) = or_absent(api.get(&name.name).await)? else { return Ok(false) };
        let is_old = |owner: &OwnerReference| {
            owner.kind == names::KIND && *owner.name == *self.key.name && owner.uid != self.uid()
        };
        let owners = object.owner_references();
        if !owners.iter().any(is_old) {
            return Ok(false);
        }
        let kept: Vec<&OwnerReference> = owners.iter().filter(|owner| !is_old(owner)).collect();
        let patch =
            json!({"metadata": {"resourceVersion": object.resource_version(), "ownerReferences": kept}});
        api.patch(&name.name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await?;
        Ok(true)
    }

    pub(super) async fn exclude_drain(&self, machine: &Uid, volumes: bool) -> Result<(), CallError> {
        let Some((api, name)) = self.machines() else { return Ok(()) };
        let mut annotations = json!({annotation::EXCLUDE_NODE_DRAINING: ""});
        if volumes {
            annotations[annotation::EXCLUDE_WAIT_FOR_VOLUME_DETACH] = "".into();
        }
        // Machines of an older version of this program have Cluster API's own timeout, which is too short.
        let version = self.fleet.capi().unwrap_or(CapiVersion::V1Beta2);
        let patch = json!({
            "metadata": {"uid": machine.as_str(), "annotations": annotations},
            "spec": render::node_deletion_timeout(version),
        });
        let answer =
            or_absent(api.patch(&name.name, &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await);
        let answered = answer.map_err(|error| {
            CallError::new(format!("CAPI operation failed: annotate Machine {name}"), error)
        })?;
        if let Some(object) = answered {
            self.fleet.put_machine(&object);
        }
        Ok(())
    }

    pub(super) async fn delete_machine(&self, machine: &Uid) -> Result<(), CallError> {
        let Some((api, name)) = self.machines() else { return Ok(()) };
        let answer = self.delete(&api, "Machine", &name, machine).await;
        if answer.as_ref().is_err_and(CallError::is_refused) {
            self.fleet.remember(self.key, |memory| memory.delete_refused = Some(machine.clone()));
        }
        match answer? {
            Some(object) => self.fleet.put_machine(&object),
            None => {
                self.fleet.machines.remove(&name);
            }
        }
        Ok(())
    }

    pub(super) async fn delete_bootstrap(&self, uid: &Uid) -> Result<(), CallError> {
        let name = self.key.beside(names::bootstrap(&self.key.name));
        self.delete_provider(&self.observed.world.bootstrap, &name, uid).await
    }

    pub(super) async fn delete_infrastructure(&self, uid: &Uid) -> Result<(), CallError> {
        let name = self.key.beside(names::infrastructure(&self.key.name));
        self.delete_provider(&self.observed.world.infrastructure, &name, uid).await
    }

    async fn delete_provider(
        &self,
        slot: &Slot<ProviderView>,
        name: &ObjectKey,
        uid: &Uid,
    ) -> Result<(), CallError> {
        let Some(kind) = slot.ours().map(|object| &object.kind) else { return Ok(()) };
        let Some(resource) = self.fleet.kinds.known(kind) else { return Ok(()) };
        let api = self.fleet.api(&self.key.namespace, &resource);
        match self.delete(&api, &kind.kind, name, uid).await? {
            Some(object) => self.fleet.put_provider(kind, &object),
            None => {
                self.fleet.provider(kind).remove(name);
            }
        }
        Ok(())
    }

    /// Deletes this object and no other of its name. Returns it if it is still there, terminating.
    async fn delete(
        &self,
        api: &Api<DynamicObject>,
        kind: &str,
        name: &ObjectKey,
        uid: &Uid,
    ) -> Result<Option<DynamicObject>, CallError> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.as_str().to_owned()), resource_version: None }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let answer = or_absent(api.delete(&name.name, &parameters).await)
            .map_err(|error| CallError::new(format!("CAPI operation failed: delete {kind} {name}"), error))?;
        // An object that is gone at once is answered with a status, or with its last state.
        let left = answer.and_then(either::Either::left);
        Ok(left
            .filter(|object| object.metadata.deletion_timestamp.is_some() && !object.finalizers().is_empty()))
    }

    fn machines(&self) -> Option<(Api<DynamicObject>, ObjectKey)> {
        let resource = capi_resource(self.fleet.capi()?, "Machine", "machines");
        let name = self.key.beside(names::machine(&self.key.name));
        Some((self.fleet.api(&self.key.namespace, &resource), name))
    }
}

fn is_invalid<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 422)
}
