//! Holding back: a paused object is reported on, but nothing is changed for it.

use super::cleanup;
use super::draft::Draft;
use super::reclaim::Reclaim;
use super::situation::Situation;
use crate::world::PauseLevel;
use five_spot_api::condition::Reason;
use five_spot_api::names::{self, annotation};

/// How much is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// Everything but reclaims, the kill switch and a cleanup that has had its time.
    Ordinary,
    Everything,
}

/// How much is held back in this situation. Only our own annotation can hold an emergency.
fn level(situation: &Situation<'_>) -> Held {
    let world = situation.world;
    let ours = world.object.paused.max(world.namespace_pause);
    match ours {
        Some(PauseLevel::All) => Held::Everything,
        Some(PauseLevel::Ordinary) => Held::Ordinary,
        None if cause(situation).is_some() => Held::Ordinary,
        None => Held::Nothing,
    }
}

/// What pauses an object.
pub(super) struct Pause {
    pub(super) reason: Reason,
    /// The object and the annotation or field that pause it.
    pub(super) by: String,
}

/// What pauses the object, the closest thing first.
pub(super) fn cause(situation: &Situation<'_>) -> Option<Pause> {
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
        let machine = names::machine(name);
        (Reason::CapiAnnotation, format!("annotation {capi} on Machine {namespace}/{machine}"))
    } else if cluster_paused(situation) {
        let cluster = situation.valid().map_or("", |spec| spec.cluster_name.as_str());
        (Reason::ClusterPaused, format!("spec.paused of Cluster {namespace}/{cluster}"))
    } else {
        return None;
    };
    Some(Pause { reason, by })
}

fn machine_paused(situation: &Situation<'_>) -> bool {
    situation.world.machine.ours().is_some_and(|machine| machine.capi_paused)
}

fn cluster_paused(situation: &Situation<'_>) -> bool {
    situation.world.cluster.as_ref().is_some_and(|cluster| cluster.paused)
}

/// Whether Cluster API ignores the deletion of the Machine because of a pause of its own.
pub(super) fn holds_up_cluster_api(situation: &Situation<'_>) -> bool {
    let going = situation.world.machine.ours().is_some_and(|machine| machine.terminating);
    going && (machine_paused(situation) || cluster_paused(situation))
}

/// Takes the actions out of a draft whose object is paused, and whatever they would have started: a clock
/// that runs while nothing may be done would be unfair.
pub(super) fn hold_back(situation: &Situation<'_>, reclaim: Option<&Reclaim>, draft: &mut Draft) {
    let held = level(situation);
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
    // The end of a reclaim that was carried out in spite of the pause is a fact, not an action.
    if held == Held::Everything || reclaim.is_none() {
        draft.facts = Draft::new(situation).facts;
    }
}
