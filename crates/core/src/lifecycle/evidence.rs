//! How sure one must be of the world before a decision is carried out.

use super::Decision;
use super::draft::Draft;
use crate::action::Action;
use crate::world::World;

/// How sure one must be of the world before the actions of a decision are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// What the caches show is enough: no action does harm if they lag behind.
    Cached,
    /// The API server itself has to confirm what the decision rests upon; then it is decided again.
    Confirmed,
    /// A machine is given back to its owner, or an object let go that has had its time. The decision is carried out
    /// with what is known: nothing that cannot be read, written or published holds it up, and an action that fails does
    /// not keep the next one from being tried. Each action still carries the UID that it is meant for.
    BestEffort,
}

/// The evidence that a finished draft asks for.
pub(super) fn needed(draft: &Draft) -> Evidence {
    if draft.is_urgent && !draft.actions.is_empty() {
        Evidence::BestEffort
    } else if draft.actions.iter().any(cannot_be_undone) || draft.fault.is_some() || draft.doubts_node {
        Evidence::Confirmed
    } else {
        Evidence::Cached
    }
}

/// Whether a stale cache could turn an action into harm.
const fn cannot_be_undone(action: &Action) -> bool {
    match action {
        Action::ApplyBootstrap { .. }
        | Action::ApplyInfrastructure { .. }
        | Action::ApplyMachine
        | Action::DeleteMachine { .. }
        | Action::DeleteBootstrap { .. }
        | Action::DeleteInfrastructure { .. }
        | Action::RemoveFinalizer => true,
        Action::AddFinalizer
        | Action::ExcludeDrain { .. }
        | Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Evict { .. }
        | Action::DeletePod { .. }
        | Action::PatchTaints { .. }
        | Action::LabelForAgent { .. }
        | Action::ApplyAgentConfig { .. }
        | Action::DeleteAgentConfig { .. }
        | Action::DisableSchedule
        | Action::ClearReclaimRequest { .. }
        | Action::Publish(_) => false,
    }
}

impl Decision {
    /// Whether the actions rely on the status being written first: always, unless nothing may hold them up. Even then a
    /// reclaim that is not on record yet should be, because the Node that asks for it is gone soon, and an object that is
    /// let go has no status afterwards.
    pub fn relies_on_record(&self, world: &World) -> bool {
        let is_recorded =
            |node_uid: &str| world.status.reclaims.iter().any(|known| known.node_uid == node_uid);
        let mut unfinished = self.status.reclaims.iter().filter(|record| record.finished_at.is_none());
        self.evidence != Evidence::BestEffort
            || self.actions.contains(&Action::RemoveFinalizer)
            || unfinished.any(|record| !is_recorded(&record.node_uid))
    }

    /// The actions of an emergency whose record could not be written. The schedule is switched off before the Machine
    /// goes: afterwards nothing would be left that says that its owner wants it.
    pub fn actions_without_record(&self) -> Vec<Action> {
        let mut actions = self.actions.clone();
        let place = |wanted: fn(&Action) -> bool| self.actions.iter().position(wanted);
        let switch_off = place(|action| matches!(action, Action::DisableSchedule));
        let delete = place(|action| matches!(action, Action::DeleteMachine { .. }));
        if let (Some(switch_off), Some(delete)) = (switch_off, delete)
            && delete < switch_off
        {
            let action = actions.remove(switch_off);
            actions.insert(delete, action);
        }
        actions
    }
}
