//! Looking twice before a leap.
//!
//! A shelf may lag behind, and it cannot show what is not labelled as ours. Before anything is made, deleted or
//! released, what the decision rests upon is therefore read from the API server itself, and decided upon again.

use crate::cache::cause::Cause;
use crate::cache::drift;
use crate::cache::fleet::{Fleet, Inner};
use crate::cache::memory::Place;
use crate::cache::project::{self, Belongs, belongs};
use crate::cache::store::Condition;
use crate::cache::workload::Link;
use crate::transport::error::{CallError, explain, is_unserved, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::{capi_resource, our_resource};
use crate::transport::kubeconfig;
use crate::view::observe::{Observed, default_secret, node_key};
use crate::view::render::{self, Source};
use five_spot_api::{ScheduledMachineSpec, names};
use five_spot_core::world::{FormerNode, NodeName, Slot, Uid};
use five_spot_core::{ProviderKind, ValidSpec};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::api::{DynamicObject, GetParams, ListParams, VersionMatch};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;

/// The most pods that are asked for at once.
const POD_PAGE: u32 = 500;

/// A `ScheduledMachine` as it was just read, with the parts that no shelf keeps.
#[derive(Clone, Debug)]
pub struct Original {
    pub(crate) raw: Arc<ScheduledMachineSpec>,
    pub(crate) spec: Arc<ValidSpec>,
    pub(crate) uid: Uid,
}

impl Fleet {
    /// Reads what a decision about this object rests upon from the API server, onto the shelves.
    pub async fn refresh(&self, key: &ObjectKey, observed: &Observed) -> Result<Option<Original>, CallError> {
        let inner = &self.inner;
        let original = inner.refresh_object(key).await?;
        inner.refresh_machine(key, original.as_ref()).await?;
        inner.refresh_way(key, original.as_ref()).await?;
        let cluster = observed.world.cluster.as_ref().map(|cluster| &cluster.uid);
        for (place, slot) in [
            (Place::Bootstrap, &observed.world.bootstrap),
            (Place::Infrastructure, &observed.world.infrastructure),
        ] {
            inner.refresh_provider(key, place, slot, original.as_ref(), cluster).await?;
        }
        inner.refresh_node(key, observed).await?;
        Ok(original)
    }
}

impl Inner {
    /// Reads the object itself. What it wants comes back only if it can be understood.
    pub(crate) async fn refresh_object(&self, key: &ObjectKey) -> Result<Option<Original>, CallError> {
        let api = self.api(&key.namespace, &our_resource());
        let found = read(&api, &key.name, self.objects.version(key))
            .await
            .map_err(|error| CallError::new(format!("get ScheduledMachine {key}"), error))?;
        let Some(object) = found else {
            self.objects.remove(key);
            return Ok(None);
        };
        Ok(self.put_object(&object))
    }

    /// Puts a `ScheduledMachine` on its shelf.
    pub(crate) fn put_object(&self, object: &DynamicObject) -> Option<Original> {
        let facts = project::scheduled_machine(object);
        let (key, version) = (ObjectKey::of(object), object.resource_version().unwrap_or_default());
        if object.metadata.deletion_timestamp.is_some() && object.finalizers().is_empty() {
            // With the last finalizer the object itself goes, whether its watch tells so or not.
            self.objects.see(&version);
            self.objects.remove(&key);
            self.tell(key, Cause::Object);
            return None;
        }
        // Otherwise the news of our own write, should they overtake its answer, would count as somebody else's.
        self.remember(&key, |memory| memory.hear(&facts.view, facts.force_reconcile.as_deref()));
        self.objects.put(key, &version, facts.clone());
        let raw = project::read_spec(object).ok()?;
        Some(Original { raw: Arc::new(raw), spec: facts.spec.ok()?, uid: facts.view.uid })
    }

    async fn refresh_machine(&self, key: &ObjectKey, original: Option<&Original>) -> Result<(), CallError> {
        let Some(version) = self.capi() else { return Ok(()) };
        let name = key.beside(names::machine(&key.name));
        let api = self.api(&key.namespace, &capi_resource(version, "Machine", "machines"));
        let found = read(&api, &name.name, self.machines.version(&name))
            .await
            .map_err(|error| CallError::new(format!("CAPI operation failed: get Machine {name}"), error))?;
        let desired = original.and_then(|original| {
            let source = self.source(key, original)?;
            Some(render::machine(&source))
        });
        match self.judge(key, Place::Machine, found, desired.as_ref()) {
            Some(object) => self.put_machine(&object),
            None => {
                self.machines.remove(&name);
            }
        }
        Ok(())
    }

    /// Reads the Secret that leads to the Nodes, if a Machine may be about to be made and there seems to be no Secret: which
    /// cluster the Node of a Machine is in is settled when it is made.
    async fn refresh_way(
        self: &Arc<Self>,
        key: &ObjectKey,
        original: Option<&Original>,
    ) -> Result<(), CallError> {
        let is_deleted = self.objects.view(key).is_none_or(|object| object.view.deletion.is_some());
        let has_machine = self.machines.view(&key.beside(names::machine(&key.name))).is_some();
        let Some(original) = original
            .filter(|original| !is_deleted && !has_machine && original.spec.kubeconfig_secret.is_none())
            .filter(|_| self.allows_management_nodes(&key.namespace))
        else {
            return Ok(());
        };
        let (name, in_secret) = default_secret(&original.spec);
        let name = key.beside(name);
        let shelf = self.secret(&name);
        if shelf.condition() != Condition::Filled || shelf.view(&name).is_some() {
            return Ok(());
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &name.namespace);
        let parameters = ListParams::default().fields(&format!("metadata.name={}", name.name));
        let found = api
            .list(&parameters)
            .await
            .map_err(|error| CallError::new(format!("look for Secret {name}"), error))?;
        for secret in &found.items {
            let version = secret.resource_version().unwrap_or_default();
            shelf.put(name.clone(), &version, kubeconfig::secret(secret, &[in_secret.clone()].into()));
        }
        Ok(())
    }

    async fn refresh_provider(
        self: &Arc<Self>,
        key: &ObjectKey,
        place: Place,
        slot: &Slot<five_spot_core::world::ProviderView>,
        original: Option<&Original>,
        cluster: Option<&Uid>,
    ) -> Result<(), CallError> {
        let wanted = original.map(|original| match place {
            Place::Bootstrap => &original.spec.bootstrap,
            Place::Infrastructure | Place::Machine => &original.spec.infrastructure,
        });
        let Some(kind) = slot.ours().map(|view| &view.kind).or(wanted) else { return Ok(()) };
        let Some(resource) = self.kinds.known(kind) else { return Ok(()) };
        let name = key.beside(match place {
            Place::Bootstrap => names::bootstrap(&key.name),
            Place::Infrastructure | Place::Machine => names::infrastructure(&key.name),
        });
        let found =
            read(&self.api(&key.namespace, &resource), &name.name, self.provider(kind).version(&name)).await;
        let found = match found {
            // The kind itself is gone, and all of its objects with it.
            Err(error) if is_unserved(&error) && self.kinds.is_gone(kind).await => {
                self.forget_kind(kind);
                return Ok(());
            }
            answered => answered.map_err(|error| {
                CallError::new(format!("CAPI operation failed: get {} {name}", kind.kind), error)
            })?,
        };
        let desired =
            original.zip(cluster).filter(|_| wanted == Some(kind)).and_then(|(original, cluster)| {
                let source = self.source(key, original)?;
                Some(match place {
                    Place::Bootstrap => render::bootstrap(&source, cluster),
                    Place::Infrastructure | Place::Machine => render::infrastructure(&source, cluster),
                })
            });
        match self.judge(key, place, found, desired.as_ref()) {
            Some(object) => self.put_provider(kind, &object),
            None => {
                self.provider(kind).remove(&name);
            }
        }
        Ok(())
    }

    /// Whose an object is, and whether it is as we would apply it. Returns it if it is ours.
    fn judge(
        &self,
        key: &ObjectKey,
        place: Place,
        found: Option<DynamicObject>,
        desired: Option<&Value>,
    ) -> Option<DynamicObject> {
        let verdict = found.as_ref().map(|object| belongs(object, &key.name));
        self.remember(key, |memory| match verdict {
            Some(Belongs::Other(owner)) => {
                memory.foreign.insert(place, owner);
                None
            }
            Some(Belongs::Us) | None => {
                memory.foreign.remove(&place);
                let object = found?;
                let uid = Uid::from(object.uid().unwrap_or_default());
                let drifted = desired.is_some_and(|desired| drift::has_drifted(desired, &object));
                memory.compare(uid, drift::Digest::of(&object), !drifted);
                Some(object)
            }
        })
    }

    async fn refresh_node(&self, key: &ObjectKey, observed: &Observed) -> Result<(), CallError> {
        let Some(machine) = self.machines.view(&key.beside(names::machine(&key.name))) else {
            self.refresh_former_node(observed).await;
            return Ok(());
        };
        let Some(link) = &observed.link else { return Ok(()) };
        let Some(name) = machine.node else { return Ok(()) };
        let api: Api<Node> = Api::all(link.client.clone());
        let found = read(&api, name.as_str(), link.nodes.version(&node_key(&name)))
            .await
            .map_err(|error| CallError::new(format!("get Node {name}"), error))?;
        if let Some(node) = found {
            let version = node.resource_version().unwrap_or_default();
            link.nodes.put(node_key(&name), &version, project::node(&node));
        } else {
            // That it is gone counts only by the word of the cluster that it was seen in.
            link.identify_again().await?;
            link.nodes.remove(&node_key(&name));
        }
        if link.watched_pods(&name).is_some() { self.refresh_pods(link, &name).await } else { Ok(()) }
    }

    /// Asks whether a Node that should be gone with its Machine is. Whatever comes of that, nothing else waits for it.
    async fn refresh_former_node(&self, observed: &Observed) {
        if observed.world.former_node != FormerNode::LeftBehind {
            return;
        }
        let (Some(link), Some(recorded)) = (&observed.former, &observed.world.status.node_ref) else {
            return;
        };
        let key = node_key(&NodeName::from(recorded.name.as_str()));
        let api: Api<Node> = Api::all(link.client.clone());
        match read(&api, &recorded.name, link.nodes.version(&key)).await {
            Ok(Some(_)) => {}
            Ok(None) => link.nodes.remove(&key),
            Err(error) => {
                tracing::debug!(error = explain(&error), node = recorded.name, "Node could not be read");
            }
        }
    }

    async fn refresh_pods(&self, link: &Link, node: &NodeName) -> Result<(), CallError> {
        let Some(shelf) = link.watched_pods(node) else { return Ok(()) };
        let api: Api<Pod> = Api::all(link.client.clone());
        let mut parameters = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(POD_PAGE);
        if let Some(latest) = shelf.latest() {
            // A list from before what is known would bring pods back that have left, and hide those that have come.
            parameters = parameters.at(&latest).matching(VersionMatch::NotOlderThan);
        }
        let mut there = Vec::new();
        loop {
            let page = api
                .list(&parameters)
                .await
                .map_err(|error| CallError::new(format!("list the pods of node {node}"), error))?;
            for pod in &page.items {
                let version = pod.resource_version().unwrap_or_default();
                shelf.put(ObjectKey::of(pod), &version, project::pod(pod));
                there.push(ObjectKey::of(pod));
            }
            // What is missing from the list is gone at its version, whatever a watch that is late may tell yet.
            shelf.see(&page.metadata.resource_version.unwrap_or_default());
            let Some(next) = page.metadata.continue_.filter(|next| !next.is_empty()) else { break };
            parameters = ListParams {
                resource_version: None,
                version_match: None,
                ..parameters.continue_token(&next)
            };
        }
        for key in shelf.keys() {
            if !there.contains(&key) {
                shelf.remove(&key);
            }
        }
        Ok(())
    }

    pub(crate) fn put_machine(&self, object: &DynamicObject) {
        let version = object.resource_version().unwrap_or_default();
        self.machines.put(ObjectKey::of(object), &version, project::machine(object));
    }

    pub(crate) fn put_provider(self: &Arc<Self>, kind: &ProviderKind, object: &DynamicObject) {
        let version = object.resource_version().unwrap_or_default();
        self.provider(kind).put(ObjectKey::of(object), &version, project::provider(object));
    }

    /// What rendering needs, once the version of Cluster API is known.
    pub(crate) fn source<'a>(&self, key: &'a ObjectKey, original: &'a Original) -> Option<Source<'a>> {
        Some(Source {
            namespace: &key.namespace,
            name: &key.name,
            uid: &original.uid,
            raw: &original.raw,
            spec: &original.spec,
            capi_version: self.capi()?,
        })
    }
}

/// Reads an object, not older than what is known of it: an answer from before that, from a server that lags behind its
/// peers, could say that it does not exist.
async fn read<K>(api: &Api<K>, name: &str, known: Option<String>) -> Result<Option<K>, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let parameters = GetParams { resource_version: known };
    or_absent(api.get_with(name, &parameters).await)
}
