//! The finalizer: it is added before anything is created, and removed when everything is gone or the cleanup timeout is over.

use super::draft::{Draft, Stage};
use super::fault::FaultKind;
use super::removal;
use super::situation::Situation;
use crate::action::Action;
use crate::world::MachineView;

/// Adds or removes the finalizer of the object.
pub(super) fn of_object(situation: &Situation<'_>, draft: &mut Draft) {
    let object = &situation.world.object;
    let Some(deletion) = object.deletion else {
        if !object.has_finalizer && situation.valid().is_some() {
            // Nothing is created in an emergency, so that the finalizer can wait.
            let place = if draft.is_urgent { draft.actions.len() } else { 0 };
            draft.actions.insert(place, Action::AddFinalizer);
        }
        return;
    };
    if let Some(deadline) = removal::cleanup_deadline(situation) {
        // From then on a pause of Cluster API no longer holds the object back.
        draft.wake(situation, deadline);
    }
    if !object.has_finalizer {
        // The garbage collector deletes what still exists, once no finalizer of others is left. An emergency does not wait
        // for that.
        if !draft.is_urgent {
            draft.actions.clear();
        }
        return;
    }
    if deletion.orphan {
        // Nothing is deleted, so nothing has to be confirmed.
        draft.stage = Stage::Idle;
        draft.is_urgent = true;
        return release(situation, draft);
    }
    if !situation.anything_may_be_left() {
        return release(situation, draft);
    }
    bound(situation, draft);
}

/// Removes the finalizer when the ConfigMaps of its reclaim agents are gone.
fn release(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.world.agent_configs.is_empty() {
        draft.act(Action::RemoveFinalizer);
    } else if is_overdue(situation) {
        // Their cluster may never return.
        give_up(situation, draft);
    }
}

/// After the cleanup timeout, deletes the Machine and then gives up.
fn bound(situation: &Situation<'_>, draft: &mut Draft) {
    if !is_overdue(situation) {
        return;
    }
    if let Some(machine) = situation.living_machine() {
        let is_last = machine.delete_refused && situation.world.policy.force_finalizer_on_timeout;
        if !is_last {
            draft.is_urgent = true;
            delete_now(machine, draft);
        }
        if !machine.delete_refused {
            return;
        }
    }
    give_up(situation, draft);
}

/// Deletes the Machine without any other action. Cluster API drains its node, unless that is already done or not wanted.
fn delete_now(machine: &MachineView, draft: &mut Draft) {
    let is_decided = draft.actions.iter().any(|action| matches!(action, Action::DeleteMachine { .. }));
    let is_emergency = draft.stage == Stage::Ejecting;
    if is_decided {
        draft.actions.retain(|action| {
            matches!(action, Action::ExcludeDrain { .. } | Action::DeleteMachine { .. } | Action::Publish(_))
        });
        return;
    }
    draft.actions.clear();
    if is_emergency {
        removal::delete_without_drain(machine, true, draft);
    } else {
        removal::delete_machine(machine, draft);
    }
}

/// Reports that the cleanup timed out and, if the policy allows it, removes the finalizer.
fn give_up(situation: &Situation<'_>, draft: &mut Draft) {
    let policy = situation.world.policy;
    let object = &situation.world.object;
    let consequence = if policy.force_finalizer_on_timeout {
        "removing the finalizer; check for objects that are left over"
    } else {
        "the finalizer stays because --force-finalizer-on-timeout is false"
    };
    draft.fault = None;
    draft.fail(
        FaultKind::CleanupTimedOut,
        format!(
            "cleanup of deleted ScheduledMachine {}/{} did not finish within {} s; {consequence}",
            object.namespace,
            object.name,
            policy.finalizer_cleanup_timeout.as_secs(),
        ),
    );
    if policy.force_finalizer_on_timeout {
        draft.is_urgent = true;
        // Workload clusters are no longer waited for.
        draft.actions.retain(|action| {
            matches!(
                action,
                Action::ExcludeDrain { .. }
                    | Action::DeleteBootstrap { .. }
                    | Action::DeleteInfrastructure { .. }
            )
        });
        draft.act(Action::RemoveFinalizer);
    }
}

/// Returns true if the cleanup timeout of a deleted object is over.
pub(super) fn is_overdue(situation: &Situation<'_>) -> bool {
    removal::cleanup_deadline(situation).is_some_and(|deadline| situation.now >= deadline)
}
