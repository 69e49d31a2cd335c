//! The evidence that a decision requires before it is carried out.

use super::Decision;
use super::draft::Draft;
use super::reclaim::same_request;
use crate::action::Action;
use crate::world::{Slot, World};
use five_spot_api::ReclaimRecord;

/// The evidence that is required before the actions of a decision are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The caches suffice: no action does harm if they are stale.
    Cached,
    /// The observed state must be confirmed by live reads, and the decision made again.
    Confirmed,
    /// The decision returns a machine to its owner or releases an object after its timeout. It is carried out with what is
    /// known: no failed read, status write or event delays it, and a failed action does not prevent the next one. Each
    /// action still carries the UID of its object.
    BestEffort,
}

/// Returns the evidence that a finished draft requires.
pub(super) fn needed(draft: &Draft) -> Evidence {
    if draft.is_urgent && !draft.actions.is_empty() {
        Evidence::BestEffort
    } else if draft.actions.iter().any(cannot_be_undone)
        || draft.fault.is_some()
        || draft.node_needs_confirmation
    {
        Evidence::Confirmed
    } else {
        Evidence::Cached
    }
}

/// Returns true if the action could do harm when an object exists that was thought to be absent.
const fn relies_on_absence(action: &Action) -> bool {
    let is_creation = matches!(
        action,
        Action::ApplyBootstrap { .. }
            | Action::ApplyInfrastructure { .. }
            | Action::ApplyMachine
            | Action::Claim { .. }
    );
    cannot_be_undone(action) && !is_creation
}

/// Returns true if the action could do harm when it is based on a stale cache.
const fn cannot_be_undone(action: &Action) -> bool {
    match action {
        Action::ApplyBootstrap { .. }
        | Action::ApplyInfrastructure { .. }
        | Action::ApplyMachine
        | Action::DeleteMachine { .. }
        | Action::DeleteBootstrap { .. }
        | Action::DeleteInfrastructure { .. }
        | Action::RemoveFinalizer
        | Action::Claim { .. }
        | Action::Release { .. } => true,
        Action::AddFinalizer
        | Action::ExcludeDrain { .. }
        | Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Evict { .. }
        | Action::DeletePod { .. }
        | Action::PatchTaints { .. }
        | Action::LabelForAgent { .. }
        | Action::ApplyAgentConfig { .. }
        | Action::RearmAgent { .. }
        | Action::DeleteAgentConfig { .. }
        | Action::DisableSchedule
        | Action::ClearReclaimRequest { .. }
        | Action::Publish(_) => false,
    }
}

impl Decision {
    /// Returns true if the decision holds whether the bootstrap and infrastructure objects exist or not: it creates both,
    /// which the API server refuses for an object that exists, and does nothing that relies on their absence.
    pub fn only_creates_provider_objects(&self, world: &World) -> bool {
        let both_absent = matches!((&world.bootstrap, &world.infrastructure), (Slot::Absent, Slot::Absent));
        let creates = |wanted: fn(&Action) -> bool| self.actions.iter().any(wanted);
        both_absent
            && self.fault.is_none()
            && creates(|action| matches!(action, Action::ApplyBootstrap { .. }))
            && creates(|action| matches!(action, Action::ApplyInfrastructure { .. }))
            && !self.actions.iter().any(relies_on_absence)
    }

    /// Returns true if the status must be written before the actions are carried out. With [`Evidence::BestEffort`] this is
    /// the case only for a reclaim that is not recorded yet, because the Node with the request is about to disappear, and for
    /// the removal of the finalizer, after which the object has no status.
    pub fn relies_on_record(&self, world: &World) -> bool {
        let is_recorded =
            |record: &ReclaimRecord| world.status.reclaims.iter().any(|known| same_request(known, record));
        let mut unfinished = self.status.reclaims.iter().filter(|record| record.finished_at.is_none());
        self.evidence != Evidence::BestEffort
            || self.releases_object()
            || unfinished.any(|record| !is_recorded(record))
    }

    /// Returns true if the decision only finishes what is over: it deletes what is left of a machine whose Machine is gone, or
    /// releases the object. Nothing of that relies on a record, and a status that is refused must not keep the machine.
    pub fn only_clears_up(&self) -> bool {
        let deletes_leftover = |action: &Action| {
            matches!(action, Action::DeleteBootstrap { .. } | Action::DeleteInfrastructure { .. })
        };
        self.releases_object() || (!self.actions.is_empty() && self.actions.iter().all(deletes_leftover))
    }

    /// Returns true if the decision releases the object: it has no status afterwards.
    pub fn releases_object(&self) -> bool {
        self.actions.contains(&Action::RemoveFinalizer)
    }

    /// Returns the actions of an emergency that could not be recorded. The schedule is disabled before the Machine is deleted,
    /// because afterwards nothing would show that the owner needs the machine.
    pub fn actions_without_record(&self) -> Vec<Action> {
        let mut actions = self.actions.clone();
        let place = |wanted: fn(&Action) -> bool| self.actions.iter().position(wanted);
        let disable = place(|action| matches!(action, Action::DisableSchedule));
        let delete = place(|action| matches!(action, Action::DeleteMachine { .. }));
        if let (Some(disable), Some(delete)) = (disable, delete)
            && delete < disable
        {
            let action = actions.remove(disable);
            actions.insert(delete, action);
        }
        actions
    }
}
