//! Projections: the few facts that are kept of an object of a cluster.

mod claim;
mod cluster;
mod compact_text;
mod machine;
mod node;
mod pod;
mod provider;
mod scheduled_machine;
mod status;

pub(crate) use claim::{ClaimFacts, claim};
pub(crate) use cluster::{ClusterFacts, NamespaceFacts, cluster, namespace};
pub(crate) use machine::{MachineFacts, machine};
pub(crate) use node::{AgentConfigFacts, NodeFacts, agent_config, agent_node, node};
pub(crate) use pod::{AgentPodFacts, PodFacts, agent_pod, pod};
pub(crate) use provider::{ProviderFacts, provider};
pub(crate) use scheduled_machine::{ObjectFacts, kind_of, read_spec, scheduled_machine};

use five_spot_api::names::{annotation, label};
use five_spot_core::world::PauseLevel;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};

/// Our own pause annotation, if it is there.
fn pause(object: &impl Resource) -> Option<PauseLevel> {
    object
        .annotations()
        .get(annotation::PAUSED)
        .map(|value| if value == annotation::PAUSED_ALL { PauseLevel::All } else { PauseLevel::Ordinary })
}

/// Cluster API's own pause annotation. Its value does not matter there either.
fn capi_paused(object: &impl Resource) -> bool {
    object.annotations().contains_key(annotation::CAPI_PAUSED)
}

fn terminating(object: &impl Resource) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// The name of the `ScheduledMachine` that an object says it was made for.
pub(crate) fn made_for(object: &impl Resource) -> Option<String> {
    object.labels().get(label::SCHEDULED_MACHINE).cloned()
}

/// True if an object still refers to a `ScheduledMachine` as its owner, whatever the UID.
fn has_owner(object: &impl Resource) -> bool {
    object.owner_references().iter().any(|owner| owner.kind == five_spot_api::names::KIND)
}

/// The owner of an object that has one of our names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// To the `ScheduledMachine`, with this UID or another one, as after a restore.
    Us,
    /// To another owner, as far as can be determined.
    Other(String),
}

/// An object is ours by its label, or by an owner reference to our name, whatever UID that carries: objects that
/// are restored from a backup refer to an owner with another UID. An object that another controller owns is not ours.
pub(crate) fn belongs(object: &DynamicObject, scheduled_machine: &str) -> Belongs {
    let owners = object.owner_references();
    let ours = |kind: &str, name: &str| {
        (kind == five_spot_api::names::KIND && name == scheduled_machine)
            || (kind == "Machine" && name == five_spot_api::names::machine(scheduled_machine))
    };
    if let Some(other) =
        owners.iter().find(|owner| owner.controller == Some(true) && !ours(&owner.kind, &owner.name))
    {
        return Belongs::Other(format!("{} {}", other.kind, other.name));
    }
    let by_owner = owners.iter().any(|owner| ours(&owner.kind, &owner.name));
    if by_owner || made_for(object).as_deref() == Some(scheduled_machine) {
        return Belongs::Us;
    }
    let manager = object.managed_fields().iter().find_map(|entry| entry.manager.clone());
    Belongs::Other(manager.unwrap_or_else(|| "someone else".to_owned()))
}
