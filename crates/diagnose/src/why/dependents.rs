//! Foreground deletion: an owner stays until the dependents that block it are gone.

use super::answer::CauseFix;
use super::facts::{Fact, Need, Owner};
use super::live::Live;
use super::walk::Walk;
use super::words;
use jiff::SignedDuration;

/// The number of dependents that are examined.
const EXAMINED: usize = 5;

/// The time in which the garbage collector should have requested the deletion of all dependents.
const REQUESTED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Examines the dependents that block an owner. Returns true if there are any.
pub(super) fn blocking<'f>(walk: &mut Walk<'f>, owner: Live<'f>, step: usize) -> bool {
    let need = Need::Dependents {
        owner: Owner {
            kind: owner.text("/kind").to_owned(),
            name: owner.name().to_owned(),
            uid: Some(owner.uid().to_owned()),
        },
        namespace: owner.id().namespace,
    };
    let listed = match walk.ask(need) {
        None => return true,
        Some(Fact::List(listed)) => listed,
        Some(Fact::Unreadable(reason)) => {
            walk.note_unread(step, "its dependents", reason);
            return false;
        }
        Some(Fact::Absent | Fact::Object(_)) => return false,
    };
    for unread in &listed.unread {
        walk.note(step, words::quoted(unread));
    }
    let blocks = |item: &Live<'f>| item.owners().iter().any(|it| it.uid == owner.uid() && it.blocks);
    let blockers: Vec<Live<'f>> = listed.items.iter().map(Live).filter(blocks).collect();
    let blocking = words::count(blockers.len() as u64, "dependent");
    walk.note(step, format!("foreground deletion: {blocking} with blockOwnerDeletion"));
    for dependent in blockers.iter().take(EXAMINED) {
        if dependent.is_deleting() {
            walk.visit_id(&dependent.id(), "a dependent that blocks the deletion of its owner");
        } else {
            not_deleted(walk, *dependent, owner);
        }
    }
    if blockers.len() > EXAMINED {
        let further = words::count((blockers.len() - EXAMINED) as u64, "more dependent");
        walk.note(step, further);
    }
    !blockers.is_empty()
}

fn not_deleted<'f>(walk: &mut Walk<'f>, dependent: Live<'f>, owner: Live<'f>) {
    let id = dependent.id();
    walk.step(&id, "a dependent that blocks the deletion of its owner", vec!["not being deleted".to_owned()]);
    let cause =
        "the garbage collector (kube-controller-manager) has not deleted this dependent yet".to_owned();
    let evidence = vec![words::quoted(&format!("it blocks the deletion of {}", owner.id().to_ref()))];
    if walk.unchanged(owner) < REQUESTED_WITHIN {
        return walk.waiting(&id, cause, evidence);
    }
    let warning =
        "deletes what the garbage collector was asked to delete; an error message says what prevents it";
    let fix = vec![CauseFix::safe_if(walk.kubectl.on("delete", &id), warning)];
    walk.blocked(&id, cause, evidence, fix);
}
