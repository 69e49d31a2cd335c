//! The assembly of the world that a decision looks at, from the caches and from what is remembered of the object.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::memory::{Memory, Part};
use crate::cache::project::{MachineFacts, ObjectFacts};
use crate::cache::store::{Item, SyncState};
use crate::cache::workload::WorkloadLink;
use crate::transport::error::ReadFailureKind;
use crate::transport::key::ObjectKey;
use crate::view::claim_view::machine_claims;
use crate::view::node_view::{agent_configs, former_node, lookups, node_fact};
use crate::view::observed::{Lookups, Observed};
use crate::view::provider_slot::{problem_of, provider_slot};
use crate::view::reach::{Reach, reach, reach_former};
use five_spot_api::names;
use five_spot_core::world::{
    Brake, Failures, FormerNode, MachineView, NodeFact, ReferenceProblem, RemovalGate, Slot, Workload, World,
};
use std::sync::Arc;

/// The state of the caches concerning one object.
pub(super) enum Cached {
    /// The object is gone.
    Gone,
    /// The management cluster has not been read yet; the watches report when it has.
    NotSynced,
    /// The object and its world.
    Known(Box<Observed>),
}

/// Assembles the world of one object from the caches, and opens the watches that it needs. `failures` are those of the
/// last attempts.
pub(super) async fn assemble(caches: &Arc<Caches>, key: &ObjectKey, failures: &Failures) -> Cached {
    let Some(object) = caches.objects.get(key) else {
        return Cached::Gone;
    };
    let machine = caches.machines.view(&machine_key(key));
    let has_namespace = caches.namespaces.has(&ObjectKey::new("", key.namespace.clone()));
    // Even an emergency depends on the Machine and on a pause of the namespace.
    if (machine.is_none() && is_unread(&caches.machines.sync_state()))
        || (!has_namespace && is_unread(&caches.namespaces.sync_state()))
    {
        return Cached::NotSynced;
    }
    let clusters = (
        reach(caches, key, &object.view, machine.is_some()).await,
        reach_former(caches, key, &object.view, machine.is_some()).await,
    );
    let memory = caches.memories.update(key, |memory| memory.belonging_to(&object.view.view.uid).clone());
    Cached::Known(Box::new(world(caches, key, object, machine, clusters, &memory, failures.clone())))
}

fn world(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    object: Item<ObjectFacts>,
    machine: Option<MachineFacts>,
    (reach, former_link): (Reach, Option<Arc<WorkloadLink>>),
    memory: &Memory,
    failures: Failures,
) -> Observed {
    let Item { version, view: object } = object;
    let Reach { workload, link } = reach;
    let spec_kinds = object.spec.as_ref().ok();
    let status = object.status.read();
    let bootstrap = provider_slot(
        caches,
        &key.beside(names::bootstrap(&key.name)),
        status.bootstrap_ref.as_ref(),
        spec_kinds.map(|spec| ("spec.bootstrapSpec", &spec.bootstrap)),
        (memory, Part::Bootstrap),
    );
    let infrastructure = provider_slot(
        caches,
        &key.beside(names::infrastructure(&key.name)),
        status.infrastructure_ref.as_ref(),
        spec_kinds.map(|spec| ("spec.infrastructureSpec", &spec.infrastructure)),
        (memory, Part::Infrastructure),
    );
    let incomplete = bootstrap.is_pending
        || infrastructure.is_pending
        || matches!(workload, Workload::Pending(_))
        || is_management_unread(caches);
    let lookups =
        link.as_deref().map_or_else(Lookups::default, |link| lookups(machine.as_ref(), link, memory));
    let node = link.as_deref().map_or(NodeFact::Unknown, |link| {
        let seen_in = status.workload_cluster.as_ref();
        node_fact(machine.as_ref(), (link, seen_in), key, memory, !lookups.are_needed())
    });
    let former_node = if machine.is_some() {
        FormerNode::Gone
    } else {
        former_node(&status, former_link.as_deref(), memory)
    };
    let mut references: Vec<ReferenceProblem> = cluster_api_problem(caches).into_iter().collect();
    references.extend([bootstrap.problem, infrastructure.problem].into_iter().flatten());
    let unproven = bootstrap.unproven
        || infrastructure.unproven
        || !memory.foreign.is_empty()
        || machine.as_ref().is_some_and(|machine| {
            !machine.terminating && !memory.is_compared(&machine.uid, &machine.digest)
        });
    let claims = machine_claims(caches, key, &object);
    let mut view = object.view;
    if let Some(deletion) = &mut view.deletion {
        // `--cascade=orphan` takes us from the owners of the Machine, and its finalizer goes when that is done. That
        // we are no owner of the provider's objects says nothing: `--cascade=foreground` does the same to them.
        deletion.orphan |= machine.as_ref().is_some_and(|machine| !machine.terminating && !machine.has_owner);
    }
    let world = World {
        policy: caches.settings.policy,
        // Whoever counts the removals says more.
        brake: Brake { gate: RemovalGate::Unasked, ..Brake::default() },
        cluster: spec_kinds.and_then(|spec| caches.clusters.view(&key.beside(spec.cluster_name.clone()))),
        namespace_pause: caches
            .namespaces
            .view(&ObjectKey::new("", key.namespace.clone()))
            .and_then(|facts| facts.pause),
        references,
        bootstrap: bootstrap.slot,
        infrastructure: infrastructure.slot,
        machine: machine_slot(machine, (&caches.machines.sync_state(), caches.capi().is_some()), memory),
        agent_configs: link.as_deref().map_or_else(Vec::new, |link| agent_configs(key, link)),
        former_node,
        unrecorded_since: memory.unrecorded_since,
        claims,
        workload,
        node,
        failures,
        status,
        object: view,
    };
    Observed {
        spec: object.spec,
        spec_by: object.spec_by,
        world,
        version,
        former_link,
        link,
        lookups,
        unproven,
        incomplete,
    }
}

/// True if a store that every decision needs is not complete yet. Only an emergency does not wait for it.
fn is_management_unread(caches: &Caches) -> bool {
    let states = [
        caches.objects.sync_state(),
        caches.namespaces.sync_state(),
        caches.machines.sync_state(),
        caches.clusters.sync_state(),
    ];
    states.iter().any(is_unread)
}

/// True if a store may be complete at any moment. A kind that is forbidden or not served is a fact.
fn is_unread(state: &SyncState) -> bool {
    match state {
        SyncState::Syncing => true,
        SyncState::Failed(failure) => failure.kind == ReadFailureKind::Unreachable,
        SyncState::Synced => false,
    }
}

fn cluster_api_problem(caches: &Caches) -> Option<ReferenceProblem> {
    let states = [caches.machines.sync_state(), caches.clusters.sync_state()];
    states.into_iter().find_map(|state| match state {
        SyncState::Failed(failure) => Some(problem_of("spec.clusterName", &failure)),
        SyncState::Syncing | SyncState::Synced => None,
    })
}

/// The Machine. Only if discovery has not found Cluster API at all, there is none for certain: a list that is answered with 404
/// may come from a proxy, or from a version that is no longer served.
fn machine_slot(
    machine: Option<MachineFacts>,
    (state, is_cluster_api_known): (&SyncState, bool),
    memory: &Memory,
) -> Slot<MachineView> {
    if let Some(owner) = memory.foreign.get(&Part::Machine) {
        return Slot::Foreign { owner: owner.clone() };
    }
    let without = match state {
        SyncState::Failed(failure) if is_cluster_api_known || failure.kind != ReadFailureKind::NoSuchKind => {
            Slot::Unknown
        }
        SyncState::Failed(_) | SyncState::Syncing | SyncState::Synced => Slot::Absent,
    };
    machine.map_or(without, |facts| {
        Slot::Ours(MachineView {
            intact: memory.is_intact(&facts.uid, &facts.digest),
            delete_refused: memory.delete_refused.as_ref() == Some(&facts.uid),
            api_version: facts.api_version,
            uid: facts.uid,
            created_at: facts.created_at,
            terminating: facts.terminating,
            machine_hash: facts.machine_hash,
            applied_hash: facts.applied_hash,
            capi_paused: facts.capi_paused,
            provider_id: facts.provider_id,
            drain_excluded: facts.drain_excluded,
            volume_wait_excluded: facts.volume_wait_excluded,
        })
    })
}
