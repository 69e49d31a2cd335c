//! The Machine and its bootstrap and infrastructure objects.

use crate::cache::caches::machine_key;
use crate::cache::managed_fields::Digest;
use crate::cache::watches;
use crate::cache::write_back::{put_machine, put_provider, remove_machine, remove_provider};
use crate::execute::job::{Claimed, Job, Warrant};
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason};
use crate::transport::error::{CallError, is_unserved, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{CapiVersion, capi_resource};
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::confirm::Template;
use crate::view::render;
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
    pub(super) async fn apply_bootstrap(&self, template: &Template, _: Claimed, cluster: &Uid) -> Acted {
        let desired = render::bootstrap(&template.source(self.key, self.capi()?), cluster);
        self.apply_provider(&template.spec.bootstrap, &desired, &self.observed.world.bootstrap).await
    }

    pub(super) async fn apply_infrastructure(&self, template: &Template, _: Claimed, cluster: &Uid) -> Acted {
        let desired = render::infrastructure(&template.source(self.key, self.capi()?), cluster);
        self.apply_provider(&template.spec.infrastructure, &desired, &self.observed.world.infrastructure)
            .await
    }

    async fn apply_provider(&self, kind: &ProviderKind, desired: &Value, slot: &Slot<ProviderView>) -> Acted {
        let Some(resource) = self.caches.kinds.known(kind) else {
            let target = TargetKind::cluster_api(kind.kind.as_str());
            let missing = DiscoveryError::MissingKind(format!("{} in {}", kind.kind, kind.api_version));
            let operation = Operation::new(Verb::Apply, target, self.desired_key(desired));
            return Err(CallError::new(operation, kube::Error::Discovery(missing)).into());
        };
        let answer = self.apply(&resource, desired, Presence::of(slot)).await;
        if answer.as_ref().is_err_and(|error| is_unserved(&error.source))
            && self.caches.kinds.is_gone(kind).await
        {
            watches::forget_kind(self.caches, kind);
        }
        put_provider(self.caches, kind, &answer?);
        Ok(ActionOutcome::Done)
    }

    pub(super) async fn apply_machine(&self, template: &Template, _: Claimed) -> Acted {
        let version = self.capi()?;
        let desired = render::machine(&template.source(self.key, version));
        let presence = Presence::of(&self.observed.world.machine);
        let object = self.apply(&capi_resource(version, "Machine", "machines"), &desired, presence).await?;
        put_machine(self.caches, &object);
        Ok(ActionOutcome::Done)
    }

    /// Applies an object by server-side apply, and notes our fields of it. An object that was found absent is created, and
    /// nothing else: if there is one by now, the API server answers with a conflict, and everything is read again.
    async fn apply(
        &self,
        resource: &ApiResource,
        desired: &Value,
        presence: Presence,
    ) -> Result<DynamicObject, CallError> {
        let name = self.desired_key(desired);
        let desired = &match presence {
            Presence::Absent => with_version(desired, NO_VERSION),
            Presence::Possible => desired.clone(),
        };
        let api = self.caches.api(&self.key.namespace, resource);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let failed = |verb: Verb| {
            let operation =
                Operation::new(verb, TargetKind::cluster_api(resource.kind.as_str()), name.clone());
            move |error| CallError::new(operation, error)
        };
        let mut answer = api.patch(&name.name, &parameters, &Patch::Apply(desired)).await;
        if is_invalid(&answer)
            && self.drop_old_owner(&api, &name).await.map_err(failed(Verb::RemoveOldOwner))?
        {
            answer = api.patch(&name.name, &parameters, &Patch::Apply(desired)).await;
        }
        let object = answer.map_err(failed(Verb::Apply))?;
        let uid = Uid::from(object.uid().unwrap_or_default());
        self.caches.memories.update(self.key, |memory| memory.compare(uid, Digest::of(&object), true));
        Ok(object)
    }

    fn desired_key(&self, desired: &Value) -> ObjectKey {
        self.key.beside(desired["metadata"]["name"].as_str().unwrap_or_default())
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

    pub(super) async fn exclude_drain(&self, machine: &Uid, volumes: bool) -> Acted {
        let (version, name) = (self.capi()?, machine_key(self.key));
        let mut annotations = json!({annotation::EXCLUDE_NODE_DRAINING: ""});
        if volumes {
            annotations[annotation::EXCLUDE_WAIT_FOR_VOLUME_DETACH] = "".into();
        }
        let patch = json!({
            "metadata": {"uid": machine.as_str(), "annotations": annotations},
            // Machines of an older version of this program have Cluster API's own timeout, which is too short.
            "spec": render::node_deletion_timeout(version),
        });
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let answer = self.machines(version).patch(&name.name, &parameters, &Patch::Merge(patch)).await;
        let answered = or_absent(answer).map_err(|error| {
            CallError::new(Operation::new(Verb::Annotate, TargetKind::cluster_api("Machine"), name), error)
        })?;
        let object = answered.ok_or(SkipReason::ObjectGone)?;
        put_machine(self.caches, &object);
        Ok(ActionOutcome::Done)
    }

    pub(super) async fn delete_machine(&self, warrant: Warrant, machine: &Uid) -> Acted {
        let (api, name) = (self.machines(self.capi()?), machine_key(self.key));
        let answer = self.delete(warrant, &api, "Machine", &name, machine).await;
        if answer.as_ref().is_err_and(CallError::is_refused) {
            self.caches.memories.update(self.key, |memory| memory.delete_refused = Some(machine.clone()));
        }
        match answer? {
            Some(object) => put_machine(self.caches, &object),
            None => remove_machine(self.caches, &name),
        }
        Ok(ActionOutcome::Done)
    }

    pub(super) async fn delete_bootstrap(&self, warrant: Warrant, uid: &Uid) -> Acted {
        let name = self.key.beside(names::bootstrap(&self.key.name));
        self.delete_provider(warrant, &self.observed.world.bootstrap, &name, uid).await
    }

    pub(super) async fn delete_infrastructure(&self, warrant: Warrant, uid: &Uid) -> Acted {
        let name = self.key.beside(names::infrastructure(&self.key.name));
        self.delete_provider(warrant, &self.observed.world.infrastructure, &name, uid).await
    }

    async fn delete_provider(
        &self,
        warrant: Warrant,
        slot: &Slot<ProviderView>,
        name: &ObjectKey,
        uid: &Uid,
    ) -> Acted {
        let kind = slot.ours().map(|object| &object.kind).ok_or(SkipReason::ObjectGone)?;
        let resource = self.caches.kinds.known(kind).ok_or(SkipReason::KindNotServed)?;
        let api = self.caches.api(&self.key.namespace, &resource);
        match self.delete(warrant, &api, &kind.kind, name, uid).await? {
            Some(object) => put_provider(self.caches, kind, &object),
            None => remove_provider(self.caches, kind, name),
        }
        Ok(ActionOutcome::Done)
    }

    /// Deletes this object and no other of its name. Returns it if it is still there, terminating.
    async fn delete(
        &self,
        _: Warrant,
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
        let answer = or_absent(api.delete(&name.name, &parameters).await).map_err(|error| {
            let target = TargetKind::cluster_api(kind);
            CallError::new(Operation::new(Verb::Delete, target, name.clone()), error)
        })?;
        // An object that is gone at once is answered with a status, or with its last state.
        let left = answer.and_then(either::Either::left);
        Ok(left
            .filter(|object| object.metadata.deletion_timestamp.is_some() && !object.finalizers().is_empty()))
    }

    fn machines(&self, version: CapiVersion) -> Api<DynamicObject> {
        self.caches.api(&self.key.namespace, &capi_resource(version, "Machine", "machines"))
    }

    fn capi(&self) -> Result<CapiVersion, SkipReason> {
        self.caches.capi().ok_or(SkipReason::NoClusterApi)
    }
}

/// The presence of an object, as far as the decision to apply it knows.
#[derive(Clone, Copy, Debug)]
enum Presence {
    Absent,
    Possible,
}

impl Presence {
    const fn of<T>(slot: &Slot<T>) -> Self {
        match slot {
            Slot::Absent => Self::Absent,
            Slot::Ours(_) | Slot::Foreign { .. } | Slot::Unknown => Self::Possible,
        }
    }
}

/// A resource version that no object ever has: the first write to etcd gets revision 2. An apply with it creates an object,
/// but conflicts with every existing one.
const NO_VERSION: &str = "1";

fn with_version(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = version.into();
    object
}

fn is_invalid<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 422)
}
