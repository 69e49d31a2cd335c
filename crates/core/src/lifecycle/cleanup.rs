//! The finalizer: put on before anything is made, taken off when everything is gone or has had its time.

use super::draft::{Draft, Stage};
use super::fault::FaultKind;
use super::removal;
use super::situation::Situation;
use crate::action::Action;

/// Looks after the object itself.
pub(super) fn of_object(situation: &Situation<'_>, draft: &mut Draft) {
    let object = &situation.world.object;
    let Some(deletion) = object.deletion else {
        if !object.has_finalizer && situation.valid().is_some() {
            draft.actions.insert(0, Action::AddFinalizer);
        }
        return;
    };
    if !object.has_finalizer {
        // It is no longer ours to act for: whatever still exists belongs to the garbage collector.
        draft.actions.clear();
        return;
    }
    if deletion.orphan {
        draft.stage = Stage::Resting;
        return release(situation, draft);
    }
    if !situation.anything_left() {
        return release(situation, draft);
    }
    bound(situation, draft);
}

/// Lets the object go once the agents that were set up for it are gone.
fn release(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.world.agent_configs.is_empty() {
        draft.act(Action::RemoveFinalizer);
    }
}

/// A cleanup that has taken too long ends with the Machine's deletion, and is then given up.
fn bound(situation: &Situation<'_>, draft: &mut Draft) {
    let Some(deadline) = removal::cleanup_deadline(situation) else {
        return;
    };
    draft.wake(situation, deadline);
    if situation.now < deadline {
        return;
    }
    if let Some(machine) = situation.living_machine()
        && !machine.delete_refused
    {
        draft.actions.clear();
        return removal::delete_machine(machine, draft);
    }
    let seconds = situation.world.policy.finalizer_cleanup_timeout.as_secs();
    draft.fault = None;
    draft.fail(
        FaultKind::CleanupTimedOut,
        format!("the cleanup of the deleted object has taken more than {seconds} s"),
    );
    if situation.world.policy.force_finalizer_on_timeout {
        draft.act(Action::RemoveFinalizer);
    }
}
