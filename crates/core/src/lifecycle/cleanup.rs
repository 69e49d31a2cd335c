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
    if let Some(deadline) = removal::cleanup_deadline(situation) {
        // From then on a pause of Cluster API does not hold the object any more.
        draft.wake(situation, deadline);
    }
    if deletion.orphan {
        // Nothing of it is removed, so that nothing has to be asked.
        draft.stage = Stage::Resting;
        draft.is_urgent = true;
        return release(situation, draft);
    }
    if !situation.anything_may_be_left() {
        return release(situation, draft);
    }
    bound(situation, draft);
}

/// Lets the object go once the agents that were set up for it are gone.
fn release(situation: &Situation<'_>, draft: &mut Draft) {
    if situation.world.agent_configs.is_empty() {
        draft.act(Action::RemoveFinalizer);
    } else if is_overdue(situation) {
        // Their cluster may be away for good.
        give_up(situation, draft);
    }
}

/// A cleanup that has taken too long ends with the Machine's deletion, and is then given up.
fn bound(situation: &Situation<'_>, draft: &mut Draft) {
    if !is_overdue(situation) {
        return;
    }
    if let Some(machine) = situation.living_machine()
        && !machine.delete_refused
    {
        draft.actions.clear();
        draft.is_urgent = true;
        return removal::delete_machine(machine, draft);
    }
    give_up(situation, draft);
}

/// Reports that the cleanup took too long and, unless the operator wants to look first, lets the object go.
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
        // Nothing in a workload cluster is waited for any more.
        draft.actions.retain(|action| {
            matches!(action, Action::DeleteBootstrap { .. } | Action::DeleteInfrastructure { .. })
        });
        draft.act(Action::RemoveFinalizer);
    }
}

/// Whether the cleanup of a deleted object has had its time.
pub(super) fn is_overdue(situation: &Situation<'_>) -> bool {
    removal::cleanup_deadline(situation).is_some_and(|deadline| situation.now >= deadline)
}
