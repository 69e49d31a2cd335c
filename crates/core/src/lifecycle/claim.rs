//! The claim on the physical machine: obtained before anything is created, kept while the machine is lent, and released when
//! nothing is left of it.

use super::draft::{Draft, Stage};
use super::removal;
use super::situation::Situation;
use crate::action::Action;
use crate::claim::{Claim, HeldClaim, KEPT_FOR_FIRST, ObjectName, Waiter, first};
use crate::world::Slot;
use jiff::Timestamp;

/// The reason why the machine cannot be claimed now.
enum Obstacle<'a> {
    /// Another object holds it or is lent it.
    InUse(&'a ObjectName),
    /// Another object that waits for it goes first.
    AfterAnother { first: &'a ObjectName, until: Timestamp },
}

fn obstacle<'a>(situation: &Situation<'a>) -> Option<Obstacle<'a>> {
    let claims = &situation.world.claims;
    match &claims.current {
        Claim::NotNeeded | Claim::Unprotected | Claim::Unknown => return None,
        Claim::Taken { holder } => return Some(Obstacle::InUse(holder)),
        Claim::Free { .. } | Claim::Held(_) | Claim::Abandoned(_) => {}
    }
    if let Some(other) = &claims.also_lent_by {
        return Some(Obstacle::InUse(other));
    }
    goes_before(situation)
}

/// Returns the waiter that is to have a free machine before this object.
fn goes_before<'a>(situation: &Situation<'a>) -> Option<Obstacle<'a>> {
    let Claim::Free { waiters, since, .. } = &situation.world.claims.current else {
        return None;
    };
    if situation.anything_left() {
        // The others wait for what is left of this object.
        return None;
    }
    let object = &situation.world.object;
    let own = Waiter {
        object: ObjectName { namespace: object.namespace.clone(), name: object.name.clone() },
        priority: situation.valid()?.priority,
        created_at: object.created_at,
    };
    let until = since.saturating_add(KEPT_FOR_FIRST).unwrap_or(Timestamp::MAX);
    let next = first(waiters.iter().chain([&own]))?.object.clone();
    let other = waiters.iter().find(|waiter| waiter.object == next)?;
    (situation.now < until).then_some(Obstacle::AfterAnother { first: &other.object, until })
}

/// Claims the machine before the first object of it is created. Returns false if it has to be waited for.
pub(super) fn obtain(situation: &Situation<'_>, draft: &mut Draft) -> bool {
    if situation.world.claims.current == Claim::Unknown {
        return false;
    }
    let Some(obstacle) = obstacle(situation) else {
        claim(situation, draft);
        return true;
    };
    draft.stage = Stage::WaitingForMachine;
    if let Obstacle::AfterAnother { until, .. } = obstacle {
        draft.wake(situation, until);
    }
    // Nothing of this object may be left on a machine that another one has.
    removal::clear_leftovers(situation, draft);
    false
}

/// Claims the machine of an object that is lent it already, because its Lease was deleted or its Machine is older than claims.
pub(super) fn keep(situation: &Situation<'_>, draft: &mut Draft) {
    claim(situation, draft);
}

/// Takes the claim, unless this object holds it or claims are not possible.
fn claim(situation: &Situation<'_>, draft: &mut Draft) {
    let (machine, replaces) = match &situation.world.claims.current {
        Claim::Free { machine, .. } => (*machine, None),
        Claim::Abandoned(claim) => (claim.machine, Some(claim.version.clone())),
        Claim::Held(claim) if !claim.is_current => (claim.machine, Some(claim.version.clone())),
        Claim::Held(_) | Claim::NotNeeded | Claim::Unprotected | Claim::Unknown | Claim::Taken { .. } => {
            return;
        }
    };
    draft.act(Action::Claim { machine, replaces });
}

/// Releases the claims of an object of whose machine nothing is left, unless this decision creates the next one. Only
/// confirmed facts permit that, so an emergency comes first.
pub(super) fn give_back(situation: &Situation<'_>, draft: &mut Draft) {
    let (world, claims) = (situation.world, &situation.world.claims);
    let is_let_go = situation.being_deleted() && !world.object.has_finalizer;
    let is_emergency = draft.is_urgent && !draft.actions.is_empty();
    if !is_gone(&world.infrastructure) || !is_gone(&world.machine) || is_let_go || is_emergency {
        return;
    }
    let uses = |action: &Action| matches!(action, Action::Claim { .. } | Action::ApplyMachine);
    let current = match &claims.current {
        Claim::Held(claim) if !draft.actions.iter().any(uses) => Some(claim),
        Claim::Held(_)
        | Claim::NotNeeded
        | Claim::Unprotected
        | Claim::Unknown
        | Claim::Free { .. }
        | Claim::Abandoned(_)
        | Claim::Taken { .. } => None,
    };
    for HeldClaim { machine, version, .. } in claims.former.iter().chain(current) {
        let release = Action::Release { machine: *machine, version: version.clone() };
        // Once the object is gone, or has something on its next machine, nothing shows that the claim is not needed.
        let comes_after = |action: &Action| {
            matches!(
                action,
                Action::RemoveFinalizer
                    | Action::Claim { .. }
                    | Action::ApplyBootstrap { .. }
                    | Action::ApplyInfrastructure { .. }
                    | Action::ApplyMachine
            )
        };
        let place = draft.actions.iter().position(comes_after).unwrap_or(draft.actions.len());
        draft.actions.insert(place, release);
        draft.is_urgent = false;
    }
}

fn is_gone<T>(slot: &Slot<T>) -> bool {
    match slot {
        Slot::Absent | Slot::Foreign { .. } => true,
        Slot::Ours(_) | Slot::Unknown => false,
    }
}

/// Returns the other object if both are lent the same physical machine.
pub(super) fn double_loan<'a>(situation: &Situation<'a>) -> Option<&'a ObjectName> {
    situation.world.machine.ours()?;
    situation.world.claims.also_lent_by.as_ref()
}

/// Returns the reason why the machine has to be waited for, for the status.
pub(super) fn describe(situation: &Situation<'_>) -> String {
    match obstacle(situation) {
        Some(Obstacle::InUse(other)) => {
            format!("waiting for the physical machine, which ScheduledMachine {other} uses")
        }
        Some(Obstacle::AfterAnother { first, .. }) => {
            format!("waiting for the physical machine, which ScheduledMachine {first} gets first")
        }
        None => "waiting for the physical machine".to_owned(),
    }
}
