//! Pauses: the status of a paused object is still updated, but its actions are held back.

use super::brake;
use super::cleanup;
use super::draft::Draft;
use super::reclaim::Reclaim;
use super::situation::Situation;
use crate::world::PauseLevel;
use five_spot_api::condition::Reason;
use five_spot_api::names::annotation;

/// The scope of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// Everything except reclaims, the kill switch and a cleanup whose timeout is over.
    Ordinary,
    Everything,
}

/// Returns the scope of the pause. Only the annotation of 5-Spot can hold back an emergency.
fn level(situation: &Situation<'_>, draft: &Draft) -> Held {
    let world = situation.world;
    let ours = world.object.paused.max(world.namespace_pause);
    match ours {
        Some(PauseLevel::All) => Held::Everything,
        Some(PauseLevel::Ordinary) => Held::Ordinary,
        None if cause(situation, draft).is_some() => Held::Ordinary,
        None => Held::Nothing,
    }
}

/// The cause of a pause.
pub(super) struct Pause {
    pub(super) reason: Reason,
    /// The object and its annotation or field that cause the pause.
    pub(super) by: String,
}

/// Returns true if an annotation or a Cluster pauses the object.
pub(super) fn is_paused(situation: &Situation<'_>) -> bool {
    requested(situation).is_some()
}

/// Returns the cause of the pause, if the object is paused: a request, or the brake.
pub(super) fn cause(situation: &Situation<'_>, draft: &Draft) -> Option<Pause> {
    let held =
        || draft.removal.is_held().then(|| Pause { reason: Reason::TooManyRemovals, by: brake::reason() });
    requested(situation).or_else(held)
}

/// Returns the annotation or field that pauses the object. The most specific one comes first.
fn requested(situation: &Situation<'_>) -> Option<Pause> {
    let world = situation.world;
    let (namespace, name) = (&world.object.namespace, &world.object.name);
    let (ours, capi) = (annotation::PAUSED, annotation::CAPI_PAUSED);
    let (reason, by) = if world.object.paused.is_some() {
        (Reason::ObjectAnnotation, format!("annotation {ours} on ScheduledMachine {namespace}/{name}"))
    } else if world.namespace_pause.is_some() {
        (Reason::NamespaceAnnotation, format!("annotation {ours} on namespace {namespace}"))
    } else if world.object.capi_paused {
        (Reason::CapiAnnotation, format!("annotation {capi} on ScheduledMachine {namespace}/{name}"))
    } else if machine_paused(situation) {
        return Some(by_machine(situation));
    } else if cluster_paused(situation) {
        return Some(by_cluster(situation));
    } else {
        return None;
    };
    Some(Pause { reason, by })
}

fn by_machine(situation: &Situation<'_>) -> Pause {
    let (namespace, machine) = (&situation.world.object.namespace, situation.machine_name());
    let annotation = annotation::CAPI_PAUSED;
    Pause {
        reason: Reason::CapiAnnotation,
        by: format!("annotation {annotation} on Machine {namespace}/{machine}"),
    }
}

fn by_cluster(situation: &Situation<'_>) -> Pause {
    let namespace = &situation.world.object.namespace;
    let cluster = situation.valid().map_or("", |spec| spec.cluster_name.as_str());
    Pause { reason: Reason::ClusterPaused, by: format!("spec.paused of Cluster {namespace}/{cluster}") }
}

fn machine_paused(situation: &Situation<'_>) -> bool {
    situation.world.machine.ours().is_some_and(|machine| machine.capi_paused)
}

fn cluster_paused(situation: &Situation<'_>) -> bool {
    situation.world.cluster.as_ref().is_some_and(|cluster| cluster.paused)
}

/// Returns the pauses because of which Cluster API ignores the deletion of the Machine, if there are any. 5-Spot's own annotation
/// is none of them.
pub(super) fn of_cluster_api(situation: &Situation<'_>) -> Option<Pause> {
    situation.world.machine.ours().filter(|machine| machine.terminating)?;
    let of_machine = machine_paused(situation).then(|| by_machine(situation));
    let of_cluster = cluster_paused(situation).then(|| by_cluster(situation));
    let both: Vec<Pause> = of_machine.into_iter().chain(of_cluster).collect();
    let reason = both.first()?.reason;
    let by: Vec<&str> = both.iter().map(|pause| pause.by.as_str()).collect();
    Some(Pause { reason, by: by.join(" and ") })
}

/// Returns true if the actions of a graceful shutdown or of a wait for a node are held back. No timer runs meanwhile: it starts
/// again when the pause is over.
pub(super) fn stops_timers(situation: &Situation<'_>, draft: &Draft) -> bool {
    match level(situation, draft) {
        Held::Nothing => false,
        Held::Ordinary => !cleanup::is_overdue(situation),
        Held::Everything => true,
    }
}

/// Holds back the actions of a paused object, and the facts that they would have recorded: no timer runs during a pause.
pub(super) fn hold_back(situation: &Situation<'_>, reclaim: Option<&Reclaim>, draft: &mut Draft) {
    let held = level(situation, draft);
    let acting = situation.handling().kill_switch
        || reclaim.is_some_and(Reclaim::unfinished)
        || cleanup::is_overdue(situation);
    match held {
        Held::Nothing => return,
        Held::Ordinary if acting => return,
        Held::Ordinary | Held::Everything => {}
    }
    draft.held_back = std::mem::take(&mut draft.actions);
    draft.watch_pods = false;
    // The end of a reclaim that was carried out despite the pause is recorded.
    if held == Held::Everything || reclaim.is_none() {
        draft.facts = Draft::new(situation).facts;
    }
    if reclaim.is_none() {
        stop_timers(situation, draft);
    }
    // A reclaim that is held back is not recorded, and a request in the future counts when its time comes.
    if let Some(requested_at) = reclaim.and_then(Reclaim::requested_at) {
        draft.wake(situation, requested_at);
    }
}

/// Forgets the start of a shutdown that has not deleted the Machine yet, and of a wait for a node.
fn stop_timers(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.living_machine().is_some() {
        draft.facts.shutdown_started_at = None;
    }
    if let Some(join) = &mut draft.facts.join {
        join.waiting_since = None;
    }
}
