//! Confirmation by live reads.
//!
//! The caches may lag, and they cannot show an object that does not carry our label. Before anything is created, deleted
//! or released, the facts that the decision depends on are therefore read from the API server, and the decision is made
//! again. [`Confirmed`] is the proof of that: only [`confirm`] makes one.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::managed_fields;
use crate::cache::memory::Part;
use crate::cache::project::{self, Belongs};
use crate::cache::references::default_secret;
use crate::cache::store::SyncState;
use crate::cache::write_back::{
    put_machine, put_object, put_provider, remove_machine, remove_object, remove_provider,
};
use crate::cache::{secrets, watches};
use crate::transport::error::{CallError, is_unserved};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{CapiVersion, capi_resource, our_resource};
use crate::transport::kubeconfig;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::assemble::{Cached, assemble};
use crate::view::confirm_claim::{Occasion, confirm_claim};
use crate::view::confirm_node::{confirm_node, read};
use crate::view::observe::observe;
use crate::view::observed::Observed;
use crate::view::render::{self, Source};
use five_spot_api::{ScheduledMachineSpec, names};
use five_spot_core::world::{Failures, ProviderView, Slot, Uid, World};
use five_spot_core::{Decision, MachineIdentity, ValidSpec};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time that the Node is read for after a conflict. The conflict was seldom about the Node, whose cluster may hang, and the
/// decision that is made again may be an emergency. Three conflicts in a row still leave it two of its five seconds.
const NODE_AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// The objects that a confirmation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmScope {
    /// Everything that the decision was made on.
    Everything,
    /// Everything but the bootstrap and infrastructure objects: the decision only creates them, and the API server refuses
    /// that for an object that exists.
    AllButProviderObjects,
}

impl ConfirmScope {
    /// The scope that confirms a decision about this world.
    pub fn of(decision: &Decision, world: &World) -> Self {
        if decision.only_creates_provider_objects(world) {
            Self::AllButProviderObjects
        } else {
            Self::Everything
        }
    }
}

/// An object and its world, read from the API server a moment ago.
pub struct Confirmed {
    observed: Box<Observed>,
    template: Option<Template>,
    scope: ConfirmScope,
}

impl Confirmed {
    /// The object and its world.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The object and its world, for facts that only the caller knows.
    pub fn observed_mut(&mut self) -> &mut Observed {
        &mut self.observed
    }

    /// Returns true if everything that a decision about this world depends on has been read.
    pub fn suffices_for(&self, decision: &Decision) -> bool {
        self.scope == ConfirmScope::Everything
            || ConfirmScope::of(decision, &self.observed.world) == self.scope
    }

    /// The object and its world alone.
    pub(super) fn into_observed(self) -> Box<Observed> {
        self.observed
    }

    /// The spec as it was written, from which objects are made; `None` if it is invalid.
    pub(crate) const fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }
}

/// The objects of the provider that a Machine refers to.
#[derive(Clone, Copy)]
enum ProviderPart {
    Bootstrap,
    Infrastructure,
}

impl From<ProviderPart> for Part {
    fn from(part: ProviderPart) -> Self {
        match part {
            ProviderPart::Bootstrap => Self::Bootstrap,
            ProviderPart::Infrastructure => Self::Infrastructure,
        }
    }
}

/// The parts of a `ScheduledMachine` from which objects are made. No cache keeps them.
pub(crate) struct Template {
    raw: ScheduledMachineSpec,
    pub(crate) spec: Arc<ValidSpec>,
    uid: Uid,
}

impl Template {
    /// The text that names the physical machine.
    pub(crate) fn machine_identity(&self) -> Option<String> {
        MachineIdentity::text(&self.raw)
    }

    /// The input of rendering.
    pub(crate) fn source<'a>(&'a self, key: &'a ObjectKey, capi_version: CapiVersion) -> Source<'a> {
        Source {
            namespace: &key.namespace,
            name: &key.name,
            uid: &self.uid,
            raw: &self.raw,
            spec: &self.spec,
            capi_version,
        }
    }
}

/// Reads the facts about an object from the API server, and observes the object again. Returns `None` if it is gone, or
/// if something has not been read yet.
pub async fn confirm(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    observed: &Observed,
    scope: ConfirmScope,
    failures: &Failures,
) -> Result<Option<Confirmed>, CallError> {
    let template = read_facts(caches, key, observed, (Occasion::Confirm, scope)).await?;
    caches.note_confirmed(key);
    let observed = observe(caches, key, failures).await?;
    Ok(observed.map(|observed| Confirmed { observed, template, scope }))
}

/// Reads the facts about an object from the API server into the caches, after a write failed because something has changed.
pub async fn reread(caches: &Arc<Caches>, key: &ObjectKey, failures: &Failures) -> Result<(), CallError> {
    if let Cached::Known(observed) = assemble(caches, key, failures).await {
        read_facts(caches, key, &observed, (Occasion::Conflict, ConfirmScope::Everything)).await?;
    }
    Ok(())
}

async fn read_facts(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    observed: &Observed,
    (occasion, scope): (Occasion, ConfirmScope),
) -> Result<Option<Template>, CallError> {
    let template = confirm_object(caches, key).await?;
    let cluster = observed.world.cluster.as_ref().map(|cluster| &cluster.uid);
    let provider = |part, slot| confirm_provider(caches, key, part, slot, template.as_ref(), cluster);
    let providers = async {
        match scope {
            ConfirmScope::AllButProviderObjects => Ok(()),
            ConfirmScope::Everything => {
                let bootstrap = provider(ProviderPart::Bootstrap, &observed.world.bootstrap);
                let infrastructure = provider(ProviderPart::Infrastructure, &observed.world.infrastructure);
                futures::try_join!(bootstrap, infrastructure).map(|((), ())| ())
            }
        }
    };
    // None of these depends on another: together they take as long as one.
    futures::try_join!(confirm_machine(caches, key, template.as_ref()), providers)?;
    confirm_secret(caches, key, template.as_ref()).await?;
    let machine = template.as_ref().and_then(|template| template.spec.identity);
    confirm_claim(caches, key, machine, &observed.world.claims, occasion).await?;
    let reading = Box::pin(confirm_node(caches, key, observed));
    match occasion {
        Occasion::Confirm => reading.await?,
        Occasion::Conflict => timeout(NODE_AFTER_CONFLICT, reading).await.unwrap_or(Ok(()))?,
    }
    Ok(template)
}

/// Reads the object itself.
async fn confirm_object(caches: &Caches, key: &ObjectKey) -> Result<Option<Template>, CallError> {
    let api = caches.api(&key.namespace, &our_resource());
    let found = read(&api, &key.name, caches.objects.version(key)).await.map_err(|error| {
        CallError::new(Operation::new(Verb::Get, TargetKind::ScheduledMachine, key.clone()), error)
    })?;
    let Some(object) = found else {
        remove_object(caches, key);
        return Ok(None);
    };
    Ok(put_object(caches, &object).and_then(|facts| {
        let raw = project::read_spec(&object).ok()?;
        Some(Template { raw, spec: facts.spec.ok()?, uid: facts.view.uid })
    }))
}

async fn confirm_machine(
    caches: &Caches,
    key: &ObjectKey,
    template: Option<&Template>,
) -> Result<(), CallError> {
    let Some(version) = caches.capi() else { return Ok(()) };
    let name = machine_key(key);
    let api = caches.api(&key.namespace, &capi_resource(version, "Machine", "machines"));
    let found = read(&api, &name.name, caches.machines.version(&name)).await.map_err(|error| {
        CallError::new(Operation::new(Verb::Get, TargetKind::cluster_api("Machine"), name.clone()), error)
    })?;
    let desired = template.and_then(|template| Some(render::machine(&template.source(key, caches.capi()?))));
    match compare(caches, key, Part::Machine, found, desired.as_ref()) {
        Some(object) => put_machine(caches, &object),
        None => remove_machine(caches, &name),
    }
    Ok(())
}

/// Reads the kubeconfig Secret, if a Machine may be about to be made and the Secret seems to be missing: the cluster of
/// the Node is fixed when the Machine is made.
async fn confirm_secret(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    template: Option<&Template>,
) -> Result<(), CallError> {
    let is_deleted = caches.objects.view(key).is_none_or(|object| object.view.deletion.is_some());
    let has_machine = caches.machines.view(&machine_key(key)).is_some();
    let Some(template) = template
        .filter(|template| !is_deleted && !has_machine && template.spec.kubeconfig_secret.is_none())
        .filter(|_| caches.allows_management_nodes(&key.namespace))
    else {
        return Ok(());
    };
    let (name, in_secret) = default_secret(&template.spec);
    let name = key.beside(name);
    let store = secrets::secret(caches, &name);
    if store.sync_state() != SyncState::Synced || store.view(&name).is_some() {
        return Ok(());
    }
    let api: Api<Secret> = Api::namespaced(caches.client.clone(), &name.namespace);
    let parameters = ListParams::default().fields(&format!("metadata.name={}", name.name));
    let found = api.list(&parameters).await.map_err(|error| {
        CallError::new(Operation::new(Verb::Get, TargetKind::Secret, name.clone()), error)
    })?;
    for secret in &found.items {
        let version = secret.resource_version().unwrap_or_default();
        store.put(name.clone(), &version, kubeconfig::secret(secret, &[in_secret.clone()].into()));
    }
    Ok(())
}

async fn confirm_provider(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    part: ProviderPart,
    slot: &Slot<ProviderView>,
    template: Option<&Template>,
    cluster: Option<&Uid>,
) -> Result<(), CallError> {
    let wanted = template.map(|template| match part {
        ProviderPart::Bootstrap => &template.spec.bootstrap,
        ProviderPart::Infrastructure => &template.spec.infrastructure,
    });
    let Some(kind) = slot.ours().map(|view| &view.kind).or(wanted) else { return Ok(()) };
    let Some(resource) = caches.kinds.known(kind) else { return Ok(()) };
    let name = key.beside(match part {
        ProviderPart::Bootstrap => names::bootstrap(&key.name),
        ProviderPart::Infrastructure => names::infrastructure(&key.name),
    });
    let found = read(
        &caches.api(&key.namespace, &resource),
        &name.name,
        watches::provider(caches, kind).version(&name),
    )
    .await;
    let found = match found {
        // The kind itself is gone, and all of its objects with it.
        Err(error) if is_unserved(&error) && caches.kinds.is_gone(kind).await => {
            watches::forget_kind(caches, kind);
            return Ok(());
        }
        answered => answered.map_err(|error| {
            let target = TargetKind::cluster_api(kind.kind.as_str());
            CallError::new(Operation::new(Verb::Get, target, name.clone()), error)
        })?,
    };
    let desired = template.zip(cluster).filter(|_| wanted == Some(kind)).and_then(|(template, cluster)| {
        let source = template.source(key, caches.capi()?);
        Some(match part {
            ProviderPart::Bootstrap => render::bootstrap(&source, cluster),
            ProviderPart::Infrastructure => render::infrastructure(&source, cluster),
        })
    });
    match compare(caches, key, part.into(), found, desired.as_ref()) {
        Some(object) => put_provider(caches, kind, &object),
        None => remove_provider(caches, kind, &name),
    }
    Ok(())
}

/// Notes whether an object is ours and as we would apply it. Returns it if it is ours.
fn compare(
    caches: &Caches,
    key: &ObjectKey,
    part: Part,
    found: Option<DynamicObject>,
    desired: Option<&Value>,
) -> Option<DynamicObject> {
    let belongs = found.as_ref().map(|object| project::belongs(object, &key.name));
    caches.memories.update(key, |memory| match belongs {
        Some(Belongs::Other(owner)) => {
            memory.foreign.insert(part, owner);
            None
        }
        Some(Belongs::Us) | None => {
            memory.foreign.remove(&part);
            let object = found?;
            let uid = Uid::from(object.uid().unwrap_or_default());
            let drifted = desired.is_some_and(|desired| managed_fields::has_drifted(desired, &object));
            memory.compare(uid, managed_fields::Digest::of(&object), !drifted);
            Some(object)
        }
    })
}
