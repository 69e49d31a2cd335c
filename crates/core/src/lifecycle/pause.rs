//! Holding back: a paused object is reported on, but nothing is changed for it.

use super::draft::Draft;
use super::reclaim::Reclaim;
use super::situation::Situation;
use crate::world::PauseLevel;
use five_spot_api::condition::Reason;

/// How much is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// Everything but reclaims and the kill switch.
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

/// What pauses the object, the closest thing first.
pub(super) fn cause(situation: &Situation<'_>) -> Option<Reason> {
    let world = situation.world;
    let machine_paused = world.machine.ours().is_some_and(|machine| machine.capi_paused);
    let cluster_paused = world.cluster.as_ref().is_some_and(|cluster| cluster.paused);
    if world.object.paused.is_some() {
        Some(Reason::ObjectAnnotation)
    } else if world.namespace_pause.is_some() {
        Some(Reason::NamespaceAnnotation)
    } else if world.object.capi_paused || machine_paused {
        Some(Reason::CapiAnnotation)
    } else if cluster_paused {
        Some(Reason::ClusterPaused)
    } else {
        None
    }
}

/// Takes the actions out of a draft whose object is paused, and whatever they would have started: a clock
/// that runs while nothing may be done would be unfair.
pub(super) fn hold_back(situation: &Situation<'_>, reclaim: Option<&Reclaim>, draft: &mut Draft) {
    let held = level(situation);
    let acting = situation.handling().kill_switch || reclaim.is_some_and(Reclaim::unfinished);
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
