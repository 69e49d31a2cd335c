//! Creating a machine, and keeping it in line with the spec while it is wanted.

use super::claim;
use super::draft::{Draft, Stage, TakedownReason};
use super::fault::FaultKind;
use super::removal;
use super::situation::Situation;
use crate::action::Action;
use crate::spec::ValidSpec;
use crate::world::{
    FormerNode, MachineView, NodeFact, ProviderView, Readiness, ReferenceProblemKind, Slot, Uid, Workload,
    World,
};
use five_spot_api::WorkloadCluster;
use five_spot_api::names;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The delay between a Machine whose node did not join and the next one. An immediate retry seldom helps.
const JOIN_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// The maximum number of join times in the status.
const MAX_JOINS: usize = 10;

/// Creates a machine that is wanted, or maintains it.
pub(super) fn bring_up(situation: &Situation<'_>, draft: &mut Draft) {
    let Some(spec) = situation.valid() else { return };
    if !name_is_free(situation, draft) {
        return;
    }
    match &situation.world.machine {
        Slot::Ours(machine) if machine.terminating => wait_for_old(situation, draft),
        Slot::Ours(machine) => keep_up(situation, spec, machine, draft),
        Slot::Unknown => wait_for_state(situation, spec, draft),
        Slot::Absent | Slot::Foreign { .. } => create(situation, spec, draft),
    }
}

/// Waits until the Machine can be read. It may exist: nothing is created, and nothing about it is forgotten.
fn wait_for_state(situation: &Situation<'_>, spec: &ValidSpec, draft: &mut Draft) {
    draft.stage = Stage::Creating;
    // The reason why it cannot be read is one of the problems with what the spec refers to.
    referenced_cluster(situation, spec, draft);
}

fn name_is_free(situation: &Situation<'_>, draft: &mut Draft) -> bool {
    let world = situation.world;
    let name = &world.object.name;
    let namespace = &world.object.namespace;
    let owners = [
        ("Machine", names::machine(name), foreign_owner(&world.machine)),
        ("bootstrap object", names::bootstrap(name), foreign_owner(&world.bootstrap)),
        ("infrastructure object", names::infrastructure(name), foreign_owner(&world.infrastructure)),
    ];
    for (kind, object, owner) in owners {
        if let Some(owner) = owner {
            draft.fail(
                FaultKind::NameTaken,
                format!(
                    "{kind} {namespace}/{object} already exists and belongs to {owner}; rename the ScheduledMachine, or delete that object if nobody needs it"
                ),
            );
        }
    }
    draft.fault.is_none()
}

fn foreign_owner<T>(slot: &Slot<T>) -> Option<&str> {
    match slot {
        Slot::Foreign { owner } => Some(owner),
        Slot::Absent | Slot::Ours(_) | Slot::Unknown => None,
    }
}

fn wait_for_old(situation: &Situation<'_>, draft: &mut Draft) {
    draft.stage = Stage::WaitingForOldMachine;
    draft.facts.shutdown_started_at = None;
    wait_to_join_again(situation, draft);
}

/// Creates the missing objects, in the order of Cluster API, as soon as no old objects are left.
fn create(situation: &Situation<'_>, spec: &ValidSpec, draft: &mut Draft) {
    let world = situation.world;
    draft.stage = Stage::WaitingForOldMachine;
    draft.facts.shutdown_started_at = None;
    draft.facts.drain = None;
    if world.former_node == FormerNode::Gone {
        draft.facts.workload_cluster = None;
    }
    if let Some(join) = &mut draft.facts.join {
        join.machine_uid = None;
        join.waiting_since = None;
    }
    let old = [&world.bootstrap, &world.infrastructure].map(|slot| is_old(slot, spec));
    if old[0] || old[1] {
        removal::clear_leftovers(situation, draft);
    }
    let joining = wait_to_join_again(situation, draft);
    if old[0] || old[1] || !joining {
        return;
    }
    draft.stage = Stage::Creating;
    let Some(cluster) = referenced_cluster(situation, spec, draft) else {
        return;
    };
    let Workload::Reachable(workload) = &world.workload else { return };
    if !claim::obtain(situation, draft) {
        return;
    }
    // The UID of the cluster is recorded when the Node is seen there.
    draft.facts.workload_cluster = Some(WorkloadCluster { cluster_uid: None, ..workload.clone() });
    apply_provider_objects(situation, cluster, draft);
    draft.act(Action::ApplyMachine);
}

/// Returns true if the object is terminating or was created from another spec, so that it must be deleted first.
fn is_old(slot: &Slot<ProviderView>, spec: &ValidSpec) -> bool {
    slot.ours().is_some_and(|object| object.terminating || differs(object.machine_hash.as_ref(), spec))
}

fn differs(hash: Option<&crate::Fingerprint>, spec: &ValidSpec) -> bool {
    hash.is_some_and(|hash| *hash != spec.machine_hash)
}

/// Returns the UID of the Cluster if there is no problem with the objects that the spec refers to.
fn referenced_cluster<'a>(situation: &Situation<'a>, spec: &ValidSpec, draft: &mut Draft) -> Option<&'a Uid> {
    if let Some(problem) = situation.world.references.first() {
        draft.fail(FaultKind::References(problem.kind), format!("{}: {}", problem.field, problem.message));
        return None;
    }
    if let Some(problem) = cluster_problem(situation.world, spec) {
        draft.fail(FaultKind::References(ReferenceProblemKind::NotFound), problem);
        return None;
    }
    situation.world.cluster.as_ref().map(|cluster| &cluster.uid)
}

/// Returns the problem with the Cluster, if there is one.
pub(super) fn cluster_problem(world: &World, spec: &ValidSpec) -> Option<String> {
    let (name, namespace) = (&spec.cluster_name, &world.object.namespace);
    match &world.cluster {
        None => Some(format!("spec.clusterName: Cluster {namespace}/{name} does not exist")),
        Some(cluster) if cluster.terminating => {
            Some(format!("spec.clusterName: Cluster {namespace}/{name} is being deleted"))
        }
        Some(_) => None,
    }
}

fn apply_provider_objects(situation: &Situation<'_>, cluster: &Uid, draft: &mut Draft) {
    if needs_apply(&situation.world.bootstrap) {
        draft.act(Action::ApplyBootstrap { cluster: cluster.clone() });
    }
    if needs_apply(&situation.world.infrastructure) {
        draft.act(Action::ApplyInfrastructure { cluster: cluster.clone() });
    }
}

fn needs_apply(slot: &Slot<ProviderView>) -> bool {
    slot.ours().is_none_or(|object| !object.intact)
}

/// Maintains a Machine that is wanted: takes it down if it cannot stay, gives it up if its node does not join, and corrects
/// drift.
fn keep_up(situation: &Situation<'_>, spec: &ValidSpec, machine: &MachineView, draft: &mut Draft) {
    let world = situation.world;
    if let Some(reason) = takedown_reason(world, spec, machine) {
        draft.stage = Stage::TakingDown(reason);
        return removal::shut_down(situation, draft);
    }
    draft.stage = Stage::Running;
    draft.facts.shutdown_started_at = None;
    draft.facts.drain = None;
    if let Workload::Reachable(cluster) = &world.workload {
        // Only a cluster that responds is recorded, because the record does not change while the Machine exists.
        let unseen = || WorkloadCluster { cluster_uid: None, ..cluster.clone() };
        let recorded = draft.facts.workload_cluster.get_or_insert_with(unseen);
        if world.node.found().is_some() && recorded.cluster_uid.is_none() {
            recorded.cluster_uid.clone_from(&cluster.cluster_uid);
        }
    }
    if !joins_in_time(situation, spec, machine, draft) {
        draft.stage = Stage::WaitingToJoinAgain;
        return removal::delete_without_drain(machine, false, draft);
    }
    claim::keep(situation, draft);
    let Some(cluster) = referenced_cluster(situation, spec, draft) else {
        return;
    };
    apply_provider_objects(situation, cluster, draft);
    if !machine.intact || machine.applied_hash.as_ref() != Some(&spec.applied_hash) {
        draft.act(Action::ApplyMachine);
    }
}

/// Returns the reason why a Machine cannot stay although a machine is wanted. A changed spec is no reason while its new
/// Machine could not be created.
fn takedown_reason(world: &World, spec: &ValidSpec, machine: &MachineView) -> Option<TakedownReason> {
    let can_be_made = world.references.is_empty() && cluster_problem(world, spec).is_none();
    let provider_objects = [&world.bootstrap, &world.infrastructure];
    if world.cluster.as_ref().is_some_and(|cluster| cluster.terminating) {
        Some(TakedownReason::ClusterDeleted)
    } else if provider_objects.iter().any(|slot| slot.ours().is_some_and(|object| object.terminating)) {
        Some(TakedownReason::PartDeleted)
    } else if can_be_made && differs(machine.machine_hash.as_ref(), spec) {
        Some(TakedownReason::SpecChanged)
    } else {
        None
    }
}

/// The time between two looks for a Node that Cluster API reports as healthy and that the workload cluster does not have.
const LOOK_FOR_NODE_EVERY: SignedDuration = SignedDuration::from_secs(20);

/// Records the join of the node. Returns false if the time to join, or to return, is over and the node is not there.
fn joins_in_time(
    situation: &Situation<'_>,
    spec: &ValidSpec,
    machine: &MachineView,
    draft: &mut Draft,
) -> bool {
    let has_joined = situation.has_joined(machine);
    match &situation.world.node {
        // The node has joined. If it is not Ready, that is reported but no reason to give up the machine.
        NodeFact::Found(_) if has_joined => return stop_waiting(draft),
        NodeFact::Found(node) if node.readiness == Readiness::Ready => {
            record_join(situation, machine, draft);
            return stop_waiting(draft);
        }
        // Whether the node has joined is unknown. The time to join starts when it is known.
        NodeFact::Unknown => {
            if matches!(situation.world.workload, Workload::Reachable(_)) {
                // No watch event names this object if its machine appears under another name.
                let again = situation.now.saturating_add(LOOK_FOR_NODE_EVERY).unwrap_or(Timestamp::MAX);
                draft.wake(situation, again);
            }
            return stop_waiting(draft);
        }
        NodeFact::Found(_)
        | NodeFact::NotYet
        | NodeFact::Gone
        | NodeFact::Renamed(_)
        | NodeFact::Mismatch { .. } => {}
    }
    // The creation timestamp of the Machine comes from the clock of the API server. If that is behind ours by more than
    // `joinTimeout`, every Machine would be given up, so the time is measured by our own clock.
    if draft.timers_stand_still {
        return stop_waiting(draft);
    }
    let join = draft.facts.join.get_or_insert_default();
    let since = situation.past(join.waiting_since.as_ref()).unwrap_or(situation.second);
    join.waiting_since = Some(Time(since));
    let deadline = since.saturating_add(spec.join_timeout).unwrap_or(Timestamp::MAX);
    draft.wake(situation, deadline);
    if situation.now < deadline {
        return true;
    }
    let join = draft.facts.join.get_or_insert_default();
    let failed_at = situation.past(join.failed_at.as_ref()).filter(|failed| *failed >= deadline);
    join.failed_at = Some(Time(failed_at.unwrap_or(situation.second)));
    let name = situation.machine_name();
    let what = if has_joined {
        format!("the lost node of Machine {name} did not return")
    } else {
        format!("Machine {name} had no Ready node")
    };
    draft.fail(FaultKind::JoinFailed, join_failure(&what, spec));
    false
}

/// Stops the time to join, because the node is there or its state is unknown. Returns true.
fn stop_waiting(draft: &mut Draft) -> bool {
    if let Some(join) = &mut draft.facts.join {
        join.waiting_since = None;
    }
    true
}

fn record_join(situation: &Situation<'_>, machine: &MachineView, draft: &mut Draft) {
    let join = draft.facts.join.get_or_insert_default();
    let seconds = situation.second.duration_since(machine.created_at).as_secs().max(0);
    join.last_seconds = Some(seconds);
    join.recent_seconds.insert(0, seconds);
    join.recent_seconds.truncate(MAX_JOINS);
    join.machine_uid = Some(machine.uid.as_str().to_owned());
    join.failed_at = None;
}

fn join_failure(what: &str, spec: &ValidSpec) -> String {
    // Not the time of the next attempt: while the clock is wrong it could change at every look.
    format!(
        "{what} within joinTimeout ({}s); another Machine is created {} minutes after the failure",
        spec.join_timeout.as_secs(),
        JOIN_RETRY.as_mins()
    )
}

/// Delays the Machine after a failed one. Returns true when it may be created.
fn wait_to_join_again(situation: &Situation<'_>, draft: &mut Draft) -> bool {
    let Some(spec) = situation.valid() else {
        return true;
    };
    let Some(failed) = draft.facts.join.as_mut().and_then(|join| join.failed_at.as_mut()) else {
        return true;
    };
    let failed_at = situation.past(Some(failed)).unwrap_or(situation.second);
    *failed = Time(failed_at);
    let again = failed_at.saturating_add(JOIN_RETRY).unwrap_or(Timestamp::MAX);
    draft.wake(situation, again);
    if situation.now >= again {
        return true;
    }
    draft.stage = Stage::WaitingToJoinAgain;
    let what = format!("Machine {} had no Ready node", situation.machine_name());
    draft.fail(FaultKind::JoinFailed, join_failure(&what, spec));
    false
}
